"""Binning: the fixed cuts by which confidences, labels and features become small whole numbers.

A binning is made once and kept with the counts, because counts by other bins are other counts: new
bins start a new epoch. It is read back from JSON, never from pickled objects.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import FloatArray, IntArray
from stopwise.checks import fail, finite_number, known_fields, known_version, whole_number
from stopwise.situations.observations import ABSTAINED, MOST_STAGES, Observations

VERSION = 1
CONFIDENCE_BINS = 6
MOST_LABELS = 8
MOST_CELLS = 16
"""Features cut items into at most this many cells, whatever their number."""

MOST_FEATURES = 3
"""More than these would leave a table too few items in each cell."""

MISSING_BIN = 15
"""The confidence bin of a stage that gave none."""
OTHER_LABEL = 14
ABSTAINED_LABEL = 15


@dataclass(frozen=True)
class FeatureBins:
    """How one feature is cut: at numbers (`edges`) or by its most frequent values (`values`)."""

    name: str
    edges: tuple[float, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def cells(self) -> int:
        """How many bins there are, that of blank or other values included."""
        return (len(self.edges) + 1 if self.edges or not self.values else len(self.values)) + 1

    def bins(self, column: NDArray[Any]) -> IntArray:
        """The bin of every value; the last bin holds blank and rare ones.

        >>> FeatureBins("length", edges=(10.0,)).bins(np.array([3, 30, np.nan])).tolist()
        [0, 1, 2]
        >>> FeatureBins("country", values=("de", "fr")).bins(np.array(["fr", "it"])).tolist()
        [1, 2]
        """
        if self.values:
            known = {value: at for at, value in enumerate(self.values)}
            found = [known.get(str(value), len(known)) for value in column]
            return np.asarray(found, dtype=np.int64)
        return _cut(np.asarray(column, dtype=np.float64), self.edges, len(self.edges) + 1)


@dataclass(frozen=True)
class Binning:
    """The cuts of a cascade: for each stage its confidences and labels, and the features.

    Args:
        edges: for each stage, where its confidences are cut; a value on a cut lies above it.
        labels: for each stage, its most frequent labels; all others count as one.
        features: how each feature is cut.
        label_count: how many different labels the stages give, the rare ones too.
        whole: whether whole rows are counted by it, for stages that can be called alone, in the
            place of transitions (`stopwise.situations.whole_rows`).

    >>> binning = Binning(edges=((0.5, 0.9), ()), labels=(("no", "yes"), ("no", "yes")))
    >>> binning.confidence_bin(0, 0.9), binning.confidence_bin(0, None)
    (2, 15)
    >>> binning.label_bin(0, "yes"), binning.label_bin(0, "perhaps"), binning.label_bin(0, None)
    (1, 14, 15)
    """

    edges: tuple[tuple[float, ...], ...]
    labels: tuple[tuple[str, ...], ...]
    features: tuple[FeatureBins, ...] = ()
    label_count: int = 2
    whole: bool = False

    def __post_init__(self) -> None:
        if not 2 <= len(self.edges) <= MOST_STAGES or len(self.edges) != len(self.labels):
            raise fail(
                "binning", f"{len(self.edges)} and {len(self.labels)} stages",
                f"edges and labels of the same 2 to {MOST_STAGES} stages",
            )  # fmt: skip
        for stage, cuts in enumerate(self.edges):
            if len(cuts) >= MISSING_BIN or list(cuts) != sorted(set(cuts)):
                raise fail(f"edges[{stage}]", cuts, f"up to {MISSING_BIN - 1} rising numbers")
            if not all(math.isfinite(cut) for cut in cuts):
                raise fail(f"edges[{stage}]", cuts, "finite numbers")
        for stage, names in enumerate(self.labels):
            if len(names) > OTHER_LABEL or len(set(names)) != len(names):
                raise fail(f"labels[{stage}]", names, f"up to {OTHER_LABEL} different labels")
        if whole_number("label_count", self.label_count, least=1) > 2**31:
            raise fail("label_count", self.label_count, "at most 2**31, more than any log has")
        if math.prod(feature.cells for feature in self.features) > 32:
            raise fail("features", [f.name for f in self.features], "at most 32 cells together")

    # ---- making one ---------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        rows: Observations,
        *,
        confidence_bins: int = CONFIDENCE_BINS,
        most_labels: int = MOST_LABELS,
        whole: bool = False,
    ) -> Binning:
        """Quantile bins of each stage's confidences, and its most frequent labels.

        >>> rows = Observations(("a", "b"), np.array([[0, 1], [0, 0], [1, 1], [0, 0]]),
        ...                     np.array([[0.1, 1], [0.2, 1], [0.3, 1], [0.4, 1]]))
        >>> binning = Binning.fit(rows, confidence_bins=2)
        >>> binning.edges, binning.labels
        (((0.25,), ()), (('a', 'b'), ('a', 'b')))
        """
        edges: list[tuple[float, ...]] = []
        labels: list[tuple[str, ...]] = []
        for stage in range(rows.stage_count):
            column = rows.codes[:, stage]
            counts = np.bincount(column[column >= 0], minlength=len(rows.labels))
            order = np.argsort(-counts, kind="stable")[:most_labels]
            labels.append(tuple(rows.labels[code] for code in order if counts[code]))
            values = None if rows.confidences is None else rows.confidences[:, stage]
            edges.append(() if values is None else quantile_edges(values, confidence_bins))
        _refuse_what_is_no_cell(rows)
        each = max(int(MOST_CELLS ** (1 / max(len(rows.features), 1))), 2)
        features = tuple(_fit_feature(n, column, each) for n, column in rows.features.items())
        return cls(tuple(edges), tuple(labels), features, max(len(rows.labels), 2), whole)

    # ---- using it -----------------------------------------------------------------------------

    @property
    def stage_count(self) -> int:
        """How many stages the cascade has."""
        return len(self.edges)

    def confidence_bin(self, stage: int, confidence: float | None) -> int:
        """The bin of one confidence; `MISSING_BIN` where there is none."""
        if confidence is None or confidence != confidence:
            return MISSING_BIN
        at = 0
        for cut in self.edges[stage]:  # a handful: a loop beats a search
            if confidence < cut:
                break
            at += 1
        return at

    def label_bin(self, stage: int, label: str | None) -> int:
        """The bin of one label; None stands for *abstained*."""
        if label is None:
            return ABSTAINED_LABEL
        names = self.labels[stage]
        return names.index(label) if label in names else OTHER_LABEL

    def confidence_bins(self, rows: Observations) -> IntArray:
        """The confidence bin of every cell of the rows."""
        if rows.confidences is None:
            return np.full(rows.codes.shape, MISSING_BIN, dtype=np.int64)
        columns = [_cut(rows.confidences[:, s], cuts, MISSING_BIN) for s, cuts in self._cuts(rows)]
        return np.stack(columns, axis=1)

    def label_bins(self, rows: Observations) -> IntArray:
        """The label bin of every cell of the rows."""
        result = np.full(rows.codes.shape, ABSTAINED_LABEL, dtype=np.int64)
        for stage, _ in self._cuts(rows):
            # One more entry than labels: the code of *abstained*, -1, reads the last.
            table = [self.label_bin(stage, label) for label in rows.labels]
            column = np.where(rows.codes[:, stage] < 0, ABSTAINED, rows.codes[:, stage])
            result[:, stage] = np.asarray([*table, ABSTAINED_LABEL])[column]
        return result

    def cells(self, rows: Observations) -> IntArray:
        """The cell of every row by its features; 0 where there are none."""
        result = np.zeros(len(rows), dtype=np.int64)
        for feature in self.features:
            if feature.name not in rows.features:
                raise fail("features", sorted(rows.features), f"the feature {feature.name!r} too")
            result = result * feature.cells + feature.bins(np.asarray(rows.features[feature.name]))
        return result

    def cell(self, features: Mapping[str, Any] | None) -> int:
        """The cell of one item; a feature that is not given counts as blank.

        >>> binning = Binning(((), ()), ((), ()), (FeatureBins("length", edges=(10.0,)),))
        >>> binning.cell({"length": 12}), binning.cell(None)
        (1, 2)
        """
        result = 0
        for feature in self.features:
            value = (features or {}).get(feature.name)
            column: NDArray[Any] = np.array([math.nan if value is None else value])
            result = result * feature.cells + int(feature.bins(column)[0])
        return result

    def _cuts(self, rows: Observations) -> Sequence[tuple[int, tuple[float, ...]]]:
        if rows.stage_count != self.stage_count:
            raise fail("rows", f"{rows.stage_count} stages", f"{self.stage_count}, as binned")
        return list(enumerate(self.edges))

    # ---- keeping it ---------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        form: dict[str, Any] = {
            "version": VERSION,
            "edges": [list(cuts) for cuts in self.edges],
            "labels": [list(names) for names in self.labels],
            "features": [
                {"name": f.name, "edges": list(f.edges), "values": list(f.values)}
                for f in self.features
            ],
            "label_count": self.label_count,
        }
        if self.whole:
            form["whole"] = True
        return form

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Binning:
        """Read what `to_dict` wrote.

        >>> binning = Binning(edges=((0.5,), ()), labels=(("no",), ("no",)))
        >>> Binning.from_dict(binning.to_dict()) == binning
        True
        """
        known_fields(
            "binning", form, ("version", "edges", "labels", "features", "label_count", "whole")
        )
        known_version(form, VERSION, needed=True)
        try:
            edges = tuple(tuple(_number(cut) for cut in cuts) for cuts in form["edges"])
            labels = tuple(tuple(_text(name) for name in names) for names in form["labels"])
            features = tuple(
                FeatureBins(
                    _text(f["name"]),
                    tuple(_number(cut) for cut in f["edges"]),
                    tuple(_text(value) for value in f["values"]),
                )
                for f in form.get("features", ())
            )
        except (KeyError, TypeError) as error:
            raise fail("binning", str(error), "edges, labels and features as written") from None
        whole = form.get("whole", False)
        if not isinstance(whole, bool):
            raise fail("whole", whole, "true or false")
        return cls(edges, labels, features, form.get("label_count", 2), whole)

    @property
    def epoch(self) -> str:
        """A short name that is the same for equal binnings alone: counts of two never mix.

        >>> len(Binning(edges=((), ()), labels=((), ())).epoch)
        12
        """
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def quantile_edges(values: FloatArray, bins: int) -> tuple[float, ...]:
    """Where to cut so that about equally many values lie in every bin; fewer cuts under ties.

    >>> quantile_edges(np.array([1, 2, 3, 4.0]), 2), quantile_edges(np.array([7.0, 7.0]), 3)
    ((2.5,), ())
    """
    given = values[np.isfinite(values)]
    if not len(given):
        return ()
    cuts = np.unique(np.quantile(given, np.arange(1, bins) / bins))
    return tuple(float(cut) for cut in cuts[cuts > given.min()])


def written(label: Hashable) -> str:
    """The text by which a label is known in a binning.

    >>> written("refund"), written(3), written(True)
    ('refund', '3', 'true')
    """
    return str(label).lower() if isinstance(label, bool) else str(label)


def _cut(values: FloatArray, cuts: Sequence[float], missing: int) -> IntArray:
    bins = np.searchsorted(np.asarray(cuts, dtype=np.float64), values, side="right")
    return np.where(np.isnan(values), missing, bins).astype(np.int64)


def _refuse_what_is_no_cell(rows: Observations) -> None:
    """A table tells apart a few cells; numbers by the dozen are for regressions."""
    wide = [name for name, column in rows.features.items() if np.ndim(column) > 1]
    if wide:
        raise fail(
            f"feature {wide[0]}", "a vector for each item",
            "numbers or texts, as a table is cut by; per-item-logistic takes vectors",
        )  # fmt: skip
    if len(rows.features) > MOST_FEATURES:
        raise fail(
            "features", f"{len(rows.features)} of them",
            f"at most {MOST_FEATURES} for a table; per-item-logistic takes any number",
        )  # fmt: skip


def _fit_feature(name: str, column: NDArray[Any], cells: int) -> FeatureBins:
    array = np.asarray(column)
    if np.issubdtype(array.dtype, np.number):
        return FeatureBins(name, edges=quantile_edges(array.astype(np.float64), max(cells - 1, 2)))
    found, counts = np.unique([str(value) for value in array], return_counts=True)
    order = np.argsort(-counts, kind="stable")[: max(cells - 1, 1)]
    return FeatureBins(name, values=tuple(str(found[at]) for at in order))


def _number(value: object) -> float:
    return finite_number("binning", value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise fail("binning", value, "text")
    return value
