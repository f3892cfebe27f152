"""What a stage's silence means, against a plain loop over rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise.abstentions import (
    ABSTENTIONS,
    NO_ANSWER,
    UNKNOWN,
    answering_stages,
    answers,
    as_abstentions,
    calling_rates,
)
from stopwise.checks import StopwiseError

tables = st.integers(1, 4).flatmap(
    lambda stages: st.lists(
        st.lists(st.integers(-2, 3), min_size=stages, max_size=stages), min_size=1, max_size=8
    )
)


def who_answers(row, stop, abstentions):
    """One row, one stage to stop at, as one would explain it."""
    if abstentions == "leave out":
        return stop if row[stop] >= 0 else UNKNOWN
    if abstentions == "mistake":
        return stop if row[stop] >= 0 else row[stop]
    for stage in range(stop, len(row)):
        if row[stage] == UNKNOWN:
            return UNKNOWN
        if row[stage] >= 0:
            return stage
    return NO_ANSWER


@given(tables, st.sampled_from(ABSTENTIONS))
def test_who_answers(table, abstentions):
    who = answering_stages(table, abstentions)
    code = answers(table, abstentions)
    for row, found, said in zip(table, who, code, strict=True):
        for stop in range(len(row)):
            expected = who_answers(row, stop, abstentions)
            assert found[stop] == expected
            assert said[stop] == (row[expected] if expected >= 0 else expected)


@given(tables, st.sampled_from(ABSTENTIONS), st.data())
def test_how_often_each_stage_is_called(table, abstentions, data):
    times = data.draw(st.lists(st.integers(0, 5), min_size=len(table), max_size=len(table)))
    rates = calling_rates(table, times, abstentions)
    stages = len(table[0])
    for stop in range(stages):
        assert (rates[stop, : stop + 1] == 1).all()
        for stage in range(stop + 1, stages):
            called = known = 0
            for row, number in zip(table, times, strict=True):
                who = who_answers(row, stop, "go on")
                if abstentions == "go on" and who != UNKNOWN:
                    known += number
                    called += number * (who == NO_ANSWER or who >= stage)
            assert rates[stop, stage] == pytest.approx(called / known if known else 0.0)


def test_all_stages_silent_is_no_answer_not_unknown():
    assert answers([[-1, -1]], "go on").tolist() == [[NO_ANSWER, NO_ANSWER]]
    assert answers([[-1, -1]], "leave out").tolist() == [[UNKNOWN, UNKNOWN]]


@pytest.mark.parametrize("written", ["go on", "go-on", "go_on"])
def test_ways_to_write_it(written):
    assert as_abstentions(written) == "go on"


@pytest.mark.parametrize("wrong", ["", "goon", "skip", None, 1, np.nan])
def test_refused(wrong):
    accepted = "'go on', 'mistake' or 'leave out'"
    with pytest.raises(StopwiseError, match=f"abstentions: got .*{accepted}"):
        as_abstentions(wrong)
