"""What the stages cost: as the user says, or as the log was billed, with intervals."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stopwise.checks import StopwiseError, fail
from stopwise.costs import Calls, Costs, FloatArray
from stopwise.logs.halving import last_that_holds
from stopwise.logs.reading.bills import Spread
from stopwise.logs.reading.counting import PatternCounts
from stopwise.logs.reading.going_on import GoingOn, going_on
from stopwise.logs.settings import LogSettings

PARTS = np.geomspace(1e-5, 0.99, 24)
"""Parts of the capital to bet; see `mean_bounds`.

The best part is about the precision looked for, over the squared coefficient of variation: small
ones are for many costs, and for a few that pay for all. With none below .01 a bound never came
closer to the mean than half a per cent of that square, however many costs there were.
"""

_HALVINGS = 20
"""A bound that is found lies below the true one by a millionth of the mean at most."""


@dataclass(frozen=True)
class CostBounds:
    """Each stage's own cost with an interval; for given costs the interval is a point.

    Attributes:
        low, high: bounds on each stage's own cost.
        measured: whether the costs were billed in the log.
        own: each stage's own cost.
        kept_low: what a deeper stage costs per item, at least, on the items on which stopping at
            another (the rows) does not call it all the same; None where that never happens.
        beyond_high: what a deeper stage costs per item, at most, because the stage to stop at (the
            rows) gave no answer; None where that never happens.
        calls: how stages are called: "alone", none pays for those before it; None: nobody said.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    measured: bool
    own: tuple[float, ...] = ()
    kept_low: FloatArray | None = None
    beyond_high: FloatArray | None = None
    calls: Calls | None = None

    @property
    def alone(self) -> bool:
        """Whether each stage costs what it costs by itself."""
        return self.calls == "alone"

    @property
    def exact(self) -> bool:
        """Whether costs are given, and no stage is called because another gave no answer."""
        return not self.measured and self.kept_low is None and self.beyond_high is None

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
        low, high = np.asarray(self.low), np.asarray(self.high)
        if self.alone:
            # The shallower one also pays for those that answer where it does not.
            most = high if self.beyond_high is None else high + self.beyond_high.sum(axis=1)
            return np.triu(low[None, :] - most[:, None], 1)
        for i in range(stage_count):
            gain = low if self.kept_low is None else self.kept_low[i]
            steps[i, i + 1 :] = np.cumsum(gain[i + 1 :])
        return steps


def costs_of(
    counts: PatternCounts,
    settings: LogSettings,
    segment: str | None = None,
    free_if_missing: Collection[int] = (),
    *,
    endless: bool = False,
) -> tuple[Costs, CostBounds]:
    """Costs of stopping at each stage, and bounds on each stage's own cost.

    Where "go on" is what an abstention means, stopping at a stage costs more than the stages up to
    it: sometimes the next one is called too. Bills say what it cost on just those items.

    Args:
        segment: whose bills to use for the intervals; None for the whole log.
        free_if_missing: stages that may have cost anything on the rows on which they were not
            called: bounds of measured costs then hold whatever it was.
        endless: what the bounds would come to with any number of rows like these.
    """
    mistake_cost = 1.0 if settings.mistake_cost is None else settings.mistake_cost
    own, low, high = own_costs(counts, settings, segment, free_if_missing, endless=endless)
    beyond = going_on(counts, settings.no_answer)
    alone = settings.calls == "alone"
    kept_low = beyond_high = None
    if beyond.ever:
        tail = 1.0 if endless else _pair_tail(counts, settings)
        if counts.billed is not None:
            bounds = _billed_beyond(counts, beyond, low, tail, segment, alone, free_if_missing)
        else:
            rates = beyond.rates_high(tail)
            bounds = high * rates if alone else low * (1 - rates)
        kept_low, beyond_high = (None, bounds) if alone else (bounds, None)
    with np.errstate(over="ignore"):  # what is too large to add up is refused below
        through = own if alone else np.cumsum(own)
    # Called alone, a stage that often gives no answer may cost more than the next one. The next is
    # then taken to cost as much, which makes nothing certain that is not.
    spent = np.maximum.accumulate(through + beyond.costs(own, counts.billed).sum(axis=1))
    return Costs.from_cumulative(tuple(spent.tolist()), mistake_cost), CostBounds(
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        measured=counts.billed is not None,
        own=tuple(own.tolist()),
        kept_low=kept_low,
        beyond_high=beyond_high,
        calls=settings.calls,
    )


def own_costs(
    counts: PatternCounts,
    settings: LogSettings,
    segment: str | None = None,
    free_if_missing: Collection[int] = (),
    *,
    endless: bool = False,
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
    tail = 1.0 if endless else (1 - settings.level) / (4 * stage_count * families * sides)
    bounds = []
    for at, spreads in enumerate(counts.billed.spreads):
        unseen = _unseen(counts, at) if at in free_if_missing else 0.0
        bounds.append(mean_bounds(spreads[segment], tail, unseen))
    low = np.minimum([bound[0] for bound in bounds], own)
    return own, low, np.maximum([bound[1] for bound in bounds], own)


@lru_cache(maxsize=64)
def mean_bounds(spread: Spread, tail: float, unseen: float = 0.0) -> tuple[float, float]:
    """Bounds on a mean of costs, each wrong with a chance of at most `tail`, by betting.

    Against the claim "the mean is m" a part of the capital is bet on every cost in turn: 1 + part
    (cost / m - 1). If the claim is true, the capital is expected to stay what it is, whatever the
    distribution of costs, so it reaches 1 / tail with a chance of at most `tail` (Markov). The
    lower bound needs no assumption but that costs are not below 0. The upper one takes it that no
    cost is above twice the largest seen.

    Args:
        tail: 1 gives what the bounds come to with any number of such costs.
        unseen: items, as a multiple of those seen, whose cost may have been anything.

    >>> low, high = mean_bounds(Spread(np.array([1.0, 3.0]), np.array([500.0, 500.0])), 0.005)
    >>> round(low, 2), round(high, 2)
    (1.87, 2.13)
    """
    unit = float(spread.cost.max())
    if unit == 0:
        return 0.0, 0.0
    # In units of the largest, so that the smallest numbers there are can be halved too.
    costs, number = spread.cost / unit, spread.number
    mean = float(number @ costs / number.sum())
    largest = 2 * (1 + 1e-3)
    # Costs were rounded down by a thousandth; above, they are taken as rounded up.
    mirrored = largest - costs * (1 + 1e-3)
    mirrored_mean = largest - mean * (1 + 1e-3)
    if unseen > 0:  # they cost nothing, or (for the upper bound) as much as may be
        number = np.append(number, unseen * number.sum())
        costs, mirrored = np.append(costs, 0.0), np.append(mirrored, 0.0)
        mean, mirrored_mean = mean / (1 + unseen), mirrored_mean / (1 + unseen)
    if tail >= 1:
        return mean * unit, (largest - mirrored_mean) * unit
    low = _lower_bound(costs, number, mean, tail)
    return low * unit, (largest - _lower_bound(mirrored, number, mirrored_mean, tail)) * unit


def _lower_bound(values: FloatArray, number: FloatArray, mean: float, tail: float) -> float:
    """The largest mean that is refuted from above by the bets, found by halving."""
    limit = math.log(1 / tail)

    def refuted(claim: float) -> bool:
        logs = np.log1p(PARTS[:, None] * (values / claim - 1)[None]) @ number
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).mean())) >= limit

    return last_that_holds(refuted, 0.0, mean, times=_HALVINGS) if mean > 0 else 0.0


def _pair_tail(counts: PatternCounts, settings: LogSettings) -> float:
    """What each pair may use up of the quarter of 1 - level for calls because of no answer."""
    stage_count = len(counts.stages)
    pairs = stage_count * (stage_count - 1) / 2
    return (1 - settings.level) / (4 * pairs * (1 + len(counts.segments)))


def _unseen(counts: PatternCounts, at: int) -> float:
    """Items without a bill of a stage, as a multiple of those with one."""
    assert counts.billed is not None
    billed = math.fsum(counts.billed.number[:, at])
    return max(counts.rows / billed - 1, 0.0) if billed else 0.0


def _billed_beyond(
    counts: PatternCounts,
    beyond: GoingOn,
    low: FloatArray,
    tail: float,
    segment: str | None,
    alone: bool,
    free_if_missing: Collection[int],
) -> FloatArray:
    """Bounds where bills were measured: of what stays without the calls beyond, or (alone) of them.

    Which bills belong to the items beyond is not told by a spread, and it need not be chance: items
    on which a cheap stage is silent may be the ones that cost most. The bounds hold whichever
    they are: below, the largest bills are taken to be theirs and left out; above, they alone count.
    """
    assert counts.billed is not None
    bounds = np.zeros(beyond.rates.shape) if alone else np.tile(low, (len(low), 1))
    for i, k in np.argwhere(beyond.perhaps.any(axis=2)):
        spread = counts.billed.spreads[k][segment]
        bills, size = math.fsum(counts.billed.number[:, k]), float(spread.number.sum())
        moved = beyond.bills(i, k, counts.billed)
        if size < bills:  # a sample may have some more of them than its share
            moved = moved * size / bills
            moved += 6 * math.sqrt(moved) + 20
        unseen = _unseen(counts, k) if k in free_if_missing else 0.0
        found = mean_bounds(_largest(spread, moved, keep=alone), tail, unseen)
        bounds[i, k] = found[1] if alone else min(found[0], low[k])
    return bounds


def _largest(spread: Spread, moved: float, *, keep: bool) -> Spread:
    """The same bills with the largest of them set to 0, or (keep) all others.

    >>> spread = Spread(np.array([1.0, 5.0]), np.array([8.0, 2.0]))
    >>> _largest(spread, 1.0, keep=False).number, _largest(spread, 1.0, keep=True).number
    (array([1., 8., 1.]), array([9., 0., 1.]))
    """
    larger = np.cumsum(spread.number[::-1])[::-1] - spread.number
    top = np.clip(moved - larger, 0.0, spread.number)
    number = top if keep else spread.number - top
    zeros = spread.number.sum() - number.sum()
    return Spread(np.append(0.0, spread.cost), np.append(zeros, number))
