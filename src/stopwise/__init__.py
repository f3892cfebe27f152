"""Stopwise: learn where to stop in a cascade of models, tests or people, without a label.

Only what stands on numpy is imported here; the rest loads when it is first used.

>>> import stopwise
>>> problem = stopwise.Problem.from_rates(
...     [0.3, 0.1], [[0, 0.2], [0.2, 0]], stopwise.Costs.from_cumulative((0.0, 0.3))
... )
>>> result = stopwise.simulate(problem, "uss-ts", horizon=200, replications=20, seed=1)
>>> 0 < result.regret.mean < 20
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.evidence import ABSTAINED, Evidence
from stopwise.policies.base import Policy
from stopwise.policies.registry import make_policy, policy_names, register
from stopwise.problem import Problem

if TYPE_CHECKING:
    from stopwise.live import Cascade, Learner, RoundLog, SqliteStore, Stage
    from stopwise.simulation.run import simulate

__version__ = "0.3.0"

__all__ = [
    "ABSTAINED",
    "Cascade",
    "Costs",
    "Evidence",
    "Learner",
    "Policy",
    "Problem",
    "RoundLog",
    "SqliteStore",
    "Stage",
    "StopwiseError",
    "make_policy",
    "policy_names",
    "register",
    "simulate",
]

_LAZY = {
    "Cascade": "stopwise.live",
    "Learner": "stopwise.live",
    "RoundLog": "stopwise.live",
    "SqliteStore": "stopwise.live",
    "Stage": "stopwise.live",
    "simulate": "stopwise.simulation.run",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'stopwise' has no attribute {name!r}")
