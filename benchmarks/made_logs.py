"""Logs for the per-item benchmarks: classifiers on scikit-learn's data sets, and drawn ones.

Every classifier predicts each row out of fold and says how sure it is (`predict_proba`). Costs are
as of services: each stage costs several times as much as the one before it. Logs of one's own, with
`NAME:confidence` columns, can be given beside them: `name=file.csv:0.001,0.75,2.5`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from stopwise.logs.reading.rows import read_rows
from stopwise.logs.settings import LogSettings
from stopwise.situations.observations import Observations


class MadeLog(NamedTuple):
    """Rows with confidences, each stage's own cost, and the truth (for scoring only)."""

    name: str
    rows: Observations
    costs: np.ndarray
    truth: np.ndarray


@cache
def made_logs() -> tuple[MadeLog, ...]:
    """All of them; the rows are shuffled."""
    return tuple(_classified()) + tuple(_drawn())


def own_log(spec: str) -> MadeLog:
    """A log of one's own, as `name=file:costs`."""
    name, _, rest = spec.partition("=")
    path, _, costs = rest.rpartition(":")
    import polars

    columns = polars.scan_csv(path).collect_schema().names()
    stages = [c for c in columns if f"{c}:confidence" in columns]
    rows = read_rows(path, LogSettings.of(stages=stages, costs=costs, truth="truth"))
    return MadeLog(name, rows.observations(), rows.costs.per_stage, rows.truth)


def _classified() -> Iterator[MadeLog]:
    digits, cancer, wine = (
        load(return_X_y=True) for load in (load_digits, load_breast_cancer, load_wine)
    )
    small = DecisionTreeClassifier(max_depth=8, min_samples_leaf=5, random_state=0)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    forest = RandomForestClassifier(100, random_state=0)
    bayes = GaussianNB()
    yield _log("digits", digits, [small, linear, forest], [1, 10, 100])
    yield _log(
        "digits, 16 pixels", (digits[0][:, ::4], digits[1]), [bayes, linear, forest], [1, 4, 20]
    )
    yield _log("cancer", cancer, [small, linear, forest], [1, 4, 20])
    yield _log("wine", wine, [small, bayes, forest], [1, 4, 20])
    for classes in (2, 4):
        data = make_classification(
            6000, 20, n_informative=10, n_classes=classes, class_sep=0.9, flip_y=0.03,
            random_state=classes,
        )  # fmt: skip
        name = f"made, {classes} classes"
        yield _log(name, data, [linear, small, forest], [1, 5, 30])
        yield _log(f"{name}, 4 stages", data, [bayes, linear, small, forest], [1, 2, 8, 60])


def _log(name: str, data: tuple[Any, Any], models: list, costs: list[float]) -> MadeLog:
    x, y = data
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order], y[order]
    codes, confidences = [], []
    for model in models:
        chances = cross_val_predict(model, x, y, cv=5, method="predict_proba")
        codes.append(chances.argmax(axis=1))
        confidences.append(chances.max(axis=1))
    labels = tuple(str(value) for value in np.unique(y))
    rows = Observations(labels, np.stack(codes, axis=1), np.stack(confidences, axis=1))
    return MadeLog(name, rows, np.asarray(costs, dtype=np.float64), y)


def _drawn() -> Iterator[MadeLog]:
    """Stages that see an item's score with less and less noise, some of them over-sure."""
    for name, noise, classes in (
        ("drawn, sharp", (0.9, 0.5, 0.2), 2),
        ("drawn, dull", (2.5, 1.5, 0.8), 2),
        ("drawn, 4 stages", (1.6, 1.2, 0.8, 0.3), 3),
        ("drawn, bad last stage", (0.6, 0.5, 2.0), 3),
    ):
        random = np.random.default_rng(len(name))
        score = random.normal(size=6000) * 1.5
        cuts = np.linspace(-1, 1, classes - 1) if classes > 2 else np.array([0.0])
        codes, confidences = [], []
        for spread in noise:
            heard = score + random.normal(size=6000) * spread
            codes.append(np.searchsorted(cuts, heard))
            gap = np.abs(heard[:, None] - cuts).min(axis=1)
            confidences.append(1 - np.exp(-gap / spread))
        labels = tuple(str(value) for value in range(classes))
        rows = Observations(labels, np.stack(codes, axis=1), np.stack(confidences, axis=1))
        costs = np.geomspace(1, 40, len(noise))
        yield MadeLog(name, rows, costs, np.searchsorted(cuts, score))
