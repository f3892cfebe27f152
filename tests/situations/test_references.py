from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from made_up_cascades import made_up
from stopwise.agreement import partitions
from stopwise.checks import StopwiseError
from stopwise.situations.binning import Binning
from stopwise.situations.consensus import Consensus, consensus
from stopwise.situations.observations import Observations
from stopwise.situations.references import agreed, hold_against
from stopwise.situations.references_base import differs_from
from stopwise.situations.transitions import Transitions


def brute_force_posterior(codes: list[int], accuracies: list[float], labels: int) -> list[float]:
    """The chance that each output is right, by adding up over every truth there could be."""
    likelihood = []
    for truth in range(labels):
        each = [
            p if code == truth else (1 - p) / (labels - 1)
            for code, p in zip(codes, accuracies, strict=True)
            if code >= 0
        ]
        likelihood.append(math.prod(each))
    total = sum(likelihood)
    return [likelihood[code] / total if code >= 0 else 0.0 for code in codes]


@pytest.mark.parametrize("labels", [2, 3, 5])
def test_the_chance_to_be_right_is_that_of_a_sum_over_all_truths(labels: int) -> None:
    accuracies = [0.6, 0.75, 0.9]
    rows = list(itertools.product(range(-1, labels), repeat=3))
    rows = [row for row in rows if max(row) >= 0]
    found = Consensus(np.asarray(accuracies), labels).chance_right(partitions(np.asarray(rows)))
    expected = [brute_force_posterior(list(row), accuracies, labels) for row in rows]
    assert found == pytest.approx(np.asarray(expected), abs=1e-9)


def test_the_consensus_finds_the_accuracies_of_independent_stages() -> None:
    """With 40,000 rows the standard error is below .005; .03 is six of them (below 1e-6)."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 4, 40_000)
    accuracies = (0.6, 0.8, 0.9, 0.7)
    codes = np.stack(
        [
            np.where(rng.random(40_000) < p, truth, (truth + rng.integers(1, 4, 40_000)) % 4)
            for p in accuracies
        ],
        axis=1,
    )
    groups, number = np.unique(partitions(codes), axis=0, return_counts=True)
    found = consensus(groups, number.astype(float), labels=4)
    assert found.accuracies == pytest.approx(accuracies, abs=0.03)


def counts_of(skills: tuple[float, ...], seed: int = 0) -> Transitions:
    rows, _ = made_up(4000, skills, seed=seed)
    return Transitions.of(rows, Binning.fit(rows))


def independent(accuracies: tuple[float, ...]) -> Transitions:
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 3, 4000)
    wrong = (truth[:, None] + rng.integers(1, 3, (4000, len(accuracies)))) % 3
    right = rng.random((4000, len(accuracies))) < accuracies
    rows = Observations(("a", "b", "c"), np.where(right, truth[:, None], wrong))
    return Transitions.of(rows, Binning.fit(rows))


def test_a_good_last_stage_is_not_doubted_and_a_bad_one_is() -> None:
    good, bad = independent((0.6, 0.8, 0.9)), independent((0.7, 0.8, 0.85, 0.5))
    assert hold_against(good).doubt == 0
    assert hold_against(bad).doubt == 1
    assert hold_against(bad, "last").doubt == 0
    assert hold_against(good, "consensus").doubt == 1


def test_trust_scales_the_loss_against_a_stage() -> None:
    counts = counts_of((0.0, 1.0, 2.0))
    groups = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 2]])
    assert hold_against(counts, "last").loss(groups) == pytest.approx(0.7 * differs_from(groups, 2))
    assert hold_against(counts, 1).loss(groups) == pytest.approx(differs_from(groups, 1))
    assert hold_against(counts, "last", trust=0.4).loss(groups)[0, 1] == pytest.approx(0.4)


def test_two_stages_have_no_consensus() -> None:
    counts = counts_of((0.0, 1.0))
    assert agreed(counts) is None
    assert hold_against(counts).accuracies is None


def test_too_few_full_runs_have_no_consensus() -> None:
    rows, _ = made_up(20, (0.0, 0.5, 1.0))
    assert agreed(Transitions.of(rows, Binning.fit(rows))) is None


def test_where_the_last_stage_abstains_the_deepest_answer_stands_for_it() -> None:
    assert differs_from(np.array([[0, 1, -1], [-1, -1, -1]]), 2).tolist() == [[1, 0, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("given", "part"),
    [({"reference": "best"}, "reference"), ({"reference": 7}, "reference"),
     ({"reference": True}, "reference"), ({"trust": 0}, "trust"), ({"trust": 1.5}, "trust"),
     ({"trust": "x"}, "trust")],
)  # fmt: skip
def test_what_cannot_be_a_reference_is_refused(given: dict[str, object], part: str) -> None:
    rows = Observations(("a",), np.zeros((3, 2), int))
    with pytest.raises(StopwiseError, match=part):
        hold_against(Transitions.of(rows, Binning.fit(rows)), **given)  # type: ignore[arg-type]
