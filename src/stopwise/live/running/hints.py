"""Settings that are allowed and make little sense: a warning when a cascade is made."""

from __future__ import annotations

from stopwise.live.calling.errors import warn
from stopwise.live.learner import Learner
from stopwise.policies.fixed import FixedStage


def hint_at_costs(learner: Learner) -> None:
    """Warn if no deeper stage can ever pay, or if costs fall.

    >>> hint_at_costs(Learner({"small": 1, "large": 3}, mistake_cost=40))
    """
    if isinstance(learner.policy, FixedStage) or learner.settings.mode != "enforce":
        return
    names, costs = learner.stages, learner.settings.costs
    mistake_cost = learner.settings.mistake_cost
    promised = learner.settings.promise is not None  # then the mistake cost is not used
    if costs[1] >= mistake_cost and not promised:  # and C_j - C_0 is no less for deeper stages
        warn(
            f"mistake_cost is {mistake_cost:g} and no stage after {names[0]} costs less, so that"
            f" going deeper can never pay and {names[0]} will always answer: give what a wrong"
            " answer costs, in the units of the stages' costs",
            stacklevel=4,
        )
    for one, two, before, after in zip(names, names[1:], costs, costs[1:], strict=False):
        if after < before:
            warn(
                f"stage {two} costs {after:g}, less than {one} before it ({before:g}): order the"
                " stages from cheap to expensive, and give each stage's own cost",
                stacklevel=4,
            )
