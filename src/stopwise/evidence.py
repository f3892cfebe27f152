"""What was seen: for every pair of stages, how often together, how often in disagreement."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stopwise.agreement import (
    Increments,
    count_partition,
    count_prefix,
    distinct,
    partitions,
)
from stopwise.checks import (
    StopwiseError,
    fail,
    known_names,
    known_version,
    names_settings,
    parse_json_object,
    whole_number,
    whole_numbers,
)

Counts = NDArray[np.int64 | np.float64]
"""Whole numbers as counted, or real ones where older rounds weigh less (`half_life`)."""

ABSTAINED: Final = None
"""The output of a stage that gave no answer: neither agreement nor disagreement."""

# Whole numbers up to here are exact as floats too, and many such evidences sum without overflow.
_MOST = 2**53

# What could be taken for a list of outputs, but says nothing of their order, or is one output.
_NO_LISTS = (str, bytes, dict, set, frozenset, type(None))

_VERSION = 1
_FIELDS = ("version", "stages", "seen", "disagreed", "switched", "switched_twice")


class Evidence:
    """A bag of counters; all that is ever learned.

    `seen[i, j]` and `disagreed[i, j]` for i < j count rounds in which both stages answered, and in
    which their answers differed. `switched` counts the rounds of three or more answers in which the
    output changed at least once along the cascade, and `switched_twice` those in which it changed
    again: with two labels a second change refutes strong dominance. Adding two evidences adds the
    counters.

    >>> evidence = Evidence(3)
    >>> evidence.add(["yes", "no", "no"])
    >>> evidence.add(["yes", "yes"])
    >>> evidence.seen[0, 1], evidence.disagreed[0, 1], evidence.seen[0, 2]
    (np.int64(2), np.int64(1), np.int64(1))
    """

    __slots__ = ("disagreed", "seen", "switched", "switched_twice")

    seen: Counts
    disagreed: Counts
    switched: int | float
    switched_twice: int | float

    @names_settings
    def __init__(self, stage_count: int) -> None:
        """Start from nothing seen, for a cascade of `stage_count` stages."""
        stage_count = whole_number("stage_count", stage_count, least=2)
        self.seen = np.zeros((stage_count, stage_count), dtype=np.int64)
        self.disagreed = np.zeros((stage_count, stage_count), dtype=np.int64)
        self.switched = 0
        self.switched_twice = 0

    @classmethod
    @names_settings
    def from_counts(
        cls, seen: ArrayLike, disagreed: ArrayLike, switched: int = 0, switched_twice: int = 0
    ) -> Evidence:
        """Build from tables of counts, of which the part above the diagonal is read.

        >>> Evidence.from_counts([[0, 5], [0, 0]], [[0, 2], [0, 0]]).disagreement[0, 1]
        np.float64(0.4)
        """
        tables = {
            "seen": _count_table("seen", seen),
            "disagreed": _count_table("disagreed", disagreed),
        }
        if tables["seen"].shape != tables["disagreed"].shape:
            raise fail("disagreed", tables["disagreed"].shape, "a table of the same size as seen")
        evidence = cls(len(tables["seen"]))
        evidence.seen = np.triu(tables["seen"], 1)
        evidence.disagreed = np.triu(tables["disagreed"], 1)
        if (evidence.disagreed > evidence.seen).any():
            i, j = np.argwhere(evidence.disagreed > evidence.seen)[0]
            raise fail(
                f"disagreed[{i}][{j}]", int(evidence.disagreed[i, j]),
                f"at most seen[{i}][{j}] = {evidence.seen[i, j]}",
            )  # fmt: skip
        evidence.switched = whole_number("switched", switched, least=0)
        evidence.switched_twice = whole_number("switched_twice", switched_twice, least=0)
        if evidence.switched_twice > evidence.switched:
            raise fail("switched_twice", switched_twice, f"at most switched = {switched}")
        return evidence

    @classmethod
    def from_prefixes(cls, stage_count: int, prefixes: Iterable[Sequence[Hashable]]) -> Evidence:
        """Count many rounds at once.

        >>> Evidence.from_prefixes(2, [["a", "a"], ["a", "b"], ["a"]]).seen[0, 1]
        np.int64(2)
        """
        evidence = cls(stage_count)
        for prefix in prefixes:
            evidence.add(prefix)
        return evidence

    @classmethod
    @names_settings
    def from_codes(cls, codes: ArrayLike, number: ArrayLike | None = None) -> Evidence:
        """Count many rounds whose outputs are coded as whole numbers, one row for each round.

        Args:
            codes: equal codes agree; a code below 0 is a stage that gave no answer.
            number: how often each row occurs, one whole number for each; once by default.

        >>> evidence = Evidence.from_codes([[0, 1, 0], [0, -1, 0]], [10, 5])
        >>> evidence.seen[0].tolist(), evidence.disagreed[0].tolist(), evidence.switched_twice
        ([0, 10, 15], [0, 10, 0], 10)
        """
        rows = partitions(_code_table(codes))
        evidence = cls(rows.shape[1])
        for partition, times in distinct(rows, _numbers_of_rows(number, len(rows))):
            evidence._count(count_partition(partition), times)
        return evidence

    @property
    def stage_count(self) -> int:
        """How many stages there are."""
        return len(self.seen)

    @property
    def disagreement(self) -> NDArray[np.float64]:
        """The share of disagreements of every pair i < j; not a number where never seen."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.seen > 0, self.disagreed / self.seen, np.nan)

    def counts(self, i: int, j: int) -> tuple[float, float]:
        """How often stages i < j were seen together, and how often they disagreed.

        Real numbers where older rounds weigh less, so never to be rounded.

        >>> Evidence.from_codes([[0, 1], [0, 0]]).counts(0, 1)
        (2.0, 1.0)
        """
        return float(self.seen[i, j]), float(self.disagreed[i, j])

    def add(
        self,
        prefix: Sequence[Hashable],
        *,
        differ: Callable[[Any, Any], bool] = operator.ne,
        times: int = 1,
    ) -> None:
        """Count one round: the outputs of the stages called, in order. None is *abstained*.

        Args:
            prefix: outputs of the first stages; shorter than the cascade where the round stopped.
            differ: says whether two outputs disagree.
            times: count the round this often (equal rounds of a log).

        >>> evidence = Evidence(2)
        >>> evidence.add(["a", ABSTAINED])
        >>> evidence.seen.sum()
        np.int64(0)
        """
        if isinstance(prefix, _NO_LISTS):
            raise fail("prefix", prefix, "a list of outputs in the order of the stages")
        if len(prefix) > self.stage_count:
            raise fail(
                "prefix", list(prefix), f"at most {self.stage_count} outputs, one for each stage"
            )
        if times != 1 and whole_number("times", times, least=0) > _MOST:
            raise fail("times", times, f"at most {_MOST}")
        answered = [stage for stage, output in enumerate(prefix) if output is not ABSTAINED]
        for stage in answered:
            output = prefix[stage]
            if isinstance(output, (float, np.floating)) and output != output:
                raise fail(
                    f"prefix[{stage}]", output, "an output, or None for a stage that abstained"
                )
        # All comparisons come before the first count: one that fails must leave nothing behind.
        self._count(count_prefix(answered, lambda i, j: differ(prefix[i], prefix[j])), times)

    def _count(self, increments: Increments, times: int) -> None:
        for i, j, differs in increments.pairs:
            self.seen[i, j] += times
            if differs:
                self.disagreed[i, j] += times
        self.switched += times * increments.switched
        self.switched_twice += times * increments.switched_twice

    def merge(self, other: Evidence) -> None:
        """Add another evidence of the same cascade into this one.

        >>> one, two = Evidence(2), Evidence(2)
        >>> two.add([0, 1])
        >>> one.merge(two)
        >>> one == two
        True
        """
        if not isinstance(other, Evidence):
            raise fail("evidence", other, "an Evidence")
        if other.stage_count != self.stage_count:
            raise fail("evidence", f"{other.stage_count} stages", f"{self.stage_count} stages")
        # Not in place: whole counts plus real ones are real.
        self.seen = np.add(self.seen, other.seen)
        self.disagreed = np.add(self.disagreed, other.disagreed)
        self.switched += other.switched
        self.switched_twice += other.switched_twice

    def copy(self) -> Evidence:
        """An independent copy.

        >>> Evidence(2).copy() == Evidence(2)
        True
        """
        clone = Evidence(self.stage_count)
        clone.merge(self)
        return clone

    def to_json(self) -> str:
        """Write the counters as JSON; real counts are refused, since they count nothing exactly.

        >>> Evidence.from_json(Evidence(3).to_json()) == Evidence(3)
        True
        """
        if self.seen.dtype.kind == "f":
            raise fail("evidence", self, "whole counts; those of half_life are real numbers")
        return json.dumps(
            {
                "version": _VERSION,
                "stages": self.stage_count,
                "seen": self.seen.tolist(),
                "disagreed": self.disagreed.tolist(),
                "switched": int(self.switched),
                "switched_twice": int(self.switched_twice),
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Evidence:
        """Read the form that `to_json` writes; unknown fields and versions are refused.

        >>> Evidence.from_json(Evidence(3).to_json()).stage_count
        3
        """
        form = parse_json_object("evidence", text)
        known_names("evidence", form, _FIELDS)
        for field in _FIELDS:
            if field not in form:
                raise StopwiseError(f"evidence: the field {field!r} is missing")
        known_version(form, _VERSION)
        evidence = cls.from_counts(
            form["seen"], form["disagreed"], form["switched"], form["switched_twice"]
        )
        if form["stages"] != evidence.stage_count:
            raise fail("stages", form["stages"], f"{evidence.stage_count}, the size of seen")
        return evidence

    def __add__(self, other: Evidence) -> Evidence:
        if not isinstance(other, Evidence):
            return NotImplemented
        total = self.copy()
        total.merge(other)
        return total

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Evidence)
            and np.array_equal(self.seen, other.seen)
            and np.array_equal(self.disagreed, other.disagreed)
            and self.switched == other.switched
            and self.switched_twice == other.switched_twice
        )

    __hash__ = None  # type: ignore[assignment]  # counters change

    def __repr__(self) -> str:
        return f"Evidence({self.stage_count} stages, first pair seen {self.seen[0, 1]} times)"


def _code_table(codes: ArrayLike) -> NDArray[np.int64]:
    """Codes as they are: cut to whole numbers, 1.5 and 1 would agree."""
    accepted = "a table of whole numbers: rounds x stages"
    table = whole_numbers("codes", codes, accepted)
    if table.ndim != 2:
        raise fail("codes", codes, accepted)
    return table


def _numbers_of_rows(number: ArrayLike | None, rows: int) -> NDArray[np.int64] | None:
    if number is None:
        return None
    accepted = f"{rows} whole numbers from 0 to {_MOST}, one for each row of codes"
    numbers = whole_numbers("number", number, accepted)
    if numbers.shape != (rows,) or (rows and not 0 <= numbers.min() <= numbers.max() <= _MOST):
        raise fail("number", number, accepted)
    return numbers


def _count_table(field: str, values: ArrayLike) -> Counts:
    accepted = "a square table of whole numbers, 0 or more"
    try:
        # Left as objects, true is still no 1 and a huge number no float.
        table = np.asarray(values, dtype=None if hasattr(values, "__array__") else object)
    except ValueError:
        raise fail(field, values, accepted) from None
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.shape[0] < 2:
        raise fail(field, values, accepted + ", for at least two stages")
    whole = table.dtype.kind in "iu" or all(
        isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        for value in table.ravel().tolist()
    )
    if not whole or table.min() < 0:
        raise fail(field, values, accepted)
    if table.max() > _MOST:
        raise fail(field, int(table.max()), f"whole numbers of at most {_MOST}")
    return table.astype(np.int64)
