"""What a round costs a database does not grow with the number of segments."""

import pytest

from stopwise.live import Learner, SqliteStore


@pytest.mark.parametrize("segment", ["s3", "new"])
def test_a_batch_takes_no_more_steps_with_many_segments(tmp_path, segment):
    """Counted in steps of SQLite's own machine, which no other program can slow down."""

    def steps(segments: int) -> int:
        path = tmp_path / f"{segments}.db"
        one = Learner([0, 1], "fixed", store=SqliteStore(path, durability="behind"))
        two = Learner([0, 1], "fixed", store=SqliteStore(path))

        def end_one(learner, segment):
            with learner.begin(segment) as round:
                round.observe("a")
                round.observe("b")

        for at in range(segments):
            end_one(one, f"s{at}")
        one.flush()
        two.refresh()
        taken = 0

        def count():
            nonlocal taken
            taken += 1
            return 0

        connection = two._books.queue.store._connection._connection
        connection.set_progress_handler(count, 1)
        end_one(two, segment)
        connection.set_progress_handler(None, 0)
        one.close()
        two.close()
        return taken

    few, many = steps(5), steps(800)
    assert few > 0
    assert many < 1.5 * few
