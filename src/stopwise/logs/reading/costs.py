"""What the stages cost: as the user says, or as the log was billed, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stopwise.abstentions import calling_rates
from stopwise.checks import StopwiseError, fail
from stopwise.costs import Calls, Costs, FloatArray
from stopwise.logs.reading.bills import Spread
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.settings import LogSettings

PARTS = np.geomspace(1e-5, 0.99, 24)
"""Parts of the capital to bet; see `mean_bounds`.

The best part is about the precision looked for, over the squared coefficient of variation: small
ones are for many costs, and for a few that pay for all. With none below .01 a bound never came
closer to the mean than half a per cent of that square, however many costs there were.
"""

_TOLERANCE = 1e-6
"""How far below the true bound the one found may lie, in parts of the mean."""


@dataclass(frozen=True)
class CostBounds:
    """Each stage's own cost with an interval; for given costs the interval is a point.

    Attributes:
        low, high: bounds on each stage's own cost.
        measured: whether the costs were billed in the log.
        own: each stage's own cost.
        beyond_high: how often, at most, stopping at a stage calls a deeper one all the same,
            because it gave no answer (rows: the stage to stop at); None where that never happens.
        calls: how stages are called: "alone", none pays for those before it; None: nobody said.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    measured: bool
    own: tuple[float, ...] = ()
    beyond_high: FloatArray | None = None
    calls: Calls | None = None

    @property
    def alone(self) -> bool:
        """Whether each stage costs what it costs by itself."""
        return self.calls == "alone"

    def steps_low(self) -> FloatArray:
        """The least that stopping at a deeper stage costs more: one row per shallower stage.

        >>> CostBounds((1.0, 2.0), (1.0, 2.0), measured=False).steps_low()
        array([[0., 2.],
               [0., 0.]])
        >>> CostBounds((1.0, 3.0), (1.5, 3.5), measured=True, calls="alone").steps_low()
        array([[0. , 1.5],
               [0. , 0. ]])
        """
        stage_count = len(self.low)
        steps = np.zeros((stage_count, stage_count))
        if self.alone:
            low, high = np.asarray(self.low), np.asarray(self.high)
            rates = (
                np.zeros((stage_count, stage_count))
                if self.beyond_high is None
                else self.beyond_high
            )
            # The shallower one also pays for those that answer where it does not.
            most = high + np.triu(rates, 1) @ high
            return np.triu(low[None, :] - most[:, None], 1)
        for i in range(stage_count):
            rates = np.zeros(stage_count) if self.beyond_high is None else self.beyond_high[i]
            gain = np.asarray(self.low) * (1 - rates)
            steps[i, i + 1 :] = np.cumsum(gain[i + 1 :])
        return steps


def costs_of(
    counts: PatternCounts, settings: LogSettings, segment: str | None = None
) -> tuple[Costs, CostBounds]:
    """Costs of stopping at each stage, and bounds on each stage's own cost.

    Where "go on" is what an abstention means, stopping at a stage costs more than the stages up to
    it: sometimes the next one is called too.

    Args:
        segment: whose bills to use for the intervals; None for the whole log.
    """
    mistake_cost = 1.0 if settings.mistake_cost is None else settings.mistake_cost
    own, low, high = own_costs(counts, settings, segment)
    rates = calling_rates(counts.codes, counts.number, settings.no_answer, counts.counted)
    bounds = CostBounds(
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        measured=counts.billed is not None,
        own=tuple(own.tolist()),
        beyond_high=_beyond_high(rates, counts, settings),
        calls=settings.calls,
    )
    called = np.triu(rates) if bounds.alone else rates
    # Called alone, a stage that often gives no answer may cost more than the next one. The next is
    # then taken to cost as much, which makes nothing certain that is not.
    spent = np.maximum.accumulate(called @ own)
    return Costs.from_cumulative(tuple(spent.tolist()), mistake_cost), bounds


def own_costs(
    counts: PatternCounts, settings: LogSettings, segment: str | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Each stage's own cost with its bounds: as given, or the mean of what was billed."""
    stage_count = len(counts.stages)
    if counts.billed is None:
        assert settings.costs is not None
        if len(settings.costs) != stage_count:
            raise fail("costs", list(settings.costs), f"{stage_count} numbers, one for each stage")
        own = np.asarray(settings.costs, dtype=np.float64)
        return own, own, own
    own, number = counts.billed.means()
    for at, stage in enumerate(counts.stages):
        if number[at] < 2:
            raise StopwiseError(
                f"costs of {stage}: there are no two of them; give --costs 1,2,... instead"
            )
    # A quarter of 1 - level is for the lower bounds of costs (see verdict.pair_tail), split over
    # stages, the whole log and its segments. Claims rest on upper bounds only where stages are
    # called alone, and the differences of their costs count.
    families = 1 + len(counts.segments)
    sides = 1 if settings.calls == "cascade" else 2
    tail = (1 - settings.level) / (4 * stage_count * families * sides)
    bounds = [mean_bounds(stage[segment], tail) for stage in counts.billed.spreads]
    low = np.minimum([bound[0] for bound in bounds], own)
    return own, low, np.maximum([bound[1] for bound in bounds], own)


@lru_cache(maxsize=64)
def mean_bounds(spread: Spread, tail: float) -> tuple[float, float]:
    """Bounds on a mean of costs, each wrong with a chance of at most `tail`, by betting.

    Against the claim "the mean is m" a part of the capital is bet on every cost in turn: 1 + part
    (cost / m - 1). If the claim is true, the capital is expected to stay what it is, whatever the
    distribution of costs, so it reaches 1 / tail with a chance of at most `tail` (Markov). The
    lower bound needs no assumption but that costs are not below 0. The upper one takes it that no
    cost is above twice the largest seen.

    >>> low, high = mean_bounds(Spread(np.array([1.0, 3.0]), np.array([500.0, 500.0])), 0.005)
    >>> round(low, 2), round(high, 2)
    (1.87, 2.13)
    """
    costs, number = spread.cost, spread.number
    mean = float(number @ costs / number.sum())
    largest = 2 * float(costs.max()) * (1 + 1e-3)
    if largest == 0:
        return 0.0, 0.0
    low = _lower_bound(costs, number, mean, tail)
    # Costs were rounded down by a thousandth; above, they are taken as rounded up.
    mirrored = largest - costs * (1 + 1e-3)
    high = largest - _lower_bound(mirrored, number, largest - mean * (1 + 1e-3), tail)
    return low, high


def _lower_bound(values: FloatArray, number: FloatArray, mean: float, tail: float) -> float:
    """The largest mean that is refuted from above by the bets, found by halving."""
    limit = math.log(1 / tail)

    def refuted(claim: float) -> bool:
        logs = np.log1p(PARTS[:, None] * (values / claim - 1)[None]) @ number
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).mean())) >= limit

    below, above = 0.0, mean
    while above - below > _TOLERANCE * mean:
        middle = (below + above) / 2
        if refuted(middle):
            below = middle
        else:
            above = middle
    return below


def _beyond_high(
    rates: FloatArray, counts: PatternCounts, settings: LogSettings
) -> FloatArray | None:
    """Upper bounds on how often deeper stages are called all the same; None where never seen."""
    beyond = np.triu(rates, 1)
    if not beyond.any():
        return None
    from scipy.special import betainccinv

    stage_count = len(counts.stages)
    rows = float(counts.rows)
    pairs = stage_count * (stage_count - 1) / 2
    tail = (1 - settings.level) / (4 * pairs * (1 + len(counts.segments)))
    seen = beyond * rows
    high = betainccinv(seen + 1, np.maximum(rows - seen, 1e-9), tail)
    return np.where(beyond > 0, np.minimum(high, 1.0), 0.0)
