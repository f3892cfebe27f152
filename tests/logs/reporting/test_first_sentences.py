"""The first sentences are short and true, and say nothing twice."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from stopwise.logs import analyze
from stopwise.logs.judging.intervals import rows_needed
from stopwise.logs.reporting import headline, words


def log(rows=400, errors=(0.3, 0.15, 0.1), seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, rows)
    wrong = [np.where(rng.random(rows) < e, (truth + 1) % 3, truth) for e in errors]
    return pl.DataFrame(dict(zip("abc", wrong, strict=True)))


@pytest.mark.full_estimate
def test_an_estimate_is_named_so_in_a_short_first_sentence():
    analysis = analyze(log(), stages=["a", "b", "c"], costs=[1, 3, 9], mistake_cost=15)
    assert analysis.readings.headline_reading == "estimated"
    first, why, *_ = analysis.sentence.split(". ")
    assert first == "Stop at a (estimated, not certain)"
    assert why.startswith("Judged by how the stages agree among themselves, it is wrong on about")


def test_what_is_the_same_called_alone_is_not_said_again():
    given = {"stages": ["a", "b", "c"], "costs": [1, 3, 9]}
    same = analyze(log(), mistake_cost=3, **given)
    assert same.alone is not None
    said = headline.alone_sentence(same.alone, same.verdict, same.readings)
    assert said == "If each stage can be called alone: the same stage, for the same reasons."
    # In a cascade b costs 4, alone 3: it is worth its price alone.
    other = analyze(log(), mistake_cost=30, **given)
    assert other.alone is not None
    said = headline.alone_sentence(other.alone, other.verdict, other.readings)
    assert said.startswith("If each stage can be called alone: call b alone")


def test_where_no_stage_is_named_none_is_the_same_called_alone():
    given = {"stages": ["a", "b", "c"], "costs": [1, 3, 9], "mistake_cost": 60}
    analysis = analyze(log(), reading="certain", **given)
    assert analysis.readings.headline_stage is None
    assert analysis.alone is not None
    said = headline.alone_sentence(analysis.alone, analysis.verdict, analysis.readings)
    assert said == "If each stage can be called alone: no stage can be named either."


def test_a_step_that_costs_a_mistake_has_nothing_to_fix():
    analysis = analyze(log(), stages=["a", "b", "c"], costs=[1, 3, 40], mistake_cost=30)
    said = words.pair_sentence(analysis.verdict, analysis.verdict.pair(1, 2))
    assert said.endswith("whatever the truth: the step to it costs as much as a mistake, or more.")


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_would_do_are_more_than_there_are(seed):
    """Costs that are measured become surer with more rows too: that takes its own number."""
    rng = np.random.default_rng(seed)
    frame = log(200, seed=seed).with_columns(
        pl.Series(f"{stage}:cost", rng.lognormal(at, 1.5, 200) * 0.05)
        for at, stage in enumerate("abc")
    )
    found = False
    for mistake_cost in np.geomspace(0.3, 30, 25):
        verdict = analyze(frame, mistake_cost=float(mistake_cost)).verdict
        for pair in verdict.pairs:
            if pair.verdict == "too few rows":
                found = True
                assert pair.more_rows_settle is not None
                assert pair.more_rows_settle > pair.seen
    assert found


def test_rows_for_a_measured_threshold():
    """With that many rows the bound of the share lies below that of the threshold; not before."""
    from stopwise.theory import share_bounds

    rows = rows_needed(0.1, 0.2, 0.01, unsure=1.0)
    assert rows is not None
    assert rows > rows_needed(0.1, 0.2, 0.01)
    for number, enough in ((rows, True), (rows - 1, False)):
        high = float(share_bounds(0.1 * number, number, 0.01)[1])
        assert (high < 0.2 - 1 / np.sqrt(number)) == enough
