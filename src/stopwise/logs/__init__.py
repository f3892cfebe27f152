"""Prediction logs in, verdict out: `analyze`, `replay`, `audit`.

>>> from stopwise.logs import analyze, example_log, example_settings
>>> analysis = analyze(example_log(), **example_settings())
>>> analysis.verdict.stages[analysis.verdict.recommended], analysis.verdict.nothing_deeper_pays
('linear', True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names

if TYPE_CHECKING:
    from stopwise.logs.agreeing.promise import Promise, promise
    from stopwise.logs.analysis import Analysis, analyze, analyze_evidence
    from stopwise.logs.auditing.audit import plan_audit
    from stopwise.logs.auditing.labelled import audit
    from stopwise.logs.auditing.result import Audit
    from stopwise.logs.auditing.simulation import simulate_audit
    from stopwise.logs.example import example_log, example_settings
    from stopwise.logs.reading.databases.query import Query
    from stopwise.logs.reading.partition import evidence_of_frame
    from stopwise.logs.replaying.replay import Replay, replay
    from stopwise.logs.settings import LogSettings, Settings

# Names load when first used: reading a log needs polars, looking at evidence does not.
_WHERE = {
    "Analysis": "stopwise.logs.analysis",
    "Audit": "stopwise.logs.auditing.result",
    "LogSettings": "stopwise.logs.settings",
    "Promise": "stopwise.logs.agreeing.promise",
    "Query": "stopwise.logs.reading.databases.query",
    "Replay": "stopwise.logs.replaying.replay",
    "Settings": "stopwise.logs.settings",
    "analyze": "stopwise.logs.analysis",
    "analyze_evidence": "stopwise.logs.analysis",
    "audit": "stopwise.logs.auditing.labelled",
    "evidence_of_frame": "stopwise.logs.reading.partition",
    "example_log": "stopwise.logs.example",
    "example_settings": "stopwise.logs.example",
    "plan_audit": "stopwise.logs.auditing.audit",
    "promise": "stopwise.logs.agreeing.promise",
    "replay": "stopwise.logs.replaying.replay",
    "simulate_audit": "stopwise.logs.auditing.simulation",
}

__all__ = [
    "Analysis",
    "Audit",
    "LogSettings",
    "Promise",
    "Query",
    "Replay",
    "Settings",
    "analyze",
    "analyze_evidence",
    "audit",
    "evidence_of_frame",
    "example_log",
    "example_settings",
    "plan_audit",
    "promise",
    "replay",
    "simulate_audit",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
