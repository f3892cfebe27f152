"""A signal handler that raises, at every moment of a round at which one can run."""

from __future__ import annotations

from pathlib import Path

import pytest

from moments import interrupted
from stopwise.live import Learner, RoundLog, SqliteStore

STAGES = {"a": 0.0, "b": 1.0, "c": 3.0}


def open_store(kind: str, folder: Path) -> RoundLog | SqliteStore:
    name, durability = kind.split()
    if name == "log":
        return RoundLog(folder / "rounds.jsonl", durability=durability)  # type: ignore[arg-type]
    return SqliteStore(folder / "rounds.db", durability=durability)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["log round", "log behind", "sqlite round", "sqlite behind"])
def test_a_round_interrupted_anywhere_leaves_the_store_usable(kind: str, tmp_path: Path) -> None:
    learner = Learner(STAGES, mistake_cost=10, store=open_store(kind, tmp_path))
    queue = learner._books.queue
    assert queue is not None

    def one_round() -> None:
        with learner.begin("x") as round:
            for stage in range(round.depth + 1):
                round.observe(stage % 2)

    moment = 0
    while interrupted(one_round, moment):
        queue.flush(timeout=10.0)  # raises where the writing thread was locked out
        moment += 1
    assert moment > 30
    report = learner.report()
    assert report.rounds == learner.report("x").rounds
    assert report.spent == learner.report("x").spent
    learner.close()
    with Learner(STAGES, mistake_cost=10, store=open_store(kind, tmp_path)) as again:
        assert (again.rounds, again.report().spent) == (report.rounds, report.spent)


def test_random_numbers_survive_an_interrupt_while_they_are_made() -> None:
    learner = Learner(STAGES, mistake_cost=10, seed=4)
    moment = 0
    while interrupted(lambda: learner.begin().abandon(), moment):
        moment += 1
        learner._books.chooser.reseed(4)  # its numbers are made again
        interrupted(lambda: learner.begin().abandon(), moment)
        learner.begin().abandon()
    assert moment > 10
