"""Live cascades: real stages, called only when needed, learning as they run."""

from stopwise.live.budgets import BudgetError
from stopwise.live.comparators import (
    Comparator,
    by,
    by_key,
    exact,
    folded,
    json_fields,
    letter,
    majority_vote,
    number,
)
from stopwise.live.drift import Drift, DriftAlarm
from stopwise.live.learner import Learner
from stopwise.live.log import RoundLog, read_rounds
from stopwise.live.records import RoundRecord
from stopwise.live.report import Report
from stopwise.live.rounds import Advice, Outcome, Round
from stopwise.live.snapshot import read_evidence
from stopwise.live.sqlite import SqliteStore

__all__ = [
    "Advice",
    "BudgetError",
    "Comparator",
    "Drift",
    "DriftAlarm",
    "Learner",
    "Outcome",
    "Report",
    "Round",
    "RoundLog",
    "RoundRecord",
    "SqliteStore",
    "by",
    "by_key",
    "exact",
    "folded",
    "json_fields",
    "letter",
    "majority_vote",
    "number",
    "read_evidence",
    "read_rounds",
]
