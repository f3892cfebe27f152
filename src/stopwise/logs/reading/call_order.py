"""Stages that can be called alone, in the order of what each costs.

Called alone, a stage costs what it costs by itself, so that nothing but its price says where it
stands. In the order of prices everything that is known of a cascade holds again, with each stage's
own cost in the place of its cumulative cost: a more expensive stage is *certain* not to be worth
its price if the two differ more rarely than the difference of their costs asks for. The other way
round nothing is to be tested, because a cheaper stage is never kept out by its price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stopwise.checks import StopwiseError
from stopwise.logs.reading.costs import own_costs
from stopwise.logs.reading.counting import count
from stopwise.logs.reading.layouts.opening import open_log
from stopwise.logs.settings import LogSettings


def in_call_order(log: object, settings: LogSettings) -> LogSettings:
    """The same settings, with stages by their own cost where they are called alone.

    What savings are stated against stays the stage that was named last.

    >>> settings = LogSettings(stages=("a", "b", "c"), costs=(1, 5, 3), calls="alone")
    >>> ordered = in_call_order("log.csv", settings)
    >>> ordered.stages, ordered.costs, ordered.baseline
    (('a', 'c', 'b'), (1.0, 3.0, 5.0), 'c')
    """
    if settings.calls != "alone":
        return settings
    stages, costs = settings.stages, settings.costs
    if stages is None or costs is None:
        counts = count(open_log(log, settings))
        stages = settings.stages or counts.stages
        costs = tuple(own_costs(counts, settings)[0].tolist())
    order = by_cost(costs)
    ordered = tuple(stages[at] for at in order)
    if settings.costs is None and ordered != stages and isinstance(log, str) and log == "-":
        raise StopwiseError(
            f"stages: standard input can be read once only; name them by their costs, cheapest"
            f" first: {','.join(ordered)}"
        )
    return replace(
        settings,
        stages=ordered,
        costs=None if settings.costs is None else tuple(costs[at] for at in order),
        baseline=settings.baseline or stages[-1],
    )


def by_cost(own: Sequence[float]) -> list[int]:
    """The stages from the cheapest to the most expensive; of equal ones, as they were named.

    Bills are added up by several threads, in any order: costs that are equal but for rounding are.

    >>> by_cost([0.3, 0.1 + 0.2, 0.1])
    [2, 0, 1]
    >>> by_cost([0.1 + 0.2, 0.3, 0.1])
    [2, 0, 1]
    """
    rounded = [float(f"{cost:.12g}") for cost in own]
    return [int(at) for at in np.argsort(rounded, kind="stable")]
