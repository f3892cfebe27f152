"""What stages say of rows that they were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from stopwise.checks import whole_number
from stopwise.sklearn.entries import StageEntry
from stopwise.sklearn.tables import Said, take_columns, take_rows


def out_of_fold(
    X: Any,
    y: Any,
    stages: Sequence[StageEntry],
    columns: Sequence[list[int] | None],
    ask: Callable[[Any, Any, Any], Said],
    *,
    cv: Any,
    seed: int,
) -> list[Said]:
    """What every stage says of the rows of each fold, trained on the others.

    Nothing where there are no folds. On the rows that they were trained on, stages agree more than
    they will later.

    Args:
        X: rows; `y` their labels.
        stages: not fitted; `columns` has those of each.
        ask: what a fitted stage says of rows, given all classes.
        cv: folds, or a splitter of scikit-learn; None for none.
        seed: of the folds.
    """
    if cv is None:
        return []
    classes = np.unique(y)
    splitter = cv
    if not hasattr(splitter, "split"):
        folds = whole_number("cv", cv, least=2)
        folds = min(folds, int(np.unique(y, return_counts=True)[1].min()))
        if folds < 2:  # a class of one row cannot be split
            return []
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    parts: list[list[Said]] = [[] for _ in stages]
    for train, test in splitter.split(X, y):
        for part, (_, estimator, _, _), own in zip(parts, stages, columns, strict=True):
            fitted = clone(estimator).fit(take_columns(take_rows(X, train), own), y[train])
            part.append(ask(fitted, take_columns(take_rows(X, test), own), classes))
    return [
        Said(
            np.concatenate([one.codes for one in part]),
            np.concatenate([one.confidences for one in part]),
        )
        for part in parts
    ]
