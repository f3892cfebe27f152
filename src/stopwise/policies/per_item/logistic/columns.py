"""All that is known of an item after a stage, as a row of named numbers for a regression.

These are: how sure each stage so far said it was, standardised, and the bin of the newest; what the
newest stage said, alone and together with how sure it is; which stages so far agree; and the
features of the item. Nothing of a later stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from stopwise.arrays import FloatArray
from stopwise.checks import fail, known_fields
from stopwise.policies.per_item.logistic.features import (
    FeatureColumn,
    numbers_of,
    scaled_by,
    standard,
)
from stopwise.situations.binning import ABSTAINED_LABEL, MISSING_BIN, OTHER_LABEL, Binning
from stopwise.situations.observations import Observations


class NumberMeaning(NamedTuple):
    """What one number is about, and whether it is a number or else yes (1) or no (0)."""

    text: str
    number: bool


@dataclass(frozen=True)
class RowNumbers:
    """How rows become numbers, stage by stage.

    Attributes:
        binning: of confidences and labels, without features.
        means, scales: of each stage's confidences; none where no stage gives any.
        features: how each feature becomes numbers.

    >>> sure = np.array([[0.2, 1], [0.4, 1]])
    >>> rows = Observations(("no", "yes"), np.array([[0, 1], [1, 1]]), sure)
    >>> columns = RowNumbers.fit(rows)
    >>> columns.entries(0, ("small", "large"))[0]
    NumberMeaning(text='how sure small is', number=True)
    >>> columns.matrix(rows, 0)[:, 0].round(6).tolist()
    [-1.0, 1.0]
    """

    binning: Binning
    means: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    features: tuple[FeatureColumn, ...] = ()

    @classmethod
    def fit(cls, rows: Observations) -> RowNumbers:
        """From rows; stages that some of them did not call are taken as far as they go."""
        bare = Observations(rows.labels, rows.codes, rows.confidences)
        means: tuple[float, ...] = ()
        scales: tuple[float, ...] = ()
        if rows.confidences is not None:
            means, scales = standard(rows.confidences)
        return cls(
            Binning.fit(bare),
            means,
            scales,
            tuple(FeatureColumn.fit(name, column) for name, column in rows.features.items()),
        )

    def entries(self, stage: int, stages: tuple[str, ...]) -> list[NumberMeaning]:
        """What each number of a row after this stage is about."""
        own = stages[stage]
        said = self._said(stage)
        meanings: list[NumberMeaning] = []
        if self.means:
            meanings += [
                NumberMeaning(f"how sure {stages[at]} is", True) for at in range(stage + 1)
            ]
            meanings += [NumberMeaning(text, False) for text in self._bin_names(stage, own)]
        meanings += [NumberMeaning(f"{own} says {label}", False) for label in said]
        meanings += [
            NumberMeaning(f"{own} says something rare", False),
            NumberMeaning(f"{own} gives no answer", False),
        ]
        if self.means:
            meanings += [
                NumberMeaning(f"how sure {own} is, where it says {label}", True) for label in said
            ]
        pairs = combinations(stages[: stage + 1], 2)
        meanings += [NumberMeaning(f"{one} and {two} agree", False) for one, two in pairs]
        for feature in self.features:
            numbers = [not feature.values] * len(feature.names())
            if not feature.values and not feature.vector:
                numbers[-1] = False  # whether it is blank
            meanings += [
                NumberMeaning(*both) for both in zip(feature.names(), numbers, strict=True)
            ]
        return meanings

    def matrix(self, rows: Observations, stage: int) -> FloatArray:
        """One row of numbers per item, from what is known after this stage."""
        said = self._said(stage)
        label = self.binning.label_bins(rows)[:, stage]
        parts: list[FloatArray] = []
        sure = np.zeros(len(rows))
        if self.means:
            given = rows.confidences
            if given is None:
                given = np.full(rows.codes.shape, np.nan)
            scaled = scaled_by(given, self.means, self.scales)[:, : stage + 1]
            sure = scaled[:, stage]
            parts.append(scaled)
            bins = self.binning.confidence_bins(Observations(rows.labels, rows.codes, given))[
                :, stage
            ]
            parts.append(_one_hot(bins, self._bins(stage)))
        hot = _one_hot(label, [*range(len(said)), OTHER_LABEL, ABSTAINED_LABEL])
        parts.append(hot)
        if self.means:
            parts.append(hot[:, : len(said)] * sure[:, None])
        codes = rows.codes
        agree = [
            (codes[:, one] == codes[:, two]) & (codes[:, one] >= 0)
            for one, two in combinations(range(stage + 1), 2)
        ]
        if agree:
            parts.append(np.stack(agree, axis=1).astype(np.float64))
        for feature in self.features:
            if feature.name not in rows.features:
                raise fail("features", sorted(rows.features), f"the feature {feature.name!r} too")
            parts.append(feature.matrix(np.asarray(rows.features[feature.name])))
        return np.concatenate(parts, axis=1)

    def _said(self, stage: int) -> tuple[str, ...]:
        return self.binning.labels[stage]

    def _bins(self, stage: int) -> list[int]:
        return [*range(len(self.binning.edges[stage]) + 1), MISSING_BIN]

    def _bin_names(self, stage: int, name: str) -> list[str]:
        edges = self.binning.edges[stage]
        named = []
        for at in range(len(edges) + 1):
            low = f"at least {edges[at - 1]:.3g}" if at else ""
            high = f"less than {edges[at]:.3g}" if at < len(edges) else ""
            said = " and ".join(part for part in (low, high) if part) or "anything"
            named.append(f"{name} is {said} sure")
        return [*named, f"{name} does not say how sure it is"]

    # ---- keeping ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "binning": self.binning.to_dict(),
            "means": list(self.means),
            "scales": list(self.scales),
            "features": [feature.to_dict() for feature in self.features],
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> RowNumbers:
        """Read what `to_dict` wrote.

        >>> columns = RowNumbers.fit(Observations(("no", "yes"), np.array([[0, 1], [1, 1]])))
        >>> RowNumbers.from_dict(columns.to_dict()) == columns
        True
        """
        known_fields("columns", form, ("binning", "means", "scales", "features"))
        try:
            found = cls(
                Binning.from_dict(form["binning"]),
                numbers_of("means", form["means"]),
                numbers_of("scales", form["scales"]),
                tuple(FeatureColumn.from_dict(one) for one in form["features"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise fail("columns", str(error), "binning, means, scales and features") from None
        stage_count = found.binning.stage_count
        if len(found.means) not in (0, stage_count) or len(found.scales) != len(found.means):
            raise fail("means", list(found.means), f"none, or {stage_count}, and as many scales")
        if any(scale <= 0 for scale in found.scales):
            raise fail("scales", list(found.scales), "numbers above 0")
        return found


def _one_hot(values: Any, known: list[int]) -> FloatArray:
    return np.asarray(values[:, None] == np.asarray(known)[None], dtype=np.float64)
