"""Labels that people gave: which answers of a round were right."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from stopwise.service.database.connection import Database


@dataclass(frozen=True)
class Label:
    """What a person said of a round.

    Attributes:
        correct: the stages whose answers are right; empty if none is.
    """

    round_id: str
    at: float
    who: str
    correct: tuple[int, ...]
    note: str


class Labels:
    """The table of labels; a second label of a round replaces the first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, cascade: str, round_id: str, who: str, correct: Sequence[int], note: str) -> None:
        """Keep a label."""
        with self._database.transaction() as work:
            work.run(
                "INSERT INTO labels (round_id, cascade_name, at, who, correct, note)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (round_id) DO UPDATE SET"
                " who = excluded.who, correct = excluded.correct, note = excluded.note",
                (round_id, cascade, time.time(), who, json.dumps(sorted(correct)), note),
            )

    def all(self, cascade: str, epoch: str | None = None) -> dict[str, Label]:
        """Every label of a cascade, by round; of the rounds of one epoch where one is given."""
        query = "SELECT round_id, at, who, correct, note FROM labels WHERE cascade_name = ?"
        values = [cascade]
        if epoch is not None:
            query += " AND round_id IN (SELECT id FROM rounds WHERE cascade_name = ? AND epoch = ?)"
            values += [cascade, epoch]
        rows = self._database.rows(query, values)
        return {
            row[0]: Label(row[0], row[1], row[2], tuple(json.loads(row[3])), row[4]) for row in rows
        }
