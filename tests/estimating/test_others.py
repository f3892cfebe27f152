"""Each stage held against the plurality of the others, beside plain loops over the rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from stopwise.estimating import estimate
from stopwise.estimating.consensus import Groups
from stopwise.estimating.estimate import OTHERS
from stopwise.estimating.others import plurality_of_others


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


def made(seed, errors, items=2000):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, items)
    wrong = (truth + rng.integers(1, 3, (len(errors), items))) % 3
    return np.where(rng.random((len(errors), items)) < np.array(errors)[:, None], wrong, truth).T


def test_a_fifth_of_the_error_rates_is_what_the_others_say():
    codes = made(1, [0.35, 0.25, 0.2, 0.3])
    found = estimate(codes)
    by_models = 1 - found.right.mean(axis=0)
    by_others = 1 - np.array([by_loops(row) for row in codes.tolist()]).mean(axis=0)
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
