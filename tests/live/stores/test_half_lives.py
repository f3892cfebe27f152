"""Half-lives over processes: what two of them have counted is what one would have.

Rounds of a segment are put into one order by the transactions that count them, and each of them
takes its share of weight from all before it. So the sum is exact, and not only up to an hour.
"""

import multiprocessing
import sqlite3
from contextlib import closing

import pytest

from stopwise.live import Learner, SqliteStore

HALF_LIFE = 40.0
DISCOUNT = 0.5 ** (1 / HALF_LIFE)


def work(path, rounds, outputs, segment, durability):
    store = SqliteStore(path, durability=durability)
    with Learner([0, 0.1], "fixed:stage=1", half_life=HALF_LIFE, store=store) as learner:
        for _ in range(rounds):
            with learner.begin(segment) as round:
                for output in outputs:
                    round.observe(output)


@pytest.mark.parametrize("durability", ["round", "behind"])
def test_two_processes_at_the_same_time_count_as_one(tmp_path, durability):
    path, rounds = tmp_path / "rounds.db", 120
    Learner([0, 0.1], "fixed:stage=1", half_life=HALF_LIFE, store=SqliteStore(path)).close()
    context = multiprocessing.get_context("fork")
    said = [("x", "x"), ("x", "y")]
    processes = [
        context.Process(target=work, args=(path, rounds, outputs, "", durability))
        for outputs in said
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    alone = Learner([0, 0.1], "fixed:stage=1", half_life=HALF_LIFE)
    for outputs in said * rounds:
        with alone.begin() as round:
            for output in outputs:
                round.observe(output)
    with Learner(
        [0, 0.1], "fixed:stage=1", half_life=HALF_LIFE, store=SqliteStore(path)
    ) as learner:
        assert learner.rounds == 2 * rounds
        assert learner.evidence() == alone.evidence()
        recent = learner._books.counters.peek("").recent_evidence()
    # How much is remembered does not depend on who came first; of which kind it is, does.
    expected = alone._books.counters.peek("").recent_evidence()
    assert recent.seen[0, 1] == pytest.approx(expected.seen[0, 1], rel=1e-12)
    weight = (1 - DISCOUNT ** (2 * rounds)) / (1 - DISCOUNT)
    assert recent.seen[0, 1] == pytest.approx(weight, rel=1e-12)
    last = (1 - DISCOUNT**rounds) / (1 - DISCOUNT)
    first = last * DISCOUNT**rounds
    assert first * (1 - 1e-9) <= recent.disagreed[0, 1] <= last * (1 + 1e-9)


def test_rounds_of_one_segment_touch_no_other(tmp_path):
    path = tmp_path / "rounds.db"
    work(path, 7, ("x", "y"), "first", "round")
    rows = "SELECT counter, value FROM stopwise_counters WHERE segment = 'first' ORDER BY counter"
    with closing(sqlite3.connect(path)) as connection, connection:
        before = connection.execute(rows).fetchall()
    work(path, 30, ("x", "x"), "second", "round")
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(rows).fetchall() == before
