"""Who is less sure than usual where the last stage is outvoted."""

from __future__ import annotations

import numpy as np
import pytest

from stopwise.situations.binning import Binning
from stopwise.situations.observations import ABSTAINED, Observations
from stopwise.situations.references import DOUBT_OF_THREE, Agreed, agreed, hold_against
from stopwise.situations.sureness import FEWEST_DIFFERENCES, last_is_surer
from stopwise.situations.transitions import Transitions


def counts_of(codes: np.ndarray, sure: np.ndarray | None) -> Transitions:
    rows = Observations(("no", "yes"), codes, sure)
    return Transitions.of(rows, Binning.fit(rows))


def tools_and_a_person(*, last_is_right: bool, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Three tools that err together against a last stage, or are right against a bad one.

    The outputs of both cases have the same law: agreement cannot tell them apart. Whoever is wrong
    is less sure than usual.
    """
    rng = np.random.default_rng(seed)
    rows = 3000
    truth = rng.integers(0, 2, rows)
    apart = rng.random(rows) < 0.3
    slips = rng.random((rows, 3)) < 0.05
    wrong_tools, wrong_last = (apart, False) if last_is_right else (False, apart)
    tools = truth[:, None] ^ slips ^ np.asarray(wrong_tools).reshape(-1, 1)
    last = truth ^ np.asarray(wrong_last)
    codes = np.column_stack([tools, last]).astype(np.int64)
    sure = rng.normal(size=codes.shape) + (codes == truth[:, None])
    return codes, sure


def test_confidences_tell_apart_what_agreement_cannot() -> None:
    """Some 850 outvoted items, ranks 0.2 apart: 17 standard errors from telling nothing."""
    for last_is_right, surer, doubt in ((True, 1.0, 0.0), (False, -1.0, 1.0)):
        codes, sure = tools_and_a_person(last_is_right=last_is_right)
        counts = counts_of(codes, sure)
        found = agreed(counts)
        assert found is not None
        assert max(found.accuracies[:-1]) > found.accuracies[-1] + 0.2
        assert found.surer == pytest.approx(surer, abs=0.01)
        assert hold_against(counts).doubt == pytest.approx(doubt, abs=0.01)
        assert hold_against(counts_of(codes, None)).doubt == 1.0


def test_confidences_that_tell_nothing_change_little() -> None:
    """Both mean ranks are 0.5 then. Of 24 such draws the largest was .41, half were below .13."""
    codes, _ = tools_and_a_person(last_is_right=True)
    heard = []
    for seed in range(9):
        noise = np.random.default_rng(seed).normal(size=codes.shape)
        heard.append(abs(last_is_surer(counts_of(codes, noise), 2)))
    assert np.median(heard) < 0.3
    assert last_is_surer(counts_of(codes, np.ones(codes.shape)), 2) == 0
    assert last_is_surer(counts_of(codes, None), 2) == 0


def test_the_majority_is_surer_by_nature_and_that_is_no_doubt() -> None:
    codes, _ = tools_and_a_person(last_is_right=True)
    outvoted = (codes[:, 2] != codes[:, 3]) & (codes[:, :3].sum(axis=1) % 3 == 0)
    ranks = np.linspace(0, 1, len(codes))[:, None].repeat(4, axis=1)
    ranks = np.random.default_rng(1).permuted(ranks, axis=0)
    ranks[outvoted, 3] -= 0.08
    assert last_is_surer(counts_of(codes, ranks), 2) == 0
    ranks[outvoted, 3] -= 0.4
    assert last_is_surer(counts_of(codes, ranks), 2) < -0.99


def test_a_few_dozen_items_tell_two_sides_apart_and_are_not_quite_believed() -> None:
    """As many as full runs find in some thousand rounds: no test would call them beyond chance."""
    codes, sure = tools_and_a_person(last_is_right=True)
    heard = last_is_surer(counts_of(codes[:150], sure[:150]), 2)
    assert 0.3 < heard < last_is_surer(counts_of(codes, sure), 2)


def test_a_less_sure_last_stage_is_not_doubted_where_none_outdoes_it() -> None:
    apart = {"chain": 0.0, "noise": 0.0, "right": {}, "surer": -1.0}
    assert Agreed((0.7, 0.8, 0.82), **apart).doubt == DOUBT_OF_THREE[0]
    assert Agreed((0.7, 0.9, 0.82), **apart).doubt == 1.0
    chained = apart | {"chain": 1.0}
    assert Agreed((0.7, 0.9, 0.82), **chained).doubt == 0.0


def test_abstentions_and_few_items_say_nothing() -> None:
    codes, sure = tools_and_a_person(last_is_right=True)
    silent = codes.copy()
    silent[codes[:, 2] != codes[:, 3], 3] = ABSTAINED
    assert last_is_surer(counts_of(silent, sure), 2) == 0
    few = FEWEST_DIFFERENCES - 1
    assert last_is_surer(counts_of(codes[:few], sure[:few]), 2) == 0
    two = counts_of(codes[:, 2:], sure[:, 2:])
    assert last_is_surer(two, 0) == 0


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_counts_that_are_merged_say_the_same_as_counts_of_all(stage: int) -> None:
    codes, sure = tools_and_a_person(last_is_right=True)
    rows = Observations(("no", "yes"), codes, sure)
    binning = Binning.fit(rows)
    parts = [
        Transitions.of(rows.where(half), binning) for half in (slice(0, 1000), slice(1000, None))
    ]
    parts[0].merge(parts[1])
    whole = Transitions.of(rows, binning)
    assert last_is_surer(parts[0], stage) == last_is_surer(whole, stage) > 0.99
    read = Transitions.from_dict(whole.to_dict())
    assert last_is_surer(read, stage) > 0.99


def test_files_without_the_last_ends_are_still_read() -> None:
    codes, sure = tools_and_a_person(last_is_right=True)
    form = counts_of(codes, sure).to_dict()
    form["ends"] = form["ends"][:-1]
    read = Transitions.from_dict(form)
    assert last_is_surer(read, 2) == 0
    assert last_is_surer(read, 1) > 0.99
