from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.situations.binning import Binning
from stopwise.situations.keys import decode, situations
from stopwise.situations.observations import NOT_CALLED, Observations
from stopwise.situations.references import carried_forward
from stopwise.situations.transitions import Transitions

BINNING = Binning(edges=((), (), ()), labels=((), (), ()))
PATHS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), max_size=25)


def counted(paths: list[list[int]]) -> Transitions:
    counts = Transitions(BINNING)
    for path in paths:
        counts.add(path, full=len(path) == 3 and path[0] == 0)
    return counts


@given(PATHS, PATHS)
def test_two_machines_merged_are_one_machine(one: list[list[int]], two: list[list[int]]) -> None:
    merged = counted(one)
    merged.merge(counted(two))
    assert merged == counted(one + two) == counted(two + one)
    assert merged.rounds == len(one) + len(two)


@given(PATHS)
def test_counts_come_back_from_json(paths: list[list[int]]) -> None:
    counts = counted(paths)
    assert Transitions.from_dict(json.loads(json.dumps(counts.to_dict()))) == counts


@given(PATHS)
def test_rows_and_single_rounds_count_alike(paths: list[list[int]]) -> None:
    keys = np.asarray([path + [-1] * (3 - len(path)) for path in paths]).reshape(-1, 3)
    full = np.asarray([len(path) == 3 and path[0] == 0 for path in paths], dtype=bool)
    counts = Transitions(BINNING)
    counts.add_keys(keys, full)
    assert counts == counted(paths)


@given(PATHS)
def test_every_arrival_is_a_visit(paths: list[list[int]]) -> None:
    counts = counted(paths)
    for stage, reached in enumerate(counts.reached):
        assert sum(counts.visits(stage).values()) == reached == sum(len(p) > stage for p in paths)


@given(PATHS, PATHS, PATHS)
def test_machines_that_began_with_one_rule_add_up_without_counting_it_twice(
    rule: list[list[int]], one: list[list[int]], two: list[list[int]]
) -> None:
    gathered = counted(rule + one)
    gathered.merge(counted(rule + two).since(counted(rule)))
    assert gathered == counted(rule + one + two)
    assert gathered.since(gathered) == counted([])


def test_what_counts_did_not_begin_with_is_not_taken_off() -> None:
    with pytest.raises(StopwiseError, match="did not begin with"):
        counted([[1, 2]]).since(counted([[1, 3]]))


@pytest.mark.parametrize("name", ["full", "ends", "labelled"])
def test_counts_that_differ_in_one_counter_alone_are_not_equal(name: str) -> None:
    one, two = counted([[0, 1, 2]]), counted([[0, 1, 2]])
    two.labelled[2, 0] = 1
    assert one != two
    one.labelled[2, 0] = 1
    assert one == two
    value = getattr(two, name)
    (value[0] if name == "ends" else value).clear()
    assert one != two


def test_counts_by_other_bins_are_refused() -> None:
    other = Transitions(Binning(edges=((0.5,), (), ()), labels=((), (), ())))
    with pytest.raises(StopwiseError, match="binning"):
        Transitions(BINNING).merge(other)


def test_a_full_run_goes_to_the_end() -> None:
    with pytest.raises(StopwiseError, match="full"):
        Transitions(BINNING).add([1, 2], full=True)
    with pytest.raises(StopwiseError, match="path"):
        Transitions(BINNING).add([1, 2, 3, 4])


@pytest.mark.parametrize(
    "change",
    [{"version": 9}, {"first": {"zz": 1}}, {"first": {"1": 0}}, {"first": {"1": -3}}, {"moves": []},
     {"moves": [{"1": 2}, {}]}, {"binning": None}, {"more": 1}, {"full": {"1": 1.5}}],
)  # fmt: skip
def test_damaged_counts_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(StopwiseError):
        Transitions.from_dict({**counted([[1, 2, 3]]).to_dict(), **change})


def stopped_by_confidence(rows: Observations, sure: float) -> Observations:
    """What a rule leaves behind that goes on only where a stage is not sure."""
    assert rows.confidences is not None
    codes = rows.codes.copy()
    going_on = np.ones(len(rows), dtype=bool)
    rng = np.random.default_rng(5)
    for stage in range(rows.stage_count - 1):
        going_on &= (rows.confidences[:, stage] < sure) | (rng.random(len(rows)) < 0.03)
        codes[~going_on, stage + 1 :] = NOT_CALLED
    return Observations(rows.labels, codes, rows.confidences)


def test_a_looking_rule_biases_pairs_but_not_transitions() -> None:
    """Only hard items go deeper: pair counters see far more disagreement than there is.

    The chance that the estimate from transitions misses by .03 is below 1e-6: it rests on more
    than 20,000 rows, with a standard error below .006.
    """
    rows, _ = made_up(60_000, (0.2, 0.9, 1.6), seed=3)
    true = float((rows.codes[:, 0] != rows.codes[:, 2]).mean())
    left = stopped_by_confidence(rows, 0.8)
    both = left.codes[:, 2] != NOT_CALLED
    pairs = float((left.codes[both, 0] != left.codes[both, 2]).mean())
    counts = Transitions.of(left, Binning.fit(left, confidence_bins=12))
    ends = carried_forward(counts)
    differ = sum(
        number
        for key, number in ends.items()
        if decode(key).partition[0] != decode(key).partition[2]
    )
    carried = differ / sum(ends.values())
    assert pairs > true + 0.1
    assert abs(carried - true) < 0.03


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_complete_rows_carried_forward_are_the_rows_themselves(seed: int) -> None:
    rows, _ = made_up(300, (0.2, 0.9, 1.6), seed=seed)
    counts = Transitions.of(rows, Binning.fit(rows))
    ends = carried_forward(counts)
    assert ends == pytest.approx({key: float(n) for key, n in counts.full.items()})
    keys = situations(rows, counts.binning)
    assert counts.rounds == 300
    assert sum(counts.first.values()) == len(keys)


def test_the_state_of_four_stages_stays_below_a_megabyte() -> None:
    rows, _ = made_up(40_000, (0.2, 0.6, 1.0, 1.6), labels=10, seed=2)
    counts = Transitions.of(rows, Binning.fit(rows))
    assert len(json.dumps(counts.to_dict(), separators=(",", ":"))) < 1_000_000


def form_of_a_log() -> dict[str, Any]:
    """As JSON holds what was counted of three stages that say how sure they are."""
    form: dict[str, Any] = Transitions.of(ROWS, Binning.fit(ROWS)).to_dict()
    return dict(json.loads(json.dumps(form)))


ROWS, _ = made_up(200, (0.0, 0.6, 1.2), seed=1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda form: form["first"].popitem(),  # a situation that nobody came to
        lambda form: form["moves"][0].popitem(),
        lambda form: form["moves"][1].popitem(),
        lambda form: form["full"].popitem(),
        lambda form: form["moves"][0].update({"5": {"7": 3}}),
        lambda form: form["ends"][0][next(iter(form["moves"][0]))].update({"7": 3}),
        lambda form: form["first"].update({"5": 1e300}),
        lambda form: form.update(labelled={"a": 1}),
        lambda form: form.update(labelled="auto"),
        lambda form: form.update(binning=[]),
        lambda form: form["binning"].update(label_count=10**30),
    ],
)
def test_counts_that_no_rounds_leave_behind_are_refused(spoil: Any) -> None:
    form = form_of_a_log()
    spoil(form)
    with pytest.raises(StopwiseError):
        Transitions.from_dict(form)


@pytest.mark.parametrize("form", [[], 1, None, "counts"])
def test_what_holds_no_counts_at_all_is_refused(form: Any) -> None:
    with pytest.raises(StopwiseError, match="transitions"):
        Transitions.from_dict(form)


def test_a_part_of_what_a_machine_counted_is_read_back() -> None:
    all_of_it, base = Transitions.from_dict(form_of_a_log()), Transitions(Binning.fit(ROWS))
    base.add_keys(situations(ROWS, base.binning)[:50])
    assert Transitions.from_dict(all_of_it.since(base).to_dict()).rounds == 150


def test_counts_are_not_added_to_themselves() -> None:
    counts = Transitions(Binning(edges=((), ()), labels=((), ())))
    counts.add([5, 7])
    with pytest.raises(StopwiseError, match="another machine"):
        counts.merge(counts)
    assert counts.rounds == 1
