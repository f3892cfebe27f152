"""Live cascades: real stages, called only when needed, learning as they run."""

from stopwise.live.batching.answers import Answers, Batch
from stopwise.live.budgets import BudgetError
from stopwise.live.calling.answer import Answer, NoAnswerError
from stopwise.live.calling.stage import Reported, Stage, stage
from stopwise.live.cascade import Cascade
from stopwise.live.comparing import (
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
from stopwise.live.report import Report
from stopwise.live.round import Advice, Outcome, Round
from stopwise.live.stores.records import RoundRecord
from stopwise.live.stores.round_log import RoundLog, read_rounds
from stopwise.live.stores.snapshot import read_evidence
from stopwise.live.stores.sqlite import SqliteStore

__all__ = [
    "Advice",
    "Answer",
    "Answers",
    "Batch",
    "BudgetError",
    "Cascade",
    "Comparator",
    "Drift",
    "DriftAlarm",
    "Learner",
    "NoAnswerError",
    "Outcome",
    "Report",
    "Reported",
    "Round",
    "RoundLog",
    "RoundRecord",
    "SqliteStore",
    "Stage",
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
    "stage",
]
