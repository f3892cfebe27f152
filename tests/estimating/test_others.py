"""Each stage held against the others, beside plain loops over the rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from stopwise.estimating import estimate
from stopwise.estimating.consensus import Groups, consensus
from stopwise.estimating.estimate import OTHERS
from stopwise.estimating.others import consensus_of_others, plurality_of_others


def by_loops(row):
    """Whether the others give each stage's answer most, ties shared; nan if none answers."""
    found = []
    for stage, own in enumerate(row):
        said = [code for at, code in enumerate(row) if at != stage and code >= 0]
        counts = Counter(said)
        top = [label for label, times in counts.items() if times == max(counts.values())]
        if own < 0:
            found.append(0.0)
        elif not said:
            found.append(np.nan)
        else:
            found.append(1 / len(top) if own in top else 0.0)
    return found


@pytest.mark.parametrize("stages", [2, 3, 4, 7])
def test_equals_plain_loops(stages):
    rows = np.random.default_rng(stages).integers(-1, 4, (400, stages))
    groups = Groups.of(rows, np.ones(len(rows)))
    expected = [by_loops(row) for row in rows.tolist()]
    np.testing.assert_allclose(plurality_of_others(groups)[groups.inverse], expected)


def by_bayes(row, accuracy, votes, kinds):
    """The chance that each answer is right, by those of the others; label by label."""
    found = []
    for stage, own in enumerate(row):
        others = [at for at, code in enumerate(row) if at != stage and code >= 0]
        if own < 0:
            found.append(0.0)
        elif not others:
            found.append(np.nan)
        else:
            chances = np.ones(kinds)
            for at in others:
                wrong = (1 - accuracy[at]) / (kinds - 1)
                hit = np.where(np.arange(kinds) == row[at], accuracy[at], wrong)
                chances *= hit ** votes[at]
            found.append(chances[own] / chances.sum())
    return found


@pytest.mark.parametrize("stages", [2, 3, 4, 7])
def test_equals_bayes_label_by_label(stages):
    rng, kinds = np.random.default_rng(stages), 5
    rows = rng.integers(-1, kinds, (400, stages))
    accuracy, votes = rng.uniform(0.15, 0.95, stages), rng.uniform(0.3, 1, stages)
    groups = Groups.of(rows, np.ones(len(rows)))
    expected = [by_bayes(row, accuracy, votes, kinds) for row in rows.tolist()]
    found = consensus_of_others(groups, accuracy, votes, kinds)[groups.inverse]
    np.testing.assert_allclose(found, expected)


def test_sure_stages_with_many_labels_stay_numbers():
    rows = np.array([[0] * 40 + [1] * 40, list(range(80))])
    groups = Groups.of(rows, np.ones(2))
    found = consensus_of_others(groups, np.full(80, 1 - 1e-4), np.ones(80), kinds=100_000)
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1


def made(seed, errors, items=2000):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, items)
    wrong = (truth + rng.integers(1, 3, (len(errors), items))) % 3
    return np.where(rng.random((len(errors), items)) < np.array(errors)[:, None], wrong, truth).T


def test_a_fifth_of_the_error_rates_is_what_the_others_say():
    codes = made(1, [0.35, 0.25, 0.2, 0.3])
    found = estimate(codes)
    by_models = 1 - found.right.mean(axis=0)
    by_number = np.array([by_loops(row) for row in codes.tolist()])
    model = consensus(codes)
    by_weight = np.array([by_bayes(row, model.accuracy, model.votes, 3) for row in codes.tolist()])
    by_others = 1 - (by_number + by_weight).mean(axis=0) / 2
    assert found.dependence.chain == 0
    expected = (1 - OTHERS) * by_models + OTHERS * by_others
    np.testing.assert_allclose(found.error_rates, expected)
    # The samples are of the same mixture: their mean is near it (200 samples of 2,000 items).
    np.testing.assert_allclose(found.draws.mean(axis=0), expected, atol=0.03)


def test_copies_are_not_held_against_each_other():
    codes = made(2, [0.35, 0.25, 0.2, 0.3])[:, [0, 0, 1, 2, 3]]
    found = estimate(codes)
    np.testing.assert_allclose(found.error_rates, 1 - found.right.mean(axis=0))


def test_two_stages_are_not_held_against_each_other():
    found = estimate(made(3, [0.3, 0.2]))
    np.testing.assert_allclose(found.error_rates, 1 - found.right.mean(axis=0))


def test_a_last_stage_that_contradicts_both_others_follows_neither():
    """Of eleven labels the first stage knows two, the last four, the middle one all.

    The last rarely goes back to what the first said, as in a chain; but it follows nobody.
    """
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 11, 3000)
    middle = np.where(rng.random(3000) < 0.04, rng.integers(0, 11, 3000), truth)
    first, last = np.where(truth == 0, 0, 1), np.where(truth < 9, 5 + truth % 2, truth)
    found = estimate(np.stack([first, middle, last], axis=1))
    assert found.dependence.chain > 0.9
    assert found.lean < 0.1
    assert found.error_rates.argmin() == 1
