"""What a program writes beside the counters, in the same transactions."""

import sqlite3

from stopwise.live import StoreError


class Rows:
    """A companion that keeps a row for each round, and admits every second one."""

    def __init__(self):
        self.fails = self.failed = 0

    def admit(self, connection, records):
        connection.query("CREATE TABLE IF NOT EXISTS own_rows (sequence BIGINT PRIMARY KEY)")
        counted = [record for record in records if record.sequence % 2]
        connection.many(
            "INSERT INTO own_rows (sequence) VALUES (?)", [(r.sequence,) for r in counted]
        )
        if self.fails:
            self.fails -= 1
            self.failed += 1
            raise sqlite3.OperationalError("after its rows")
        return counted

    def note(self, connection, alarms):
        raise AssertionError("nothing drifts here")


def test_rows_and_counters_are_written_together(shared):
    learner = shared.learner("fixed", durability="behind")
    store = learner._books.queue.store
    rows = store.companion = Rows()
    said = []
    for at in range(20):
        rows.fails = at % 3
        with learner.begin() as round:
            for _ in range(round.depth + 1):
                round.observe(at)
        # Its thread tries by itself too, so it may be there that a write failed.
        while learner.store_status.queued:
            try:
                learner.flush()
            except StoreError as error:
                said.append(str(error))
    assert rows.failed == sum(at % 3 for at in range(20))
    assert all("not written yet" in text for text in said)
    connection = store.connect()
    kept = connection.query("SELECT count(*) FROM own_rows")[0][0]
    connection.close()
    # What was not admitted is not counted: not in the store, nor in the learner that told it.
    learner.refresh()
    assert kept == 10 == learner.rounds
    other = shared.learner("fixed")
    assert other.rounds == 10
    assert other.evidence() == learner.evidence()
    other.close()
    learner.close()
