"""USS-VOI on one pair against the optimal stopping rule, computed backwards from the horizon.

Two stages, a uniform prior on their disagreement: the Bayes problem that the rule approximates. All
risks here are exact sums, so nothing is left to chance.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc

from stopwise import Costs, Evidence
from stopwise.costs import FloatArray
from stopwise.policies.voi import UssVoi

HORIZON = 1_000
RHO0 = 0.05


def stakes(threshold: float, seen: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Expected loss of a stop in a round, expected loss of a look, and mean, for every count."""
    disagreed = np.arange(seen + 1)
    a, b = disagreed + 1.0, seen - disagreed + 1.0
    mean = a / (a + b)
    below, weighted = betainc(a, b, threshold), betainc(a + 1, b, threshold)
    stop = np.maximum(mean * (1 - weighted) - threshold * (1 - below), 0)
    look = np.maximum(threshold * below - mean * weighted, 0) + RHO0 * mean * weighted
    return stop, look, mean


def risk(threshold: float, first_to_look: dict[int, int] | None) -> float:
    """Bayes risk of a rule that looks from so many disagreements on; None: of the best rule."""
    value = np.zeros(HORIZON + 1)
    for seen in range(HORIZON - 1, -1, -1):
        stop, look, mean = stakes(threshold, seen)
        stopping = (HORIZON - seen) * stop
        looking = look + mean * value[1 : seen + 2] + (1 - mean) * value[: seen + 1]
        if first_to_look is None:
            value = np.minimum(stopping, looking)
        else:
            value = np.where(np.arange(seen + 1) < first_to_look[seen], stopping, looking)
    return float(value[0])


def boundary(policy: UssVoi, threshold: float) -> dict[int, int]:
    """From how many disagreements on the policy looks, at every number of looks."""
    costs = Costs.from_cumulative((0.0, threshold))

    def looks(seen: int, disagreed: int) -> bool:
        pair = np.array([[0, 1], [0, 0]])
        evidence = Evidence.from_counts((pair * seen).tolist(), (pair * disagreed).tolist())
        return bool(policy.probabilities(evidence, seen + 1, costs)[1] == 1.0)

    first = {0: 0}
    for seen in range(1, HORIZON):
        at = first[seen - 1]  # one look moves the boundary by one at most
        while at <= seen and not looks(seen, at):
            at += 1
        while at > 0 and looks(seen, at - 1):
            at -= 1
        first[seen] = at
    return first


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5])
def test_risk_is_near_the_least_possible(threshold: float) -> None:
    least = risk(threshold, None)
    mine = risk(threshold, boundary(UssVoi(horizon=HORIZON), threshold))
    assert least <= mine <= 1.06 * least
    # The check can fail: a rule four times as bold, or a third as bold, is told apart.
    for kappa in (0.5, 6.0):
        other = risk(threshold, boundary(UssVoi(horizon=HORIZON, kappa=kappa), threshold))
        assert other > mine
