"""Drift alarms: kept in the store, so that every replica shows all of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from stopwise.live import DriftAlarm
from stopwise.service.database.connection import Database
from stopwise.service.database.writing import Statements


@dataclass(frozen=True)
class StoredAlarm:
    """An alarm and when it was raised."""

    at: float
    segment: str
    stages: tuple[int, int]
    before: float
    after: float


class Alarms:
    """The table of alarms."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, cascade: str, epoch: str, limit: int = 200) -> list[StoredAlarm]:
        """The alarms of a cascade since its stages were last changed, the latest first."""
        return [
            StoredAlarm(at, segment, (int(shallow), int(deep)), before, after)
            for at, segment, shallow, deep, before, after in self._database.rows(
                "SELECT at, segment, shallow, deep, before, after FROM alarms"
                " WHERE cascade_name = ? AND epoch = ? ORDER BY at DESC, id LIMIT ?",
                (cascade, epoch, limit),
            )
        ]


def write_alarms(work: Statements, cascade: str, epoch: str, alarms: Sequence[DriftAlarm]) -> None:
    """Keep alarms, in the transaction that raised them."""
    now = time.time()
    work.run_many(
        "INSERT INTO alarms (id, at, cascade_name, epoch, segment, shallow, deep, before, after)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (uuid.uuid4().hex, now, cascade, epoch, alarm.segment, *alarm.stages, alarm.before,
             alarm.after)
            for alarm in alarms
        ],
    )  # fmt: skip
