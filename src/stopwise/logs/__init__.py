"""Prediction logs in, verdict out: `analyze`, `replay`, `audit`.

>>> from stopwise.logs import analyze, example_log, example_settings
>>> analysis = analyze(example_log(), **example_settings())
>>> analysis.verdict.stages[analysis.verdict.recommended], analysis.verdict.nothing_deeper_pays
('linear', True)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stopwise.logs.analysis import Analysis, analyze, analyze_evidence
    from stopwise.logs.auditing.audit import Audit, plan_audit
    from stopwise.logs.auditing.simulation import simulate_audit
    from stopwise.logs.example import example_log, example_settings
    from stopwise.logs.reading.partition import evidence_of_frame
    from stopwise.logs.replaying.replay import Replay, replay
    from stopwise.logs.settings import LogSettings, Settings

# Names load when first used: reading a log needs polars, looking at evidence does not.
_LAZY = {
    "Analysis": "analysis",
    "Audit": "auditing.audit",
    "LogSettings": "settings",
    "Replay": "replaying.replay",
    "Settings": "settings",
    "analyze": "analysis",
    "analyze_evidence": "analysis",
    "evidence_of_frame": "reading.partition",
    "example_log": "example",
    "example_settings": "example",
    "plan_audit": "auditing.audit",
    "replay": "replaying.replay",
    "simulate_audit": "auditing.simulation",
}

__all__ = [
    "Analysis",
    "Audit",
    "LogSettings",
    "Replay",
    "Settings",
    "analyze",
    "analyze_evidence",
    "evidence_of_frame",
    "example_log",
    "example_settings",
    "plan_audit",
    "replay",
    "simulate_audit",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"stopwise.logs.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'stopwise.logs' has no attribute {name!r}")
