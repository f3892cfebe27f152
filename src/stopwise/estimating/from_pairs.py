"""The same estimate from pair counters alone, where the outputs of the rounds were not kept.

If errors are independent, two stages agree with probability a_i a_j + (1 - a_i)(1 - a_j) / (K - 1).
Three stages or more give as many equations as unknowns, or more: the accuracies that fit all pairs
best are found by least squares, one stage at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stopwise.arrays import FloatArray
from stopwise.checks import fail, names_settings
from stopwise.estimating.estimate import DOUBLING, leaning

USUAL_LABELS = 4
"""How many labels are assumed where nobody says; the estimate hardly depends on it above 2."""


@dataclass(frozen=True)
class PairEstimate:
    """Error rates estimated from disagreements alone.

    Attributes:
        error_rates: share of items on which each stage is wrong.
        accuracy: of every stage, from agreement alone, before the lean towards deeper stages.
        unexplained: for every pair, agreement less what is explained.

    >>> found = estimate_from_pairs([[0, 0.2, 0.2], [0, 0, 0.2], [0, 0, 0]])
    >>> bool(np.ptp(found.accuracy) < 1e-6)              # all pairs differ alike: nobody is better
    True
    """

    error_rates: FloatArray
    accuracy: FloatArray
    unexplained: FloatArray


@names_settings
def estimate_from_pairs(disagreement: ArrayLike, labels: int = USUAL_LABELS) -> PairEstimate:
    """Estimate error rates from the disagreement of all pairs.

    Args:
        disagreement: p_ij, of which the part above the diagonal is read.
        labels: how many different answers there are.

    >>> a, b, c = 0.7, 0.8, 0.9       # two labels: agree if both are right or both wrong
    >>> p = np.zeros((3, 3))
    >>> p[0, 1], p[0, 2], p[1, 2] = a + b - 2 * a * b, a + c - 2 * a * c, b + c - 2 * b * c
    >>> estimate_from_pairs(p, labels=2).accuracy.round(3)
    array([0.7, 0.8, 0.9])
    """
    upper = np.triu(np.asarray(disagreement, dtype=np.float64), 1)
    stage_count = len(upper)
    if stage_count < 3:
        raise fail("disagreement", f"{stage_count} stages", "three stages or more")
    p = upper + upper.T
    if np.isnan(p).any():
        raise fail("disagreement", "a pair that was never seen", "a share for every pair")
    agreement = 1 - p
    wrong = 1 / (max(labels, 2) - 1)
    accuracy = np.full(stage_count, 0.8)
    for _ in range(2000):
        before = accuracy.copy()
        for i in range(stage_count):
            others = np.arange(stage_count) != i
            slope = accuracy[others] - wrong * (1 - accuracy[others])
            target = agreement[i, others] - wrong * (1 - accuracy[others])
            fitted = slope @ target / max(float(slope @ slope), 1e-12)
            accuracy[i] = np.clip(fitted, 0.02, 0.995)
        if np.abs(accuracy - before).max() < 1e-10:
            break
    lean, belief = leaning(accuracy)
    deeper = p @ belief
    a, b = accuracy[:, None], accuracy[None, :]
    unexplained = agreement - (a * b + (1 - a) * (1 - b) * wrong)
    np.fill_diagonal(unexplained, 0.0)
    return PairEstimate(
        error_rates=(1 - lean) * (1 - accuracy) + lean * deeper,
        accuracy=accuracy,
        unexplained=unexplained,
    )


def by_rule_of_thumb(disagreement: ArrayLike) -> FloatArray:
    """Error rates if each stage is twice as believable as the one before it, and nothing else.

    With two stages nothing can be estimated. In logs with known truth, going deeper fixed, on
    balance, about a third of the differences: which is what this says.

    >>> by_rule_of_thumb([[0, 0.3], [0, 0]]).round(2)
    array([0.2, 0.1])
    """
    upper = np.nan_to_num(np.triu(np.asarray(disagreement, dtype=np.float64), 1))
    belief = DOUBLING ** np.arange(len(upper), dtype=np.float64)
    return np.asarray((upper + upper.T) @ (belief / belief.sum()))
