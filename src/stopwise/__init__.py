"""Stopwise: learn where to stop in a cascade of models, tests or people, without a label.

Only what needs nothing but numpy is imported here; the rest loads when it is first used.

>>> import stopwise as sw
>>> problem = sw.Problem.from_rates(
...     [0.3, 0.1], [[0, 0.2], [0.2, 0]], sw.Costs.from_stages((0.0, 0.3))
... )
>>> result = sw.simulate(problem, sw.policies.UssTs(), horizon=200, replications=20, seed=1)
>>> 0 < result.regret.mean < 20
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.evidence import ABSTAINED, Evidence
from stopwise.lazy import MissingPackageError, lazy_names
from stopwise.policies.base import Policy
from stopwise.policies.registry import make_policy, policy_names, register
from stopwise.problem import Problem
from stopwise.version import __version__

if TYPE_CHECKING:
    from stopwise import (
        bench,
        estimating,
        live,
        logs,
        paper,
        policies,
        simulation,
        sklearn,
        theory,
    )
    from stopwise.live import Report
    from stopwise.live.calling.stage import Reported, Stage, stage
    from stopwise.live.cascade import Cascade
    from stopwise.live.learner import Learner
    from stopwise.live.running.answer import Answer
    from stopwise.live.stores.databases.sqlite import SqliteStore
    from stopwise.live.stores.round_log import RoundLog
    from stopwise.live.watching.report import LiveReport
    from stopwise.logs.agreeing.promise import Promise, promise
    from stopwise.logs.analysis import Analysis, analyze, analyze_evidence
    from stopwise.logs.auditing.labelled import audit
    from stopwise.logs.auditing.result import Audit
    from stopwise.logs.auditing.simulation import simulate_audit
    from stopwise.logs.example import example_log, example_settings
    from stopwise.logs.items.fitting import fit, write_rule
    from stopwise.logs.items.labelling import item_audit
    from stopwise.logs.replaying.replay import Replay, replay
    from stopwise.policies.conformance import check_policy
    from stopwise.policies.per_item.any_rule import read_rule
    from stopwise.simulation.results import Simulation
    from stopwise.simulation.run import simulate
    from stopwise.simulation.sweep import Sweep, read_sweep, run_sweep
    from stopwise.sklearn import CascadeClassifier

_WHERE = {
    # a log
    "Analysis": "stopwise.logs.analysis",
    "Audit": "stopwise.logs.auditing.result",
    "Promise": "stopwise.logs.agreeing.promise",
    "Replay": "stopwise.logs.replaying.replay",
    "analyze": "stopwise.logs.analysis",
    "analyze_evidence": "stopwise.logs.analysis",
    "audit": "stopwise.logs.auditing.labelled",
    "example_log": "stopwise.logs.example",
    "example_settings": "stopwise.logs.example",
    "fit": "stopwise.logs.items.fitting",
    "item_audit": "stopwise.logs.items.labelling",
    "promise": "stopwise.logs.agreeing.promise",
    "read_rule": "stopwise.policies.per_item.any_rule",
    "replay": "stopwise.logs.replaying.replay",
    "simulate_audit": "stopwise.logs.auditing.simulation",
    "write_rule": "stopwise.logs.items.fitting",
    # stages to call
    "Answer": "stopwise.live.running.answer",
    "Cascade": "stopwise.live.cascade",
    "CascadeClassifier": "stopwise.sklearn",
    "Learner": "stopwise.live.learner",
    "LiveReport": "stopwise.live.watching.report",
    "Report": "stopwise.live",  # the name of LiveReport in earlier releases
    "Reported": "stopwise.live.calling.stage",
    "RoundLog": "stopwise.live.stores.round_log",
    "SqliteStore": "stopwise.live.stores.databases.sqlite",
    "Stage": "stopwise.live.calling.stage",
    "stage": "stopwise.live.calling.stage",
    # policies on known problems
    "Simulation": "stopwise.simulation.results",
    "Sweep": "stopwise.simulation.sweep",
    "check_policy": "stopwise.policies.conformance",
    "read_sweep": "stopwise.simulation.sweep",
    "run_sweep": "stopwise.simulation.sweep",
    "simulate": "stopwise.simulation.run",
    # the rooms themselves
    "bench": "stopwise.bench",
    "estimating": "stopwise.estimating",
    "live": "stopwise.live",
    "logs": "stopwise.logs",
    "paper": "stopwise.paper",
    "policies": "stopwise.policies",
    "simulation": "stopwise.simulation",
    "sklearn": "stopwise.sklearn",
    "theory": "stopwise.theory",
}

__all__ = [
    "ABSTAINED",
    "Analysis",
    "Answer",
    "Audit",
    "Cascade",
    "CascadeClassifier",
    "Costs",
    "Evidence",
    "Learner",
    "LiveReport",
    "MissingPackageError",
    "Policy",
    "Problem",
    "Promise",
    "Replay",
    "Report",
    "Reported",
    "RoundLog",
    "Simulation",
    "SqliteStore",
    "Stage",
    "StopwiseError",
    "Sweep",
    "__version__",
    "analyze",
    "analyze_evidence",
    "audit",
    "bench",
    "check_policy",
    "estimating",
    "example_log",
    "example_settings",
    "fit",
    "item_audit",
    "live",
    "logs",
    "make_policy",
    "paper",
    "policies",
    "policy_names",
    "promise",
    "read_rule",
    "read_sweep",
    "register",
    "replay",
    "run_sweep",
    "simulate",
    "simulate_audit",
    "simulation",
    "sklearn",
    "stage",
    "theory",
    "write_rule",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
