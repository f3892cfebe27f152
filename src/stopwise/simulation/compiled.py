"""Which policies have compiled kernels, and what these need to know of a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from stopwise.policies.base import Policy
from stopwise.policies.fixed import FixedStage
from stopwise.policies.hanawal2 import Hanawal2
from stopwise.policies.imed import Imed
from stopwise.policies.oracle import Oracle
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump, UssTsTempered
from stopwise.policies.uss_ts_literal import UssTsLiteral
from stopwise.policies.uss_ucb import UssUcb
from stopwise.policies.voi import UssVoi, UssVoiAnytime

if TYPE_CHECKING:
    from stopwise.simulation.kernels.confidence.bounds import ConfidenceSettings
    from stopwise.simulation.kernels.thompson.settings import ThompsonSettings
    from stopwise.simulation.kernels.value.settings import ValueSettings

_Loop = TypeVar("_Loop")

ALWAYS_THE_SAME = (FixedStage, Oracle)
"""Rules that have decided: they need no rounds, only the number of them."""


def thompson_settings(policy: UssTs | UssTsJump) -> ThompsonSettings:
    """What the Thompson kernels need to know of a policy."""
    from stopwise.simulation.kernels.thompson.settings import (
        JUMP_WALK,
        STEP_WALK,
        ThompsonSettings,
    )

    a, b = float(policy.prior_disagreed), float(policy.prior_agreed)
    if isinstance(policy, UssTsJump):
        return ThompsonSettings(a, b, JUMP_WALK, int(policy.temper))
    return ThompsonSettings(a, b, STEP_WALK, 1)


def confidence_settings(policy: UssUcb | Hanawal2) -> ConfidenceSettings:
    """What the kernels of the confidence-bound rules need to know of a policy."""
    from stopwise.simulation.kernels.confidence.bounds import ConfidenceSettings

    ucb = isinstance(policy, UssUcb)
    return ConfidenceSettings(policy.alpha, ucb, ucb, not ucb)


def value_settings(policy: UssVoi | UssVoiAnytime | Imed) -> ValueSettings:
    """What the kernels of the elimination walks need to know of a policy."""
    from stopwise.simulation.kernels.value.settings import IMED, VOI, VOI_ANYTIME, ValueSettings

    if isinstance(policy, UssVoiAnytime):
        kappa, rho0 = float(policy.kappa), float(policy.rho0)
        return ValueSettings(VOI_ANYTIME, kappa, rho0, 0.0, policy.head_start)
    assert policy.horizon is not None, "for_horizon was called"
    if isinstance(policy, UssVoi):
        return ValueSettings(VOI, float(policy.kappa), float(policy.rho0), 0.0, policy.horizon)
    return ValueSettings(IMED, 0.0, 0.0, policy.most_index(), policy.horizon)


SETTINGS_OF: dict[type[Policy], Callable[[Any], Any]] = {
    UssTs: thompson_settings,
    UssTsLiteral: thompson_settings,
    UssTsJump: thompson_settings,
    UssTsTempered: thompson_settings,
    UssUcb: confidence_settings,
    Hanawal2: confidence_settings,
    UssVoi: value_settings,
    UssVoiAnytime: value_settings,
    Imed: value_settings,
}


def loop_of(
    policy: Policy,
    *,
    decided: Callable[[Any], _Loop],
    built_in: Callable[[Any], _Loop],
    own: Callable[[Any], _Loop],
) -> _Loop:
    """The compiled loop of a policy that has one (see `has_kernel`).

    Args:
        decided: makes the loop of a rule that is always the same.
        built_in: that of a rule with kernels of its own.
        own: that of any other, from its `compiled_rule`.

    >>> loop_of(UssTs(), decided=repr, built_in=lambda policy: policy.name, own=repr)
    'uss-ts'
    """
    if type(policy) in ALWAYS_THE_SAME:
        return decided(policy)
    if type(policy) in SETTINGS_OF:
        return built_in(policy)
    rule = policy.compiled_rule()
    assert rule is not None, "has_kernel said so"
    return own(rule)


def has_kernel(policy: Policy) -> bool:
    """Whether a policy can run compiled; loads no compiler to find out.

    The type must match exactly, since a subclass may have changed the rule. The recurrences step by
    whole observations, so counts times a fraction have no kernel.

    >>> has_kernel(UssTs()), has_kernel(UssTsJump(temper=1.5))
    (True, False)
    """
    known = type(policy) in ALWAYS_THE_SAME or type(policy) in SETTINGS_OF
    if known and float(getattr(policy, "temper", 1)).is_integer():
        return True
    return policy.compiled_rule() is not None
