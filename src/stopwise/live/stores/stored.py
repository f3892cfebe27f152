"""What live learners have kept, read by those who only look: logs, databases, snapshots."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stopwise.abstentions import Abstentions
from stopwise.checks import StopwiseError, fail, finite_number, parse_json_object
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.live.counters.layout import layout_of
from stopwise.live.counters.segments import SegmentCounters
from stopwise.live.record import MOST_STAGES, RoundRecord
from stopwise.live.settings import abstentions_of
from stopwise.live.stores.connection import Row, first_line
from stopwise.live.stores.databases.counters import SqlCounters
from stopwise.live.stores.databases.rounds import Asking
from stopwise.live.stores.databases.rounds import read_rounds as read_rows
from stopwise.live.stores.inspecting import is_sqlite
from stopwise.live.stores.log_lines import check_log_header, read_rounds
from stopwise.live.stores.snapshot import read_evidence, read_snapshot

_STARTS = (b'{"kind": "stopwise rounds"', b'{"kind": "stopwise learner"')


@dataclass(frozen=True)
class Stored:
    """A cascade whose rounds or counts were kept.

    Attributes:
        name: how it is called in messages.
        stages: their names, cheapest first.
        costs: the cost of each stage, as it was given; `measured` if running means were used.
        mistake_cost: what one wrong answer costs.
        abstentions: what it means that a stage gives no answer.
        read_rounds: gives the rounds, where they were kept; None where only counts were.
        read_evidence: gives the exact evidence of every segment.
    """

    name: str
    stages: tuple[str, ...]
    costs: tuple[float, ...]
    mistake_cost: float
    measured: bool
    read_rounds: Callable[[], Iterator[RoundRecord]] | None
    read_evidence: Callable[[], Mapping[str, Evidence]]
    abstentions: Abstentions = "leave out"


def open_stored(source: str | Path) -> Stored | None:
    """What a source holds, or None where it is nothing that a learner wrote. It is only read.

    Args:
        source: the path of a `RoundLog`, of a snapshot or of a SQLite store, or the address of a
            PostgreSQL store; `#NAME` at its end chooses one of several cascades.

    >>> open_stored("no-such-file") is None
    True
    """
    text = str(source)
    if text.startswith(("postgresql://", "postgres://")):
        address, _, name = text.partition("#")
        return _from_sql("PostgreSQL store", _postgres(address), name or None)
    place, cascade = (text, None) if Path(text).is_file() else _divided(text)
    path = Path(place)
    if not path.is_file():
        return None
    if is_sqlite(path):
        ask = _sqlite(path)
        if not ask("SELECT 1 FROM sqlite_master WHERE name = 'stopwise_cascades'", ()):
            return None
        if ask("SELECT 1 FROM sqlite_master WHERE type IN ('view', 'trigger') LIMIT 1", ()):
            raise StopwiseError(f"{path}: holds views or triggers, which no learner makes")
        return _from_sql(str(path), ask, cascade)
    with path.open("rb") as file:
        start = file.read(40)
    if start.startswith(_STARTS[0]):
        return _from_log(path)
    return _from_snapshot(path) if start.startswith(_STARTS[1]) else None


def _divided(text: str) -> tuple[str, str | None]:
    place, mark, cascade = text.rpartition("#")
    return (place, cascade) if mark else (text, None)


def _from_log(path: Path) -> Stored:
    with path.open("rb") as file:
        form = parse_json_object(str(path), file.readline())
    settings = check_log_header(str(path), form)

    def evidence() -> Mapping[str, Evidence]:
        counters = SegmentCounters(
            len(settings["stages"]), abstentions=abstentions_of(settings, str(path))
        )
        for record in read_rounds(path):
            counters.apply(record)
        return _evidence(counters)

    return _stored(str(path), settings, lambda: read_rounds(path), evidence)


def _from_snapshot(path: Path) -> Stored:
    return _stored(str(path), read_snapshot(path)["settings"], None, lambda: read_evidence(path))


def _from_sql(name: str, ask: Asking, cascade: str | None) -> Stored:
    found: dict[Any, Any] = dict(ask("SELECT cascade, settings FROM stopwise_cascades", ()))
    if cascade is None and len(found) > 1:
        shown = ", ".join(f"{name}#{one}" for one in sorted(map(str, found))[:10])
        raise StopwiseError(f"{name}: holds {len(found)} cascades; name one: {shown}")
    if not found or (cascade is not None and cascade not in found):
        raise fail(f"{name}: cascade", cascade or "", f"one of {sorted(map(str, found))}")
    chosen = next(iter(found)) if cascade is None else cascade
    settings = _checked_settings(name, parse_json_object(f"{name}: settings", found[chosen]))
    stage_count = len(settings["stages"])

    def evidence() -> Mapping[str, Evidence]:
        counters = SegmentCounters(stage_count)
        known = layout_of(stage_count).places
        query = "SELECT segment, counter, value FROM stopwise_counters WHERE cascade = ?"
        rows = [row for row in ask(query, (chosen,)) if row[1] in known]
        for segment, values in SqlCounters(name, str(chosen), stage_count).by_segment(rows).items():
            counters.set_tally(segment, values)
        return _evidence(counters)

    def rounds() -> Iterator[RoundRecord]:
        return read_rows(ask, chosen, name, stage_count)

    kept = ask("SELECT 1 FROM stopwise_rounds WHERE cascade = ? LIMIT 1", (chosen,))
    return _stored(name, settings, rounds if kept else None, evidence)


def _evidence(counters: SegmentCounters) -> Mapping[str, Evidence]:
    return {name: tally.evidence() for name, tally in counters.tallies.items()}


def _stored(
    name: str,
    settings: Any,
    rounds: Callable[[], Iterator[RoundRecord]] | None,
    evidence: Callable[[], Mapping[str, Evidence]],
) -> Stored:
    checked = _checked_settings(name, settings)
    return Stored(
        name,
        tuple(checked["stages"]),
        tuple(float(cost) for cost in checked["costs"]),
        float(checked["mistake_cost"]),
        checked.get("measured") is True,
        rounds,
        evidence,
        abstentions_of(checked, name),
    )


def _checked_settings(name: str, settings: Any) -> Mapping[str, Any]:
    """Check what is said of a cascade: it may come from elsewhere."""
    form: Mapping[str, Any] = settings if isinstance(settings, Mapping) else {}
    stages, costs, mistake_cost = (form.get(at) for at in ("stages", "costs", "mistake_cost"))
    if (
        not isinstance(stages, list)
        or not 2 <= len(stages) <= MOST_STAGES
        or not all(isinstance(stage, str) for stage in stages)
        or len(set(stages)) != len(stages)
    ):
        raise fail(f"{name}: stages", stages, f"the different names of 2 to {MOST_STAGES} stages")
    if not isinstance(costs, list) or len(costs) != len(stages):
        raise fail(f"{name}: costs", costs, f"{len(stages)} numbers")
    try:
        Costs.from_stages(costs, finite_number("mistake_cost", mistake_cost))
    except StopwiseError as error:
        raise StopwiseError(f"{name}: {error}") from None
    return form


def _sqlite(path: Path) -> Asking:
    """Ask a file, over a connection for each question: nothing is held while the caller reads."""

    def ask(sql: str, values: Sequence[Any]) -> list[Row]:
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as one:
                return one.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StopwiseError(
                f"{path}: cannot be read as a store ({first_line(error)})"
            ) from None

    return ask


def _postgres(url: str) -> Asking:
    def ask(sql: str, values: Sequence[Any]) -> list[Row]:
        try:
            import psycopg
        except ImportError:
            raise StopwiseError(
                "postgresql:// needs psycopg: pip install 'stopwise[postgres]'"
            ) from None
        try:
            options = "-c default_transaction_read_only=on"
            with psycopg.connect(url, options=options) as one:
                text: Any = sql.replace("?", "%s")
                return one.execute(text, values).fetchall()
        except psycopg.Error as error:
            raise StopwiseError(
                f"the PostgreSQL store cannot be read ({first_line(error)})"
            ) from None

    return ask
