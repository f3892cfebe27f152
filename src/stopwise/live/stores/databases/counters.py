"""The counters of a cascade as rows: read by segment, increased by what rounds add."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence

from stopwise.checks import StopwiseError, fail, parse_json_object, whole_number
from stopwise.live.counters.layout import RECENT, layout_of
from stopwise.live.counters.tally import Tally
from stopwise.live.record import RoundRecord, added_of
from stopwise.live.stores.connection import Connection, Row
from stopwise.live.stores.databases.schema import ADD, ADD_HOUR
from stopwise.live.watching.drift import DriftAlarm, DriftWatch

_PART = 200  # segments that are read with one query
MOST_SEGMENTS = 1_000_000
"""A database with more segments than this is not read: no learner makes that number."""

Counters = dict[str, dict[str, int | float]]


class SqlCounters:
    """The counters of one cascade.

    Args:
        where: how the database is named in errors.
        cascade: its name.
        stages: how many it has.
    """

    def __init__(self, where: str, cascade: str, stages: int) -> None:
        self._where = where
        self._cascade = cascade
        self._layout = layout_of(stages)

    # ---- reading -----------------------------------------------------------------------------

    def read(self, connection: Connection) -> Counters:
        """All counters, by segment."""
        number = connection.query(
            "SELECT COUNT(*) FROM (SELECT DISTINCT segment FROM stopwise_counters"
            " WHERE cascade = ? LIMIT ?) AS found",
            (self._cascade, MOST_SEGMENTS + 1),
        )[0][0]
        if number > MOST_SEGMENTS:
            raise fail(f"{self._where}: segments", f"{number} of them", f"at most {MOST_SEGMENTS}")
        return self.by_segment(
            connection.query(
                "SELECT segment, counter, value FROM stopwise_counters WHERE cascade = ?",
                (self._cascade,),
            )
        )

    def read_changed(self, connection: Connection, seen: int) -> Counters:
        """The counters of the segments that were changed after the change of this number."""
        names = connection.query(
            "SELECT segment FROM stopwise_segments WHERE cascade = ? AND change > ?",
            (self._cascade, seen),
        )
        rows: list[Row] = []
        for start in range(0, len(names), _PART):
            part = [name for (name,) in names[start : start + _PART]]
            places = ", ".join("?" * len(part))
            rows += connection.query(
                "SELECT segment, counter, value FROM stopwise_counters"
                f" WHERE cascade = ? AND segment IN ({places})",
                (self._cascade, *part),
            )
        return self.by_segment(rows)

    def by_segment(self, rows: Iterable[Row]) -> Counters:
        """Rows of segment, counter and value; whole numbers as such where the counter is one."""
        segments: Counters = {}
        for segment, counter, value in rows:
            number = self._checked(segment, counter, value)
            segments.setdefault(segment, {})[counter] = number
        return segments

    def _checked(self, segment: object, counter: object, value: object) -> int | float:
        if not isinstance(segment, str) or not isinstance(counter, str):
            raise fail(f"{self._where}: counter", f"{segment!r}, {counter!r}", "names in text")
        if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
            raise fail(f"{self._where}: counter {counter!r}", value, "a finite number")
        place = self._layout.places.get(counter)
        if place is not None and not self._layout.real[place] and value == int(value):  # type: ignore[call-overload]
            return int(value)  # type: ignore[call-overload,no-any-return]
        return value  # type: ignore[return-value]

    # ---- writing -----------------------------------------------------------------------------

    def add_rounds(
        self,
        connection: Connection,
        segment: str,
        records: Sequence[RoundRecord],
        change: int,
        empty: Tally,
        watch: DriftWatch | None,
    ) -> list[DriftAlarm]:
        """Count rounds of a segment, to be added by `add`; return the alarms that they raise.

        Args:
            connection: in a transaction.
            segment: of all of them.
            records: the rounds.
            change: the number of this change.
            empty: counters at zero, which they are added to.
            watch: where drift is watched for.
        """
        empty.apply(*records)
        if empty.discount != 1.0:
            # Older rounds lose weight with every round; within the batch `empty` has seen to it.
            connection.query(
                "UPDATE stopwise_counters SET value = value * ?"
                " WHERE cascade = ? AND segment = ? AND counter LIKE ?",
                (empty.discount ** len(records), self._cascade, segment, f"{RECENT}%"),
            )
        number, drift = self.touch(connection, segment, change)
        if watch is None:
            return []
        self._resume(watch, segment, number, drift)
        alarms: list[DriftAlarm] = []
        for record in records:
            alarms += watch.observe(
                segment, added_of(record, empty.stage_count, empty.abstentions).pairs
            )
        connection.query(
            "UPDATE stopwise_segments SET drift = ? WHERE cascade = ? AND segment = ?",
            (json.dumps(watch.form_of(segment)), self._cascade, segment),
        )
        return alarms

    def touch(self, connection: Connection, segment: str, change: int) -> tuple[object, object]:
        """Note that a segment has changed; return its place in the order of appearance."""
        found = connection.query(
            "UPDATE stopwise_segments SET change = ? WHERE cascade = ? AND segment = ?"
            " RETURNING number, drift",
            (change, self._cascade, segment),
        )
        if not found:
            # The next number, by an index: there may be thousands of segments.
            last = connection.query(
                "SELECT number FROM stopwise_segments WHERE cascade = ? AND number BETWEEN 1 AND ?"
                " ORDER BY number DESC LIMIT 1",
                (self._cascade, MOST_SEGMENTS),
            )
            found = connection.query(
                "INSERT INTO stopwise_segments (cascade, segment, number, change)"
                " VALUES (?, ?, ?, ?) RETURNING number, drift",
                (self._cascade, segment, last[0][0] + 1 if last else 1, change),
            )
        number, drift = found[0]
        return number, drift

    def add(self, connection: Connection, deltas: Mapping[str, Tally]) -> None:
        """Add counters to those of their segments, and to those of this hour."""
        rows = [
            (self._cascade, segment, name, float(value))
            for segment, delta in deltas.items()
            for name, value in delta.to_counters().items()
        ]
        connection.many(ADD, rows)
        hour = int(time.time() // 3600)
        connection.many(
            ADD_HOUR,
            [
                (cascade, segment, hour, name, value)
                for cascade, segment, name, value in rows
                if not name.startswith(RECENT)
            ],
        )

    # ---- drift -------------------------------------------------------------------------------

    def check_drift(self, connection: Connection, watch: DriftWatch) -> None:
        """Refuse bets that cannot be gone on with now, and not when a round is to be counted."""
        scratch = DriftWatch(watch.stage_count, watch.settings)
        for segment, number, drift in connection.query(
            "SELECT segment, number, drift FROM stopwise_segments WHERE cascade = ?",
            (self._cascade,),
        ):
            self._resume(scratch, segment, number, drift)

    def _resume(self, watch: DriftWatch, segment: str, number: object, drift: object) -> None:
        name = f"{self._where}: segment {segment!r}"
        try:
            place = whole_number("number", number, least=1)
            form = None
            if drift is not None:
                # A list is what older releases kept.
                if not isinstance(drift, str):
                    raise fail("drift", drift, "JSON as text")
                form = parse_json_object("drift", f'{{"drift": {drift}}}')["drift"]
            watch.begin(segment, place, form)
        except StopwiseError as error:
            raise StopwiseError(f"{name}: {error}") from None
