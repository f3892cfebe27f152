"""A rule of regressions asked live: one item, as a log would hold it so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.checks import fail
from stopwise.live.items.row import Features
from stopwise.policies.per_item.logistic.features import FeatureColumn
from stopwise.policies.per_item.logistic.rule import LogisticRule
from stopwise.situations.observations import NOT_CALLED, Observations


def known_so_far(
    rule: LogisticRule,
    labels: Sequence[str | None],
    confidences: Sequence[float | None],
    features: Features,
) -> Observations:
    """One item as a row: what its stages said, how sure they are, what was known before.

    >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 40))
    >>> from stopwise.costs import Costs
    >>> rule = LogisticRule.fit(("small", "large"), rows, Costs.from_stages([1, 5]))
    >>> known_so_far(rule, ["yes"], [], {}).codes.tolist()
    [[0, -2]]
    """
    stage_count = len(rule.stages)
    names: dict[str, int] = {}
    codes = np.full((1, stage_count), NOT_CALLED, dtype=np.int64)
    for stage, label in enumerate(labels):
        codes[0, stage] = -1 if label is None else names.setdefault(label, len(names))
    sure = np.full((1, stage_count), np.nan)
    for stage, value in enumerate(confidences[: len(labels)]):
        if value is not None:
            sure[0, stage] = value
    columns = {one.name: _column(one, features.get(one.name)) for one in rule.columns.features}
    return Observations(tuple(names), codes, sure, columns)


def _column(feature: FeatureColumn, value: Any) -> NDArray[Any]:
    """The value of one item as a column of one row."""
    if feature.values:
        return np.asarray(["nan" if value is None else str(value)])
    if feature.vector:
        wide = len(feature.means)
        given = (np.nan,) * wide if value is None else value
        if not isinstance(given, tuple) or len(given) != wide:
            raise fail(f"feature {feature.name}", value, f"a vector of {wide} numbers, as fitted")
        return np.asarray([given])
    if value is not None and not isinstance(value, float):
        raise fail(f"feature {feature.name}", value, "a number, as the rule was fitted on")
    return np.asarray([np.nan if value is None else value])
