"""An audit of a running cascade: which rounds to label next, and what the labels settle."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from stopwise.abstentions import UNKNOWN
from stopwise.costs import Costs
from stopwise.estimating import answer_probabilities
from stopwise.logs.auditing.audit import AuditPlan, assess
from stopwise.logs.auditing.result import Audit
from stopwise.logs.reading.rows import LogRows
from stopwise.logs.settings import LogSettings
from stopwise.service.cascades.counting import stop_codes
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.database.labels import Label
from stopwise.service.database.rounds import StoredRound

_NONE_RIGHT = 1_000_000


def audit_of(
    cascade: RunningCascade,
    rounds: Sequence[StoredRound],
    labels: Mapping[str, Label],
    *,
    costs: Costs,
    secret: bytes,
    batch: int = 20,
    level: float = LogSettings.level,
) -> Audit | None:
    """Where the audit of these rounds stands; None while no round tells of every stage.

    The rounds are those that had ended when the first label was given: a sample that keeps growing
    could not be put into one random order. That order is a keyed hash of the round's id, so that
    all replicas ask for the same next label.

    Args:
        costs: of the stages, as the verdict has them.
    """
    stage_count, abstentions = len(cascade.config.stages), cascade.config.abstentions
    complete, stops = [], []
    for stored in rounds:
        form = stored.form
        if len(form["codes"]) == stage_count and not form.get("decided"):
            found = stop_codes(tuple(form["codes"]), form["depth"], stage_count, abstentions)
            if UNKNOWN not in found:
                complete.append(stored)
                stops.append(found)
    if not complete:
        return None
    codes = np.array([stored.form["codes"] for stored in complete], dtype=np.int64)
    rows = LogRows(
        name=cascade.name,
        stages=cascade.config.stage_names,
        costs=costs,
        labels=(),
        codes=codes,
        answers=np.array(stops, dtype=np.int64),
        spent=np.broadcast_to(np.asarray(costs.cumulative), codes.shape),
        shown=None,
        items=tuple(stored.id for stored in complete),
        truth=None,
        left_out=len(rounds) - len(complete),
    )
    keys = [hashlib.sha256(secret + stored.id.encode()).digest() for stored in complete]
    order = np.array(sorted(range(len(complete)), key=keys.__getitem__), dtype=np.int64)
    truth = {}
    for at, stored in enumerate(complete):
        label = labels.get(stored.id)
        if label is not None:
            right = [stored.form["codes"][stage] for stage in label.correct if stage < stage_count]
            truth[at] = right[0] if right else _NONE_RIGHT
    plan = AuditPlan(rows, level, answer_probabilities(codes, abstentions), abstentions=abstentions)
    return assess(plan, order, truth, batch)
