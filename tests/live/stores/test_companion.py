"""What a program writes beside the counters, in the same transactions."""

import sqlite3

import pytest


class Rows:
    """A companion that keeps a row for each round, and admits every second one."""

    def __init__(self):
        self.fails = 0

    def admit(self, connection, records):
        connection.query("CREATE TABLE IF NOT EXISTS own_rows (sequence BIGINT PRIMARY KEY)")
        counted = [record for record in records if record.sequence % 2]
        connection.many(
            "INSERT INTO own_rows (sequence) VALUES (?)", [(r.sequence,) for r in counted]
        )
        if self.fails:
            self.fails -= 1
            raise sqlite3.OperationalError("after its rows")
        return counted

    def note(self, connection, alarms):
        raise AssertionError("nothing drifts here")


def test_rows_and_counters_are_written_together(shared):
    learner = shared.learner("fixed", durability="behind")
    store = learner._books.queue.store
    rows = store.companion = Rows()
    for at in range(20):
        with learner.begin() as round:
            for _ in range(round.depth + 1):
                round.observe(at)
        rows.fails = at % 3
        for _ in range(rows.fails):
            with pytest.raises(Exception, match="not written yet"):
                learner.flush()
        learner.flush()
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
