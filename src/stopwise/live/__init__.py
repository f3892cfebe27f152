"""Live cascades: real stages, called only when needed, learning as they run."""

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names
from stopwise.live.batching.answers import Answers, AsyncAnswers
from stopwise.live.batching.batch import Batch
from stopwise.live.calling.errors import (
    MisusedStageError,
    NoAnswerError,
    StageBusyError,
    StageRestingError,
)
from stopwise.live.calling.retrying import Breaker, Retry
from stopwise.live.calling.stage import Reported, Stage, stage
from stopwise.live.cascade import Cascade
from stopwise.live.choosing.budgets import BudgetError
from stopwise.live.comparing import (
    Comparator,
    MisusedComparatorError,
    by,
    by_key,
    exact,
    fenced_json,
    folded,
    json_fields,
    judge,
    letter,
    majority_vote,
    number,
    python_source,
    tool_call,
)
from stopwise.live.items.figures import ItemFigures
from stopwise.live.items.promise import PromiseFigures
from stopwise.live.learner import Learner
from stopwise.live.record import Advice, RoundOutcome, RoundRecord
from stopwise.live.round import Round
from stopwise.live.running.answer import Answer
from stopwise.live.running.explaining import DecisionExplanation, DecisionStep
from stopwise.live.stores.base import StoreError
from stopwise.live.stores.databases.postgres import PostgresStore
from stopwise.live.stores.databases.sqlite import SqliteStore
from stopwise.live.stores.log_lines import read_rounds
from stopwise.live.stores.queueing.status import StoreStatus
from stopwise.live.stores.round_log import RoundLog
from stopwise.live.stores.snapshot import read_evidence
from stopwise.live.watching.drift import Drift, DriftAlarm
from stopwise.live.watching.explain import Explanation
from stopwise.live.watching.report import LiveReport

# The names of earlier releases.
Outcome = RoundOutcome
Report = LiveReport

__all__ = [
    "Advice",
    "Answer",
    "Answers",
    "AsyncAnswers",
    "Batch",
    "Breaker",
    "BudgetError",
    "Cascade",
    "Comparator",
    "DecisionExplanation",
    "DecisionStep",
    "Drift",
    "DriftAlarm",
    "Explanation",
    "ItemFigures",
    "Learner",
    "LiveReport",
    "MisusedComparatorError",
    "MisusedStageError",
    "NoAnswerError",
    "Outcome",
    "PostgresStore",
    "PromiseFigures",
    "Report",
    "Reported",
    "Retry",
    "Round",
    "RoundLog",
    "RoundOutcome",
    "RoundRecord",
    "SqliteStore",
    "Stage",
    "StageBusyError",
    "StageRestingError",
    "StoreError",
    "StoreStatus",
    "by",
    "by_key",
    "exact",
    "fenced_json",
    "folded",
    "json_fields",
    "judge",
    "letter",
    "majority_vote",
    "number",
    "python_source",
    "read_evidence",
    "read_rounds",
    "stage",
    "tool_call",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, {})
