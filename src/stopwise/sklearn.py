"""A cascade of scikit-learn classifiers that learns from unlabelled rows where to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from stopwise.checks import StopwiseError, fail, whole_number
from stopwise.evidence import Evidence
from stopwise.live.calling.stage import Stage
from stopwise.live.cascade import Cascade
from stopwise.live.learner import DEFAULT_POLICY
from stopwise.policies.base import Policy


def _all_have_proba(classifier: CascadeClassifier) -> bool:
    stages = getattr(classifier, "estimators_", None)
    if stages is None:
        stages = [entry[1] for entry in classifier.stages or ()]
    return all(hasattr(stage, "predict_proba") for stage in stages)


class CascadeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifiers from cheap to expensive; `predict` goes as deep as pays.

    `fit(X, y)` trains every stage, and learns where to stop from what the stages say of training
    rows that they were not trained on (each stage is trained again without one fold after another;
    labels are not used for it). `partial_fit(X)`, without labels, runs new rows through the cascade
    as a live learner would, and learns on from the disagreements alone. `predict` is deterministic:
    all rows go to `stage_`, the deterministic reading of the evidence.

    Args:
        stages: a list of `(name, estimator, cost)`, or `(name, estimator, cost, columns)` where a
            stage uses only some of the columns, by name or number.
        mistake_cost: what one wrong answer costs, in the units of the costs.
        policy: how `partial_fit` draws depths.
        prefit: take the estimators as they are, fitted; `fit` then only reads the labels. Nothing
            is known of where to stop before `partial_fit`: `predict` uses the last stage.
        cv: folds of `fit` (fewer where a class has fewer rows), or a splitter of scikit-learn. None
            trains each stage once and leaves it to `partial_fit` to learn where to stop.
        batch_size: rows in a batch of `partial_fit`; None begins small and doubles.
        random_state: seed of the depths drawn by `partial_fit`.

    Attributes:
        stage_: the stage, 0-based, that `predict` uses; `stage_name_` is its name.
        cost_: what one prediction costs: that stage and all before it.
        learning_cost_: what `partial_fit` has cost in all.
        evidence_: all that was learned.
        estimators_: the fitted stages. `classes_`, `n_features_in_`, `feature_names_in_` as usual.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> cascade = CascadeClassifier([
    ...     ("tree", DecisionTreeClassifier(max_depth=2, random_state=0), 1),
    ...     ("logistic", LogisticRegression(max_iter=1000), 10),
    ... ], mistake_cost=50, random_state=0)
    >>> cascade.fit(X[::2], y[::2]).partial_fit(X[1::2]).stage_name_
    'tree'
    >>> cascade.cost_
    1.0
    """

    def __init__(
        self,
        stages: Sequence[tuple[Any, ...]] | None = None,
        mistake_cost: float = 1.0,
        policy: str | Policy = DEFAULT_POLICY,
        prefit: bool = False,
        batch_size: int | None = None,
        random_state: Any = None,
        cv: Any = 5,
    ) -> None:
        self.stages = stages
        self.mistake_cost = mistake_cost
        self.policy = policy
        self.prefit = prefit
        self.batch_size = batch_size
        self.random_state = random_state
        self.cv = cv

    # ---- scikit-learn's protocol -------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings; with `deep`, the stages by name and their settings as `name__setting`."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, estimator, *_ in self._well_formed():
                parameters[name] = estimator
                for key, value in estimator.get_params(deep=True).items():
                    parameters[f"{name}__{key}"] = value
        return parameters

    def set_params(self, **parameters: Any) -> CascadeClassifier:
        """Set settings, stages by name, and settings of stages as `name__setting`."""
        if "stages" in parameters:
            self.stages = parameters.pop("stages")
        names = [entry[0] for entry in self._well_formed()]
        own = {}
        for key, value in parameters.items():
            name, _, inner = key.partition("__")
            if name not in names:
                own[key] = value
            elif inner:
                self._estimator(name).set_params(**{inner: value})
            else:
                self.stages = [
                    (name, value, *entry[2:]) if entry[0] == name else tuple(entry)
                    for entry in self.stages or ()
                ]
        super().set_params(**own)
        return self

    def _well_formed(self) -> list[tuple[Any, ...]]:
        """The stages that can be named; what is wrong with others, `fit` will say."""
        if not isinstance(self.stages, (list, tuple)):
            return []
        return [
            tuple(entry)
            for entry in self.stages
            if isinstance(entry, (list, tuple)) and len(entry) >= 3 and hasattr(entry[1], "fit")
        ]

    def _estimator(self, name: str) -> Any:
        return next(entry[1] for entry in self.stages or () if entry[0] == name)

    # ---- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> CascadeClassifier:
        """Train every stage on labelled rows, and learn from them where to stop."""
        stages = self._checked_stages()
        X, y = self._validated(X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        self._columns = [self._numbers(name, columns) for name, _, _, columns in stages]
        self.estimators_ = []
        for (_, estimator, _, _), columns in zip(stages, self._columns, strict=True):
            if not self.prefit:
                estimator = clone(estimator).fit(_take_columns(X, columns), y)
            self.estimators_.append(estimator)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._memory: dict[str, Any] | None = None
        cascade = self._cascade(X)
        codes = self._out_of_fold(X, y, stages)
        if len(codes):
            cascade.learner.add_evidence(Evidence.from_codes(codes))
        self._read(cascade)
        return self

    def _out_of_fold(self, X: Any, y: Any, stages: Sequence[tuple[Any, ...]]) -> Any:
        """What every stage says of rows that it was not trained on, as numbers of classes.

        On the rows that they were trained on, stages agree more than they will later.
        """
        none = np.empty((0, len(stages)), dtype=np.int64)
        if self.prefit or self.cv is None:
            return none
        splitter = self.cv
        if not hasattr(splitter, "split"):
            folds = whole_number("cv", self.cv, least=2)
            folds = min(folds, int(np.unique(y, return_counts=True)[1].min()))
            if folds < 2:  # a class of one row cannot be split
                return none
            splitter = StratifiedKFold(folds, shuffle=True, random_state=self._seed)
        parts = [none]
        for train, test in splitter.split(X, y):
            said = [
                clone(estimator)
                .fit(_take_columns(_take_rows(X, train), columns), y[train])
                .predict(_take_columns(_take_rows(X, test), columns))
                for (_, estimator, _, _), columns in zip(stages, self._columns, strict=True)
            ]
            parts.append(np.stack([np.searchsorted(self.classes_, one) for one in said], axis=1))
        return np.concatenate(parts)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> CascadeClassifier:
        """Learn from unlabelled rows where to stop.

        Args:
            X: rows.
            y: only for a cascade that was never fitted, which is then fitted with it; else ignored.
            classes: ignored, for scikit-learn's convention.
        """
        if not hasattr(self, "estimators_"):
            if y is None:
                raise NotFittedError(
                    "This CascadeClassifier is not fitted yet: call fit(X, y) to train its stages"
                    " (or to take fitted ones, with prefit=True) before partial_fit(X)."
                )
            self.fit(X, y)
        X, _ = self._validated(X, reset=False)
        cascade = self._cascade(X)
        rows = np.arange(len(X))
        for _ in cascade.answer_many(rows, batch_size=self.batch_size).batches():
            pass
        self._read(cascade)
        return self

    def _cascade(self, X: Any) -> Cascade:
        """A live cascade over the rows of X, which goes on where the last one stopped."""

        def call(estimator: Any, columns: Any) -> Any:
            return lambda rows: estimator.predict(_take_columns(_take_rows(X, rows), columns))

        stages = [
            Stage(name, call(estimator, columns), float(cost), batch=True)
            for (name, _, cost, _), estimator, columns in zip(
                self._checked_stages(), self.estimators_, self._columns, strict=True
            )
        ]
        cascade = Cascade(
            stages,
            self.policy,
            mistake_cost=self.mistake_cost,
            seed=self._seed,
            on_failure="raise",
        )
        if self._memory is not None:
            cascade.learner.restore(self._memory, "CascadeClassifier")
        return cascade

    def _read(self, cascade: Cascade) -> None:
        learner = cascade.learner
        self._memory = learner.to_form()
        self.evidence_ = learner.evidence()
        self.stage_ = learner.best_stage()
        self.stage_name_ = learner.stages[self.stage_]
        self.cost_ = float(learner.costs.cumulative[self.stage_])
        self.learning_cost_ = learner.report().spent

    # ---- predicting --------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """The answer of `stage_` for every row."""
        return self._ask(X, "predict")

    @available_if(_all_have_proba)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The class probabilities of `stage_`, in the order of `classes_`."""
        shares = self._ask(X, "predict_proba")
        known = np.asarray(self.estimators_[self.stage_].classes_)
        if np.array_equal(known, self.classes_):
            return shares
        full = np.zeros((len(shares), len(self.classes_)))
        for at, label in enumerate(known):
            full[:, np.flatnonzero(self.classes_ == label)] = shares[:, [at]]
        return full

    def _ask(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        X, _ = self._validated(X, reset=False)
        estimator, columns = self.estimators_[self.stage_], self._columns[self.stage_]
        return getattr(estimator, method)(_take_columns(X, columns))

    # ---- checking ----------------------------------------------------------------------------

    def _checked_stages(self) -> list[tuple[str, Any, float, Any]]:
        accepted = "two or more of (name, estimator, cost) or (name, estimator, cost, columns)"
        if not isinstance(self.stages, (list, tuple)) or len(self.stages) < 2:
            raise fail("stages", self.stages, accepted)
        checked = []
        for entry in self.stages:
            if not isinstance(entry, (list, tuple)) or len(entry) not in (3, 4):
                raise fail("stages", entry, accepted)
            name = entry[0]
            if not isinstance(name, str) or "__" in name or name in BaseEstimator.get_params(self):
                raise fail("stages", name, "names that are no settings and hold no '__'")
            if not hasattr(entry[1], "predict"):
                raise fail(f"stage {name}", entry[1], "a classifier")
            checked.append((name, entry[1], entry[2], entry[3] if len(entry) == 4 else None))
        return checked

    def _validated(self, X: Any, y: Any = None, *, reset: bool = True) -> tuple[Any, Any]:
        """Arrays are checked here; frames keep their columns, and each stage checks its own."""
        if hasattr(X, "iloc"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if y is None:
                return X, None
            from sklearn.utils import check_consistent_length, column_or_1d

            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
            return X, y
        if y is None and not reset:
            return validate_data(self, X, reset=False), None
        return validate_data(self, X, y, reset=reset)  # type: ignore[no-any-return]

    def _numbers(self, name: str, columns: Any) -> list[int] | None:
        """Columns of a stage as numbers, from names or numbers."""
        if columns is None:
            return None
        names = list(getattr(self, "feature_names_in_", ()))
        numbers = []
        for column in columns:
            if isinstance(column, str):
                if column not in names:
                    raise fail(f"stage {name}: column", column, f"one of {names}")
                numbers.append(names.index(column))
            elif not 0 <= column < self.n_features_in_:
                raise fail(f"stage {name}: column", column, f"0 to {self.n_features_in_ - 1}")
            else:
                numbers.append(int(column))
        if not numbers:
            raise StopwiseError(f"stage {name}: columns is empty; leave it out to use all")
        return numbers


def _take_columns(X: Any, columns: list[int] | None) -> Any:
    if columns is None:
        return X
    return X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]


def _take_rows(X: Any, rows: Any) -> Any:
    rows = np.asarray(rows)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
