from __future__ import annotations

import json

import numpy as np
import pytest

from made_up_cascades import made_up
from stopwise.costs import Costs
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.binning import Binning
from stopwise.situations.references import hold_against
from stopwise.situations.transitions import Transitions


def labelled(skills: tuple[float, ...], labels: int, seed: int) -> tuple[Transitions, float, float]:
    """Counts with a few labels; total cost over the best fixed stage, before and after them."""
    rows, truth = made_up(6000, skills, seed=seed)
    fit, score = rows.where(np.arange(3000)), rows.where(np.arange(3000, 6000))
    counts = Transitions.of(fit, Binning.fit(fit))
    costs = Costs.from_stages([1.0, 2, 4, 8][: len(skills)], 60.0)
    stages = tuple("abcd"[: len(skills)])
    wrong = score.codes != truth[3000:, None]
    best = (np.asarray(costs.cumulative) + 60 * wrong.mean(axis=0)).min()

    def over_best() -> float:
        depths = Rule(stages, counts, costs).depths(score)
        total = np.asarray(costs.cumulative)[depths] + 60 * wrong[np.arange(3000), depths]
        return float(total.mean() / best)

    before = over_best()
    differ = np.flatnonzero((fit.codes != fit.codes[:, :1]).any(axis=1))
    pick = np.random.default_rng(seed).choice(differ, labels, replace=False)
    counts.add_labels(fit.where(pick), truth[:3000][pick])
    return counts, before, over_best()


@pytest.mark.parametrize("seed", range(3))
def test_thirty_labels_save_a_cascade_with_a_bad_last_stage(seed: int) -> None:
    counts, before, after = labelled((0.4, 1.2, 0.2, 0.1), 30, seed)
    assert after < before
    assert after < 1.05
    assert sum(counts.labelled.values()) == 30


@pytest.mark.parametrize("seed", range(3))
def test_thirty_labels_restore_a_good_last_stage_that_was_doubted(seed: int) -> None:
    counts, before, after = labelled((0.0, 0.6, 2.0), 30, seed)
    weights = hold_against(counts).weights
    assert weights is not None
    assert max(weights, key=lambda name: weights[name]) == "stage 2"
    assert after <= before + 0.02


def test_labels_add_up_and_come_back_from_json() -> None:
    one, _, _ = labelled((0.0, 1.0, 2.0), 10, 1)
    again = Transitions.from_dict(json.loads(json.dumps(one.to_dict())))
    assert again == one
    again.merge(one)
    assert sum(again.labelled.values()) == 20


def test_a_trust_that_is_given_is_kept_beside_labels() -> None:
    counts, _, _ = labelled((0.0, 1.0, 2.0), 10, 1)
    assert hold_against(counts, "last", trust=0.4).weights is None
    assert hold_against(counts, "auto", trust=0.4).trust == 0.4
