"""What the stages cost: as the user says, or as the log was billed, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stopwise.checks import fail
from stopwise.costs import Costs, FloatArray
from stopwise.logs.settings import LogSettings


@dataclass(frozen=True)
class MeasuredCosts:
    """Number, sum and sum of squares of every stage's costs over the rows that called it."""

    number: NDArray[np.float64]
    total: NDArray[np.float64]
    squares: NDArray[np.float64]


@dataclass(frozen=True)
class CostBounds:
    """Each stage's own cost with an interval; for given costs the interval is a point."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    measured: bool

    @property
    def cumulative_low(self) -> FloatArray:
        """The least that the stages up to each one cost."""
        return np.cumsum(self.low)


def costs_of(
    measured: MeasuredCosts | None, count: int, settings: LogSettings
) -> tuple[Costs, CostBounds]:
    """Costs as given, or the means measured in the log with intervals (Student's t).

    >>> import numpy as np
    >>> measured = MeasuredCosts(np.array([4.0, 4.0]), np.array([8.0, 20.0]), np.array([16., 104.]))
    >>> costs, bounds = costs_of(measured, 2, LogSettings(level=0.9))
    >>> costs.cumulative, [round(low, 3) for low in bounds.low]
    ((2.0, 7.0), [2.0, 2.589])
    """
    mistake_cost = 1.0 if settings.mistake_cost is None else settings.mistake_cost
    if measured is None:
        assert settings.costs is not None
        costs = Costs.from_stages(settings.costs, mistake_cost)
        if costs.stage_count != count:
            raise fail("costs", list(settings.costs), f"{count} numbers, one for each stage")
        return costs, CostBounds(settings.costs, settings.costs, measured=False)
    from scipy.special import stdtrit

    mean = measured.total / measured.number
    spread = np.maximum(measured.squares / measured.number - mean**2, 0.0)
    error = np.sqrt(spread / np.maximum(measured.number - 1, 1))
    # Half of 1 - level is for the costs (see verdict.pair_tail), split over stages and sides.
    width = -stdtrit(measured.number - 1, (1 - settings.level) / (4 * count)) * error
    low, high = np.maximum(mean - width, 0.0), mean + width
    return (
        Costs.from_stages(mean.tolist(), mistake_cost),
        CostBounds(tuple(low.tolist()), tuple(high.tolist()), measured=True),
    )
