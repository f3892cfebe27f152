"""Costs in the words of each database: a cell as a number, what is none, and its step.

Costs may be kept as text, and no two databases agree on what becomes of a text that is no number
(SQLite reads 0, PostgreSQL stops). Here all do as files do: a blank or NaN is no cost, any other
text that is no number is counted, so that it can be refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

STEPS = 1000
"""A cost is kept to one part in this many."""

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_DUCKDB_NUMERIC = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT|FLOAT|DOUBLE|DECIMAL")
_POSTGRES_NUMERIC = {20, 21, 23, 700, 701, 1700}
"""What PostgreSQL calls whole numbers, floats and decimals in what it says of a column."""


def number(kind: str, column: str, described: object) -> str:
    """SQL for a cell as a number, NULL where it is none.

    Args:
        described: what the driver says of the column's type.

    >>> number("postgresql", "asked.price", 701)
    "NULLIF(CAST(asked.price AS double precision), 'NaN')"
    """
    if kind == "sqlite":
        # The function is only called where it is needed: for each row it takes far longer.
        plain = f"typeof({column}) IN ('real', 'integer')"
        return f"CASE WHEN {plain} THEN {column} ELSE stopwise_number({column}) END"
    if kind == "duckdb":
        read = f"TRY_CAST({column} AS DOUBLE)"
        if _DUCKDB_NUMERIC.match(str(described)):
            return f"CASE WHEN isnan({read}) THEN NULL ELSE {read} END"
        text = f"CAST({column} AS VARCHAR)"
        return f"CASE WHEN regexp_full_match({text}, '{_NUMBER.pattern}') THEN {read} END"
    if described in _POSTGRES_NUMERIC:
        return f"NULLIF(CAST({column} AS double precision), 'NaN')"
    text = f"CAST({column} AS text)"
    return f"CASE WHEN {text} ~ '^{_NUMBER.pattern}$' THEN CAST({text} AS double precision) END"


def no_number(kind: str, column: str, read: str) -> str:
    """SQL for 1 where a cell holds something that `read`, the number, does not show; else 0."""
    text = f"LOWER(TRIM(CAST({column} AS {'TEXT' if kind != 'duckdb' else 'VARCHAR'})))"
    return f"CASE WHEN {read} IS NULL AND {text} NOT IN ('', 'nan') THEN 1 ELSE 0 END"


def step(kind: str, column: str) -> str:
    """SQL for the step in which a cost above 0 lies: its logarithm, in parts of `STEPS`."""
    return f"stopwise_step({column})" if kind == "sqlite" else f"FLOOR(LN({column}) * {STEPS})"


def _number(value: Any) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    return None


def _step(value: float) -> float:
    return math.floor(math.log(value) * STEPS)


# SQLite has no cast that says what is no number, and not everywhere logarithms.
SQLITE_FUNCTIONS: dict[str, Callable[[Any], float | None]] = {
    "stopwise_number": _number,
    "stopwise_step": _step,
}
