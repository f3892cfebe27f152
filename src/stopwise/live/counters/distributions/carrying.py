"""Which policies' distributions can be carried along from round to round."""

from __future__ import annotations

from collections.abc import Callable

from stopwise.costs import Costs
from stopwise.live.counters.distributions.carried import Carried, Limits
from stopwise.live.counters.distributions.carried_voi import CarriedVoi
from stopwise.live.counters.distributions.fast_ts import FastTs
from stopwise.live.counters.distributions.late_pairs import MANY_STAGES, LateTs
from stopwise.policies.base import Policy
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump
from stopwise.policies.voi import UssVoiAnytime


def carrier(policy: Policy, costs: Costs, limits: Limits | None) -> Callable[[], Carried] | None:
    """What makes the carried distribution of a segment; None where a policy has none.

    USS-TS with either walk, untempered, and USS-VOI-anytime have one.

    >>> costs = Costs.from_cumulative((0.0, 0.25))
    >>> carrier(UssTsJump(temper=2.0), costs, None) is None
    True
    """
    thresholds = costs.thresholds.tolist()
    kind = LateTs if costs.stage_count >= MANY_STAGES else FastTs
    if type(policy) is UssTs or (type(policy) is UssTsJump and policy.temper == 1.0):
        return lambda: kind(policy, thresholds, limits)
    if type(policy) is UssVoiAnytime:
        return lambda: CarriedVoi(policy, thresholds, limits)
    return None


def has_clock(policy: Policy) -> bool:
    """Whether a carried distribution can change with the number of the round alone.

    >>> has_clock(UssTs()), has_clock(UssVoiAnytime())
    (False, True)
    """
    return isinstance(policy, UssVoiAnytime)
