"""From evidence to a depth: the policy's distribution, full runs, budgets, one random number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stopwise.costs import Costs, FloatArray
from stopwise.decisions import first_passing_stage
from stopwise.evidence import Evidence
from stopwise.live.choosing.draws import RoundDraws
from stopwise.live.choosing.from_counts import FromCounts
from stopwise.live.choosing.prices import Prices
from stopwise.live.counters.distributions.carried import Limits
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.counters.tally import Tally
from stopwise.live.settings import LearnerSettings
from stopwise.policies.base import Policy
from stopwise.problem import IntArray

_FEW = 6
"""Up to this many sums are compared one after the other."""


class Chooser:
    """Draws depths. Everything it adds to the policy keeps the probabilities exact."""

    __slots__ = ("_from_counts", "_own_draw", "_rate", "draws", "policy")

    def __init__(self, policy: Policy, settings: LearnerSettings, seed: int) -> None:
        self.policy = policy
        self._rate = 0.0 if settings.alone else settings.full_run_rate  # alone: see `LoneCalls`
        self._from_counts = FromCounts.of(policy, len(settings.stages))
        self._own_draw = type(policy).draw is not Policy.draw
        self.reseed(seed)

    def reseed(self, seed: int, writer: int = 0) -> None:
        """Belong to this seed and writer from now on."""
        self.draws = RoundDraws(seed, writer)

    def distribution(
        self, counters: SegmentCounters, tally: Tally, number: int, prices: Prices, deepest: int
    ) -> list[float]:
        """The distribution of the depth, after full runs and budgets."""
        if tally.fast is not None:
            p = tally.fast.distribution(number)
        elif self._from_counts is not None:
            seen, disagreed = counters.counts_for(tally)
            p = self._from_counts.distribution(seen, disagreed, prices.thresholds)
        else:
            evidence = counters.evidence_for(tally)
            p = self.policy.probabilities(evidence, number, prices.costs).tolist()
        if not self._rate and deepest >= len(p) - 1:
            return p
        return Limits(self._rate, deepest).of(p)

    def draw(
        self,
        counters: SegmentCounters,
        tally: Tally,
        number: int,
        sequence: int,
        prices: Prices,
        deepest: int,
    ) -> tuple[int, float]:
        """A depth and its exact probability."""
        p = self.distribution(counters, tally, number, prices, deepest)
        u = self.draws.uniform(sequence)
        if not self._own_draw:
            depth = pick(p, u)
        elif u < self._rate:
            depth = min(len(p) - 1, deepest)
        else:
            rng = self.draws.generator(sequence)
            evidence = counters.evidence_for(tally)
            depth = min(int(self.policy.draw(evidence, number, prices.costs, rng)), deepest)
        return depth, p[depth]

    def draw_many(
        self,
        counters: SegmentCounters,
        tally: Tally,
        number: int,
        sequence: int,
        prices: Prices,
        deepest: int,
        size: int,
    ) -> tuple[IntArray, list[float]]:
        """The depths of many rounds begun together, and the distribution they share.

        A policy with a clock is asked once, for the first of them; one that draws in its own
        way is not asked for a draw but for its probabilities.
        """
        p = self.distribution(counters, tally, number, prices, deepest)
        sums = np.cumsum(p)
        u = self.draws.uniforms(sequence, size) * sums[-1]
        return sums_reached(sums[:-1], u), p


def sums_reached(sums: FloatArray, u: FloatArray) -> IntArray:
    """How many of the rising sums each number has reached.

    >>> sums_reached(np.array([0.25, 0.75]), np.array([0.1, 0.25, 0.9])).tolist()
    [0, 1, 2]
    """
    if not 1 <= len(sums) <= _FEW:
        return np.asarray(np.searchsorted(sums, u, side="right"), dtype=np.int64)
    # For a few sums, comparisons of whole arrays take half the time.
    reached: IntArray = (u >= sums[0]).astype(np.int8)
    for value in sums[1:]:
        reached += u >= value
    return reached.astype(np.int64)


def pick(p: Sequence[float], u: float) -> int:
    """The depth that a uniform number picks, as `Policy.draw` does.

    >>> pick([0.25, 0.75], 0.3)
    1
    """
    left = u * sum(p)
    for depth, share in enumerate(p):
        left -= share
        if left < 0:
            return depth
    return max(depth for depth, share in enumerate(p) if share > 0)


def deterministic_stage(evidence: Evidence, costs: Costs) -> int:
    """The first stage whose observed disagreements are all below their thresholds.

    A tie goes deeper, as everywhere (`stopwise.decisions`).

    >>> seen, disagreed = [[0, 9], [0, 0]], [[0, 1], [0, 0]]
    >>> costs = Costs.from_cumulative((0.0, 0.25))
    >>> deterministic_stage(Evidence.from_counts(seen, disagreed), costs)
    0
    """
    seen, thresholds = evidence.seen, costs.thresholds
    # A pair that was never seen rules nothing out, but for a threshold above any disagreement.
    unseen = np.where(thresholds >= 1, 0.0, np.inf)
    rates = np.divide(evidence.disagreed, seen, out=unseen, where=seen > 0)
    return first_passing_stage(thresholds, rates)
