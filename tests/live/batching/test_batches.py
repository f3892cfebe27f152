"""Batches: outputs come back as they went in, memory is bounded, segments, frames, interrupts."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest

from stopwise import Evidence, StopwiseError
from stopwise.live import Cascade, Learner, Reported, Stage


def batched(*columns, cost=0.1, **settings):
    def make(at):
        return Stage("abc"[at], lambda rows: columns[at](rows), cost * at, batch=True)

    return Cascade([make(at) for at in range(len(columns))], "fixed", **settings)


def as_list(values):
    return lambda rows: [values[row] for row in rows]


def as_array(values):
    return lambda rows: np.array(values)[np.asarray(rows)]


@pytest.mark.parametrize("kind", [as_list, as_array])
def test_one_long_text_does_not_make_all_outputs_long(kind):
    size = 4096
    texts = ["yes"] * size
    long = ["yes"] * (size - 1) + ["x" * 100_000]
    second = as_list(long) if kind is as_list else lambda rows: np.array(long, dtype=object)
    cascade = batched(kind(texts), second)
    tracemalloc.start()
    batch = cascade.answer_many(list(range(size)), batch_size=size).collect()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # an array of all at the length of the longest would take 1.6 GB
    assert list(batch.answers) == long
    assert cascade.learner.evidence().disagreed[0, 1] == 1


def test_arrays_of_text_of_different_lengths_are_not_made_equally_long():
    short, long = ["a", "b"], ["a", "c" * 100]
    batch = batched(as_array(short), as_array(long)).answer_many([0, 1]).collect()
    assert batch.answers.dtype == object
    assert batch.answers.tolist() == long


BIG = 2**60 + 1


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([BIG, 2], [BIG, 2**60]),
        (np.array([BIG, 2]), [BIG, 3]),
        (np.array([BIG, 2]), np.array([BIG, 3])),
        (np.array([BIG, 2]), np.array([0.5, 2.0])),
        (np.array([BIG, 2]), np.array([BIG, 3], dtype=np.uint64)),
        (np.array([True, False]), np.array([1, 1])),
        (["a", "b"], [1, 2]),
        ([True, 1], [1, "x"]),
        (np.array(["a", "b"]), np.array([1, 2])),
    ],
)
@pytest.mark.parametrize("deep", [0, 1])
def test_outputs_come_back_as_they_went_in(one, two, deep):
    stages = [
        Stage("a", lambda rows: one, batch=True),
        Stage("b", lambda rows: two, 0.5, batch=True),
    ]
    cascade = Cascade(stages, f"fixed:stage={deep}")
    batch = cascade.answer_many([0, 1]).collect()
    given = [value.item() if hasattr(value, "item") else value for value in (one, two)[deep]]
    found = [answer.answer for answer in batch]
    assert found == given
    assert [type(value) for value in found] == [type(value) for value in given]
    assert list(batch.answers) == given
    if deep:
        rows = [
            [a.item() if hasattr(a, "item") else a, b.item() if hasattr(b, "item") else b]
            for a, b in zip(one, two, strict=True)
        ]
        assert cascade.learner.evidence() == Evidence.from_prefixes(2, rows)


def test_joining_batches_changes_no_answer():
    outputs = {0: np.array([BIG]), 1: np.array([0.5])}
    cascade = batched(lambda rows: outputs[rows[0]], lambda rows: outputs[rows[0]])
    batch = cascade.answer_many([0, 1], batch_size=1).collect()
    assert batch.answers.tolist() == [BIG, 0.5]
    assert type(batch.answers[0]) is int


# ---- segments --------------------------------------------------------------------------------


def table(size=300):
    rng = np.random.default_rng(3)
    return [rng.integers(0, 3, size) for _ in range(3)]


@pytest.mark.parametrize("form", ["list", "series", "function"])
@pytest.mark.parametrize("half_life", [None, 100.0])
def test_every_item_has_its_own_segment(form, half_life):
    columns = table()
    names = np.where(np.arange(300) % 3 == 0, "x", "y").tolist()
    segment = {
        "list": names,
        "series": pd.Series(names),
        "function": lambda item: names[item],
    }[form]
    cascade = batched(*map(as_array, columns), seed=5, half_life=half_life)
    batch = cascade.answer_many(list(range(300)), segment=segment, batch_size=64).collect()
    alone = Learner({"a": 0, "b": 0.1, "c": 0.2}, "fixed", half_life=half_life)
    for item in range(300):
        with alone.begin(names[item]) as round:
            for stage in range(3):
                round.observe(int(columns[stage][item]))
    assert list(batch.answers) == columns[2].tolist()
    for name in ("x", "y"):
        assert cascade.learner.evidence(name) == alone.evidence(name)
    assert [answer.answer for answer in batch] == columns[2].tolist()


def test_segments_are_checked():
    cascade = batched(as_array([1, 2, 3]), as_array([1, 2, 3]))
    for segment, message in (
        (3, "segment"),
        (["x"], "1 segments were given for"),
        ([1, 2, 3], "text for every item"),
        (lambda item: None, "text for every item"),
    ):
        with pytest.raises(StopwiseError, match=message):
            cascade.answer_many([0, 1, 2], segment=segment).collect()
    assert cascade.learner.rounds == 0


# ---- frames ----------------------------------------------------------------------------------


def test_rows_of_frames_are_items():
    frame = pd.DataFrame({"v": range(6)})
    stages = [
        Stage("a", lambda row: int(row["v"] > 3)),
        Stage("b", lambda row: int(row["v"] > 2), 1),
    ]
    batch = Cascade(stages, "fixed").answer_many(frame).collect()
    assert batch.answers == [0, 0, 0, 1, 1, 1]
    batch = Cascade(stages, "fixed").answer_many(pl.DataFrame(frame.to_dict("list"))).collect()
    assert batch.answers == [0, 0, 0, 1, 1, 1]


def test_frames_of_polars_are_cut_by_rows():
    frame = pl.DataFrame({"v": range(200)})
    shapes = []

    def call(part):
        shapes.append(type(part))
        return (part["v"] % 2).to_list()

    stages = [Stage("a", call, batch=True), Stage("b", call, 0.1, batch=True)]
    cascade = Cascade(stages, seed=2)
    batch = cascade.answer_many(frame, batch_size=200).collect()
    assert batch.answers == [0, 1] * 100
    assert set(shapes) == {pl.DataFrame}


# ---- interrupts ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("as_rounds", [False, True])
def test_an_interrupt_in_a_batch_counts_what_was_called(error, as_rounds):
    def interrupted(rows):
        raise error

    settings = {"half_life": 50.0} if as_rounds else {}
    cascade = batched(as_array([1] * 20), as_array([2] * 20), interrupted, cost=1, **settings)
    with pytest.raises(error):
        cascade.answer_many(list(range(20)), batch_size=20).collect()
    report = cascade.learner.report()
    assert (report.rounds, report.abandoned, report.calls) == (20, 20, (20, 20, 20))
    assert report.spent == 60.0  # the interrupted call too
    assert cascade.learner.evidence().disagreed[0, 1] == 20


@pytest.mark.parametrize("on_failure", ["stop", "raise"])
def test_an_interrupt_between_items_counts_those_that_were_called(on_failure):
    calls = []

    def second(item):
        if item == 7:
            raise KeyboardInterrupt
        calls.append(item)
        if item == 2 and on_failure == "stop":
            raise RuntimeError
        return item

    stages = [Stage("a", lambda item: 0), Stage("b", second, 1)]
    cascade = Cascade(stages, "fixed", on_failure=on_failure)
    with pytest.raises(KeyboardInterrupt):
        cascade.answer_many(range(16), batch_size=16).collect()
    report = cascade.learner.report()
    assert (report.rounds, report.spent, len(calls)) == (16, 8.0, 7)  # and the interrupted call
    assert report.abandoned == 16  # none of them was answered


def test_reports_in_batches_are_counted_one_by_one():
    stages = [
        Stage("a", lambda items: ["x"] * len(items), batch=True),
        Stage("b", lambda items: [Reported("y", 2.0, 0.5)] * len(items), 1, batch=True),
    ]
    cascade = Cascade(stages, "fixed")
    batch = cascade.answer_many(range(3)).collect()
    assert batch.costs.tolist() == [2.0] * 3
    assert cascade.learner.report().spent == 6.0


def test_batches_of_columns_keep_to_the_most_segments(caplog):
    stages = [
        Stage("a", lambda items: list(items), batch=True),
        Stage("b", lambda items: list(items), 1, batch=True),
    ]
    cascade = Cascade(stages, mistake_cost=9, max_segments=5)
    cascade.answer_many(range(40), segment=str).collect()
    assert cascade.learner.segments == ["0", "1", "2", "3", "4", "other"]
    assert cascade.learner.report("other").rounds == 35
    assert "max_segments" in caplog.text
