"""Many items at once: counted as their rounds would be, each stage called once on each."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cascade_stages import three
from stopwise.live import (
    Cascade,
    Learner,
    Reported,
    Stage,
    majority_vote,
)


def tables(kind, size=600):
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, size)
    columns = [np.where(rng.random(size) < p, truth, rng.integers(0, 4, size)) for p in (0.6, 0.8)]
    columns.append(truth)
    if kind == "text":
        return [column.astype(str) for column in columns]
    if kind == "objects":
        return [np.array([None if v == 0 else f"{v}" for v in column]) for column in columns]
    return columns


def table_stages(columns, spies=None, as_list=False):
    def make(at):
        def call(items):
            if spies is not None:
                spies.append((at, len(items)))
            found = columns[at][np.asarray(items)]
            return found.tolist() if as_list else found

        return Stage("abc"[at], call, 0.05 * at, batch=True)

    return [make(at) for at in range(3)]


@pytest.mark.parametrize("kind", ["numbers", "text", "objects"])
@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("settings", [{}, {"half_life": 100.0}, {"combine": majority_vote}])
def test_a_batch_is_counted_as_its_rounds(kind, as_list, settings):
    columns = tables(kind)
    spies: list[Any] = []
    cascade = Cascade(table_stages(columns, spies, as_list), seed=3, **settings)
    single = Learner({"a": 0, "b": 0.05, "c": 0.1}, seed=3, **settings)
    items = np.arange(600)
    batch = cascade.answer_many(items, batch_size=200).collect()
    depths = []
    for start in range(0, 600, 200):
        rounds = [single.begin() for _ in range(200)]
        for at, round in enumerate(rounds, start):
            for stage_at in range(round.depth + 1):
                value = columns[stage_at][at]
                round.observe(value.item() if hasattr(value, "item") else value)
            outcome = round.end()
            depths.append(round.depth)
            assert batch.answers[at] == outcome.answer
            assert batch.costs[at] == pytest.approx(outcome.cost)
    assert batch.depths.tolist() == depths
    assert cascade.learner.evidence() == single.evidence()
    assert cascade.learner.report().calls == single.report().calls
    assert [at for at, _ in spies] == sorted([at for at, _ in spies[:3]]) * 3  # once a batch
    assert batch.probabilities == pytest.approx([one.probability for one in batch])
    assert len(list(batch)) == 600


def test_batches_begin_small_and_stream():
    seen = []
    cascade = Cascade(table_stages(tables("numbers")), seed=1)
    answers = iter(cascade.answer_many(iter(range(600)), progress=lambda *done: seen.append(done)))
    assert cascade.learner.rounds == 0
    next(answers)
    assert cascade.learner.rounds == 16
    assert len(list(answers)) == 599
    assert seen == [(16, None), (48, None), (112, None), (240, None), (496, None), (600, None)]


@pytest.mark.parametrize("on_failure", ["stop", "skip"])
def test_a_batch_stage_that_fails_is_called_once_and_fails_for_all(on_failure):
    columns = tables("numbers")
    calls = []

    def down(items):
        calls.append(len(items))
        raise RuntimeError("down")

    stages = table_stages(columns)
    stages[1] = Stage("b", down, 0.05, batch=True)
    cascade = Cascade(stages, "fixed", on_failure=on_failure)
    batch = cascade.answer_many(np.arange(50), batch_size=50).collect()
    assert calls == [50]
    want = columns[0] if on_failure == "stop" else columns[2]
    assert list(batch.answers) == want[:50].tolist()
    assert cascade.learner.report().failures == (0, 50, 0)


def test_a_batch_stage_with_too_few_outputs_has_failed():
    stages = [
        Stage("a", lambda items: [1] * len(items), 0, batch=True),
        Stage("b", lambda items: [1], 1, batch=True),
    ]
    cascade = Cascade(stages, "fixed")
    answers = list(cascade.answer_many([1, 2, 3], batch_size=3))
    assert [answer.stage for answer in answers] == ["a"] * 3
    assert "need 3 outputs for 3 items, got 1" in str(answers[0].failures[0][1])


def test_frames_async_stages_and_reports_in_batches():
    async def model(row):
        return Reported(int(row > 2), cost=2.0)

    frame = pd.DataFrame({"v": range(6)})
    stages = [
        Stage("rule", lambda part: [int(v > 3) for v in part["v"]], 0, batch=True),
        Stage("rest", lambda part: part["v"].to_numpy() > 2, 1, batch=True),
    ]
    batch = Cascade(stages, "fixed").answer_many(frame, batch_size=6).collect()
    assert list(batch.answers) == [0, 0, 0, 1, 1, 1]
    cascade = Cascade([Stage("a", lambda v: 0, 0), Stage("b", model, 1)], "fixed", costs="reported")
    batch = cascade.answer_many(range(6)).collect()
    assert batch.answers == [0, 0, 0, 1, 1, 1]
    assert batch.costs.tolist() == [2.0] * 6


def test_nothing_to_answer():
    cascade = three(str, str, str)
    assert len(cascade.answer_many([]).collect()) == 0
    assert list(cascade.answer_many([])) == []


@pytest.mark.parametrize(
    "outputs",
    [
        "ab",
        b"ab",
        {"b": 1, "a": 2},
        {"b", "a"},
        frozenset("ab"),
        pd.DataFrame({"x": [1], "y": [2]}),
    ],
)
def test_parts_of_one_thing_are_not_given_to_the_items_of_a_batch(outputs):
    """A set has no order, and a text of two characters is not the answers to two items."""
    stages = [
        Stage("first", lambda items: list(items), batch=True),
        Stage("second", lambda items: outputs, 1, batch=True),
    ]
    size = 1 if isinstance(outputs, pd.DataFrame) else 2
    answers = list(Cascade(stages, "fixed", mistake_cost=9).answer_many(range(size)))
    assert [one.answer for one in answers] == list(range(size))
    assert f"got one {type(outputs).__name__}; return a list" in str(answers[0].failures[0][1])
