"""What stages cost, and what a wrong answer costs: together they say when looking deeper pays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, get_args

import numpy as np

from stopwise.arrays import FloatArray as FloatArray
from stopwise.checks import fail, names_settings, number_within, positive_number

Calls = Literal["cascade", "alone"]
"""How stages are called: in a *cascade* each needs those before it, *alone* none does."""
CALLS: tuple[Calls, ...] = get_args(Calls)


@dataclass(frozen=True, init=False)
class Costs:
    """Cumulative cost of every depth, and the cost of one mistake in the same units.

    Made by `Costs.from_stages` from what each stage costs by itself, or by
    `Costs.from_cumulative`. The two are easily confused, so `Costs(...)` takes its numbers by name
    only.

    Args:
        cumulative: `C_i`, the cost of calling every stage up to the i-th; never falling.
        mistake_cost: what one wrong answer costs (1/lambda in the paper, where it is 1).

    >>> costs = Costs.from_stages([0.05, 0.25, 0.2])
    >>> costs.cumulative
    (0.05, 0.3, 0.5)
    >>> Costs.from_stages([1, 4], mistake_cost=10).in_mistakes
    array([0.1, 0.5])
    >>> Costs([1, 4])
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: costs: got [1, 4], but need Costs.from_stages(...) for each
    stage's own costs, or Costs.from_cumulative(...)
    """

    cumulative: tuple[float, ...]
    mistake_cost: float = 1.0

    @names_settings
    def __init__(
        self, *unnamed: object, cumulative: Sequence[float] = (), mistake_cost: float = 1.0
    ) -> None:
        """Take cumulative costs by name; the two builders are easier to read."""
        if unnamed:
            raise fail(
                "costs", unnamed[0],
                "Costs.from_stages(...) for each stage's own costs, or Costs.from_cumulative(...)",
            )  # fmt: skip
        values = _cost_list(cumulative)
        if len(values) < 2:
            raise fail("costs", values, "at least two stages")
        for stage, value in enumerate(values):
            if stage and value < values[stage - 1]:
                raise fail(
                    f"costs[{stage}]", value,
                    f"a cumulative cost of at least {values[stage - 1]!r}, that of the stage before"
                    " (cumulative costs include all earlier stages)",
                )  # fmt: skip
        mistake = positive_number("mistake_cost", mistake_cost)
        if not math.isfinite(values[-1] / mistake):
            raise fail("mistake_cost", mistake_cost, "a number not so small beside the costs")
        object.__setattr__(self, "cumulative", tuple(values))
        object.__setattr__(self, "mistake_cost", mistake)

    @classmethod
    @names_settings
    def from_cumulative(cls, costs: Sequence[float], mistake_cost: float = 1.0) -> Costs:
        """Build from the cost `C_i` of all stages up to each one.

        >>> Costs.from_cumulative([1, 3]).per_stage
        array([1., 2.])
        """
        return cls(cumulative=costs, mistake_cost=mistake_cost)

    @classmethod
    @names_settings
    def from_stages(cls, costs: Sequence[float], mistake_cost: float = 1.0) -> Costs:
        """Build from each stage's own cost `c_i`.

        >>> Costs.from_stages([1, 2]).cumulative
        (1.0, 3.0)
        """
        return cls(cumulative=tuple(accumulate(_cost_list(costs))), mistake_cost=mistake_cost)

    @property
    def stage_count(self) -> int:
        """How many stages there are.

        >>> Costs.from_cumulative((1, 2, 4)).stage_count
        3
        """
        return len(self.cumulative)

    @cached_property
    def per_stage(self) -> FloatArray:
        """Each stage's own cost `c_i`.

        >>> Costs.from_cumulative((1, 3)).per_stage
        array([1., 2.])
        """
        values = np.diff(np.asarray(self.cumulative), prepend=0.0)
        values.flags.writeable = False
        return values

    @cached_property
    def in_mistakes(self) -> FloatArray:
        """Cumulative costs in units of one mistake, `lambda C_i`: what the rules compare.

        >>> Costs.from_cumulative((1, 3), mistake_cost=2).in_mistakes
        array([0.5, 1.5])
        """
        values = np.asarray(self.cumulative) / self.mistake_cost
        values.flags.writeable = False
        return values

    @cached_property
    def thresholds(self) -> FloatArray:
        """`x_ij = lambda (C_j - C_i)`: how much disagreement would make stage j worth its price.

        >>> Costs.from_cumulative((0.0, 0.25, 0.75)).thresholds[0]
        array([0.  , 0.25, 0.75])
        """
        values = self.in_mistakes[None, :] - self.in_mistakes[:, None]
        values.flags.writeable = False
        return values


def check_costs(costs: object) -> Costs:
    """Refuse plain numbers where `Costs` are needed: they do not say whether they are cumulative.

    >>> check_costs([0.1, 0.3])
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: costs: got [0.1, 0.3], but need Costs, such as
    Costs.from_stages([0.1, 0.3])
    """
    if not isinstance(costs, Costs):
        raise fail("costs", costs, "Costs, such as Costs.from_stages([0.1, 0.3])")
    return costs


def _cost_list(values: Any) -> list[float]:
    accepted = "a list of numbers, one for each stage"
    if isinstance(values, (str, bytes, Mapping, Set)):  # text is no list, the others have no order
        raise fail("costs", values, accepted)
    try:
        items = list(values)
    except TypeError:
        raise fail("costs", values, accepted) from None
    return [
        number_within(f"costs[{stage}]", value, "a finite number of 0 or more", least=0)
        for stage, value in enumerate(items)
    ]
