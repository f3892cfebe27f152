"""How little measured calls may cost, from the sums that are kept of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stopwise.logs.reading.costs import PARTS, CostBounds

_CURVES = np.where(
    PARTS < 1e-3, 0.5 + PARTS / 3 + PARTS**2 / 2, (-np.log1p(-PARTS) - PARTS) / PARTS**2
)
"""(-log(1 - b) - b) / b^2 = 1/2 + b/3 + b^2/4 + ...; where that cancels, a little above it."""
_CLAIMS = 1 - np.geomspace(1e-6, 1, 600)[:-1]
"""Means that are put to the test, in parts of the mean seen; the largest first."""
_ROUNDED = math.exp(-1e-3)
"""`analyze` rounds costs down by up to a thousandth of themselves: this is not to claim more."""


def with_measured_costs(bounds: CostBounds, sums: Mapping[str, float], level: float) -> CostBounds:
    """The same bounds where costs are means of what calls cost, not given.

    `analyze` bets on every cost of the log. Here sums of costs and of their squares are kept and
    not each cost, so the bound is that of `mean_low`, which lies below that of `analyze`. How much
    calls cost at most is not known from sums; no claim rests on it.

    Args:
        sums: of the same epoch and segment. Only calls that chance alone decided upon are a fair
            sample (`drawn:...`, see `sums_of`); without any the stage may be free, and nothing is
            certain.
    """
    stage_count = len(bounds.own)
    tail = (1 - level) / (4 * stage_count * 2)  # as in `stopwise.logs.reading.costs.own_costs`
    low = [min(own, mean_low(*_sums_of(sums, at), tail)) for at, own in enumerate(bounds.own)]
    kept_low = None
    if bounds.kept_low is not None:
        # Sums do not tell what a stage cost on the items on which one before it was silent. It may
        # be all that it cost, so that nothing is left where that happens.
        never = bounds.kept_low == np.asarray(bounds.own)
        kept_low = np.where(never, np.asarray(low), 0.0)
    return replace(
        bounds, low=tuple(low), high=(math.inf,) * stage_count, measured=True, kept_low=kept_low
    )


def mean_costs(guessed: Sequence[float], sums: Mapping[str, float]) -> tuple[float, ...]:
    """What calls of each stage cost on average; as guessed where none was paid yet.

    A call that failed and cost nothing is none, as in a log.

    >>> mean_costs([9, 9], {"drawn:calls:0": 3, "drawn:unpaid:0": 1, "drawn:cost:0": 5.0})
    (2.5, 9.0)
    """
    means = []
    for stage, guess in enumerate(guessed):
        number, total, _ = _sums_of(sums, stage)
        paid = number - float(sums.get(f"drawn:unpaid:{stage}", 0.0))
        means.append(total / paid if paid > 0 else float(guess))
    return tuple(means)


def _sums_of(sums: Mapping[str, float], stage: int) -> tuple[float, float, float]:
    number, total, squares = (
        float(sums.get(f"drawn:{name}:{stage}", 0.0)) for name in ("calls", "cost", "cost2")
    )
    return number, total, squares


def mean_low(number: float, total: float, squares: float, tail: float) -> float:
    """A lower bound on a mean of costs that is wrong with a chance of at most `tail`.

    It needs no assumption but that costs are not below 0. As in `mean_bounds`, a part b of the
    capital is bet on every cost x against the claim "the mean is m". With y = b (x / m - 1), which
    is -b or more, log(1 + y) >= y - c y^2 where c = (-log(1 - b) - b) / b^2, since
    (y - log(1 + y)) / y^2 falls as y grows. So the sums tell how large the capital is at least. It
    is larger for smaller claims: what refutes one refutes all below it.

    >>> round(mean_low(1000, 2000.0, 5000.0, 0.005), 2)     # 500 costs of 1 and 500 of 3
    1.86
    >>> mean_low(1, 2.0, 4.0, 0.005), mean_low(0, 0.0, 0.0, 0.005)
    (0.0, 0.0)
    """
    if number < 2 or total <= 0:
        return 0.0
    mean = total / number
    first = number * (1 / _CLAIMS - 1)
    second = squares / (mean * _CLAIMS) ** 2 - 2 * number / _CLAIMS + number
    parts, curves = PARTS[:, None], _CURVES[:, None]
    logs = parts * first - curves * parts**2 * np.maximum(second, 0.0)
    top = logs.max(axis=0)
    refuted = top + np.log(np.exp(logs - top).mean(axis=0)) >= math.log(1 / tail)
    return float(mean * _CLAIMS[refuted.argmax()] * _ROUNDED) if refuted.any() else 0.0
