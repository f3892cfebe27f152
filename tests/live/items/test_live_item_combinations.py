"""Per item with everything else: modes, drift, budgets, failures, segments, stores, batches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_up_cascades import made_up
from stopwise.live import Answer, Cascade, Drift, Reported, RoundLog, SqliteStore, Stage

NAMES = ("small", "medium", "large")
PER_STAGE = (0.1, 1.0, 4.0)
ROWS = made_up(900, (0.8, 1.2, 4.0), seed=3)[0]
COUNT = 400


def stages(*, failing: bool, asynchronous: bool) -> list[Stage]:
    def make(at: int) -> Stage:
        def call(item: int) -> Reported:
            if failing and at == 1 and item % 7 == 0:
                raise ValueError("no")
            assert ROWS.confidences is not None
            label = ROWS.labels[ROWS.codes[item, at]]
            return Reported(label, cost=PER_STAGE[at], confidence=float(ROWS.confidences[item, at]))

        async def call_async(item: int) -> Reported:
            return call(item)

        return Stage(NAMES[at], call_async if asynchronous else call, cost=PER_STAGE[at])

    return [make(at) for at in range(3)]


def store_of(name: str, folder: Path) -> Any:
    if name == "memory":
        return None
    if name == "log":
        return RoundLog(folder / "rounds.jsonl")
    return SqliteStore(folder / "rounds.db", writer="one")


def answered(cascade: Cascade, way: str) -> list[Answer]:
    if way == "batch":
        segments = [f"s{item % 3}" for item in range(COUNT)]
        return list(cascade.answer_many(range(COUNT), batch_size=50, segment=segments).collect())
    if way == "sync":
        return [cascade.answer(item, segment=f"s{item % 3}") for item in range(COUNT)]

    async def run() -> list[Answer]:
        return [await cascade.answer_async(item, segment=f"s{item % 3}") for item in range(COUNT)]

    return asyncio.run(run())


PROMISE = {"agree": 0.6, "level": 0.6, "look_rate": 0.3}
MODES, WAYS, STORES = (
    ("enforce", "advise", "shadow"),
    ("sync", "async", "batch"),
    ("memory", "log", "sqlite"),
)
# Every two of mode, way and store meet, with and without a promise (a Latin square).
TOGETHER = [
    (MODES[a], WAYS[b], STORES[(a + b) % 3], promise)
    for a in range(3)
    for b in range(3)
    for promise in ({}, PROMISE)
]


@pytest.mark.parametrize(("mode", "way", "store", "promise"), TOGETHER)
def test_everything_together(
    mode: Any, way: str, store: str, promise: dict[str, float], tmp_path: Path
) -> None:
    """Drift watched, costs reported, one stage failing now and then, three segments, a budget."""
    settings: dict[str, Any] = {
        "mistake_cost": 15.0, "seed": 2, "mode": mode, "drift": Drift(), "run_budget": 4000.0,
        "costs": "reported", **promise,
    }  # fmt: skip
    made = stages(failing=True, asynchronous=way == "async")
    with Cascade(made, "per-item", store=store_of(store, tmp_path), **settings) as cascade:
        answers = answered(cascade, way)
        cascade.learner.flush()
        report = cascade.learner.report()
        parts = [cascade.learner.report(f"s{at}") for at in range(3)]
        counts = cascade.learner.transitions
    assert len(answers) == report.rounds == COUNT
    assert report.spent == pytest.approx(sum(answer.cost for answer in answers))
    assert [sum(part.calls[at] for part in parts) for at in range(3)] == list(report.calls)
    assert report.failures == (0, sum(bool(answer.failures) for answer in answers), 0)
    assert counts is not None
    assert counts.rounds == COUNT
    assert counts.reached.tolist() == list(report.calls)
    why = [answer.explain().why for answer in answers]
    if mode == "enforce":
        assert any(one.startswith("stopped after small") for one in why)
        assert report.items is not None
    else:
        assert report.calls[0] == COUNT
        assert sum(report.advised) == COUNT
        assert sum(report.advised[:2]) > 20
        assert (answers[-1].advice is not None) is (mode == "advise")
    if promise:
        assert report.promise is not None
        assert report.promise.rounds == COUNT == sum(part.promise.rounds for part in parts)  # type: ignore[union-attr]
    if store != "memory":  # what was kept is what was counted
        again = stages(failing=True, asynchronous=way == "async")
        with Cascade(again, "per-item", store=store_of(store, tmp_path), **settings) as later:
            found = later.learner.report()
            assert (found.rounds, found.calls, found.answers) == (
                report.rounds, report.calls, report.answers,
            )  # fmt: skip
            assert found.promise == report.promise
            assert later.learner.transitions == counts
    assert np.isfinite(report.spent)
