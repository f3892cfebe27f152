"""Policies: one rule, one file. `registry` finds them by name, `conformance` checks any of them.

Not here: Algorithm 1 of Hanawal, Szepesvari, Saligrama (AISTATS 2017). It decides by how many of
its own rounds were exploration, a count that neither the pair evidence nor the round number holds,
so it is not a function of (evidence, round, costs). It also assumes strong dominance and estimates
only the disagreement with the first stage, so it could not be recommended over the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names

if TYPE_CHECKING:
    from stopwise.policies.base import Policy
    from stopwise.policies.conformance import check_policy
    from stopwise.policies.contextual.uss_pd import UssPd
    from stopwise.policies.fixed import FixedStage
    from stopwise.policies.hanawal2 import Hanawal2
    from stopwise.policies.imed import Imed
    from stopwise.policies.oracle import Oracle
    from stopwise.policies.per_item.agree_in_a_row import AgreeInARow
    from stopwise.policies.per_item.logistic.policy import PerItemLogistic
    from stopwise.policies.per_item.policy import PerItem
    from stopwise.policies.per_item.situation import ItemPolicy, RowPolicy, SituationPolicy
    from stopwise.policies.registry import (
        make_policy,
        policy_class,
        policy_from_json,
        policy_names,
        policy_settings,
        policy_to_json,
        register,
    )
    from stopwise.policies.uss_ts import UssTs
    from stopwise.policies.uss_ts_jump import UssTsJump, UssTsTempered
    from stopwise.policies.uss_ts_literal import UssTsLiteral
    from stopwise.policies.uss_ucb import UssUcb
    from stopwise.policies.voi import UssVoi, UssVoiAnytime

_WHERE = {
    "AgreeInARow": "stopwise.policies.per_item.agree_in_a_row",
    "FixedStage": "stopwise.policies.fixed",
    "Hanawal2": "stopwise.policies.hanawal2",
    "Imed": "stopwise.policies.imed",
    "ItemPolicy": "stopwise.policies.per_item.situation",
    "Oracle": "stopwise.policies.oracle",
    "PerItem": "stopwise.policies.per_item.policy",
    "PerItemLogistic": "stopwise.policies.per_item.logistic.policy",
    "Policy": "stopwise.policies.base",
    "RowPolicy": "stopwise.policies.per_item.situation",
    "SituationPolicy": "stopwise.policies.per_item.situation",
    "UssPd": "stopwise.policies.contextual.uss_pd",
    "UssTs": "stopwise.policies.uss_ts",
    "UssTsJump": "stopwise.policies.uss_ts_jump",
    "UssTsLiteral": "stopwise.policies.uss_ts_literal",
    "UssTsTempered": "stopwise.policies.uss_ts_jump",
    "UssUcb": "stopwise.policies.uss_ucb",
    "UssVoi": "stopwise.policies.voi",
    "UssVoiAnytime": "stopwise.policies.voi",
    "check_policy": "stopwise.policies.conformance",
    "make_policy": "stopwise.policies.registry",
    "policy_class": "stopwise.policies.registry",
    "policy_from_json": "stopwise.policies.registry",
    "policy_names": "stopwise.policies.registry",
    "policy_settings": "stopwise.policies.registry",
    "policy_to_json": "stopwise.policies.registry",
    "register": "stopwise.policies.registry",
}

__all__ = [
    "AgreeInARow",
    "FixedStage",
    "Hanawal2",
    "Imed",
    "ItemPolicy",
    "Oracle",
    "PerItem",
    "PerItemLogistic",
    "Policy",
    "RowPolicy",
    "SituationPolicy",
    "UssPd",
    "UssTs",
    "UssTsJump",
    "UssTsLiteral",
    "UssTsTempered",
    "UssUcb",
    "UssVoi",
    "UssVoiAnytime",
    "check_policy",
    "make_policy",
    "policy_class",
    "policy_from_json",
    "policy_names",
    "policy_settings",
    "policy_to_json",
    "register",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
