"""A cascade of scikit-learn classifiers that learns from unlabelled rows where to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from stopwise.arrays import IntArray
from stopwise.checks import names_settings
from stopwise.costs import Calls, Costs
from stopwise.evidence import Evidence
from stopwise.live.calling.stage import Reported, Stage
from stopwise.live.cascade import Cascade
from stopwise.policies.base import Policy
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.policy import ReferencePolicy
from stopwise.policies.per_item.situation import SituationPolicy, StoppingRule
from stopwise.policies.registry import DEFAULT_POLICY, make_policy
from stopwise.situations.binning import Binning
from stopwise.situations.transitions import Transitions
from stopwise.sklearn.alone import rule_from, stop_rows_alone
from stopwise.sklearn.entries import StageEntry, checked_stages, column_numbers
from stopwise.sklearn.folds import out_of_fold
from stopwise.sklearn.per_item import Stopped, expected_cost, observed, stop_rows
from stopwise.sklearn.tables import Said, answer, say, shares_of, take_columns, take_rows


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

    With a policy that decides per item (`policy="per-item"`) every row stops where going on does
    not pay for it, by what the stages said of it so far and how sure they are (`predict_proba`, or
    the margin of a `decision_function`). `predict` makes no full runs.

    Args:
        stages: a list of `(name, estimator, cost)`, or `(name, estimator, cost, columns)` where a
            stage uses only some of the columns, by name or number.
        mistake_cost: what one wrong answer costs, in the units of the costs.
        policy: how `partial_fit` draws depths; or one that decides per item, also in `predict`.
        prefit: take the estimators as they are, fitted; `fit` then only reads the labels. Nothing
            is known of where to stop before `partial_fit`: `predict` uses the last stage.
        cv: folds of `fit` (fewer where a class has fewer rows), or a splitter of scikit-learn. None
            trains each stage once and leaves it to `partial_fit` to learn where to stop.
        batch_size: rows in a batch of `partial_fit`; None begins small and doubles.
        random_state: seed of the depths drawn by `partial_fit`.
        calls: "cascade" (the same as None) if a stage needs those before it, "alone" if each can
            be called without them: a prediction then costs what its own calls cost, and a rule that
            decides per item chooses the first stage too, and may jump over others.

    Attributes:
        stage_: the stage, 0-based, that `predict` uses; `stage_name_` is its name. Of a policy that
            decides per item, the one that all rows would go to if they had to go to one.
        cost_: what one prediction costs: that stage and all before it (that stage, where stages are
            called alone); where rows are decided per item, the mean over rows like those counted
            so far.
        rule_: where rows are decided per item, the rule; None elsewhere, and before any evidence.
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
    >>> cascade.predict(X[:2]).tolist(), cascade.predict_proba(X[:2]).shape
    ([0, 0], (2, 3))
    >>> cascade.stopping_stages(X[:2]).tolist()
    [0, 0]
    >>> cascade.set_params(tree__max_depth=3).get_params()["tree__max_depth"]
    3
    """

    @names_settings
    def __init__(
        self,
        stages: Sequence[tuple[Any, ...]] | None = None,
        mistake_cost: float = 1.0,
        policy: str | Policy = DEFAULT_POLICY,
        prefit: bool = False,
        batch_size: int | None = None,
        random_state: Any = None,
        cv: Any = 5,
        calls: Calls | None = None,
    ) -> None:
        self.stages = stages
        self.mistake_cost = mistake_cost
        self.policy = policy
        self.prefit = prefit
        self.batch_size = batch_size
        self.random_state = random_state
        self.cv = cv
        self.calls = calls

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

    @property
    def _per_item(self) -> bool:
        return isinstance(make_policy(self.policy), SituationPolicy)

    def _estimator(self, name: str) -> Any:
        return next(entry[1] for entry in self.stages or () if entry[0] == name)

    # ---- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> CascadeClassifier:
        """Train every stage on labelled rows, and learn from them where to stop."""
        stages = self._checked_stages()
        X, y = self._validated(X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        names = list(getattr(self, "feature_names_in_", ()))
        self._columns = [
            column_numbers(name, columns, names, self.n_features_in_)
            for name, _, _, columns in stages
        ]
        self.estimators_ = []
        for (_, estimator, _, _), columns in zip(stages, self._columns, strict=True):
            if not self.prefit:
                estimator = clone(estimator).fit(take_columns(X, columns), y)
            self.estimators_.append(estimator)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._memory: dict[str, Any] | None = None
        cascade = self._cascade(X)
        cv = None if self.prefit else self.cv
        ask = say if self._per_item else answer
        said = out_of_fold(X, y, stages, self._columns, ask, cv=cv, seed=self._seed)
        if said:
            rows = observed(self.classes_, said)
            cascade.learner.add_evidence(Evidence.from_codes(rows.codes))
            if cascade.learner.per_item:
                binning = Binning.fit(rows, whole=self.calls == "alone")
                cascade.learner.add_transitions(Transitions.of(rows, binning))
        self._read(cascade)
        return self

    @names_settings
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
        labels = self.classes_.tolist()

        def call(estimator: Any, columns: Any) -> Any:
            def called(rows: Any) -> Any:
                part = take_columns(take_rows(X, rows), columns)
                if not self._per_item:
                    return estimator.predict(part)
                said = say(estimator, part, self.classes_)
                both = zip(said.codes.tolist(), said.confidences.tolist(), strict=True)
                return [
                    Reported(labels[code], confidence=None if np.isnan(sure) else sure)
                    for code, sure in both
                ]

            return called

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
            calls=self.calls,
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
        # What an answer of each stage costs: where stages are called alone, that stage's own cost.
        prices = learner.costs.cumulative
        self.cost_ = float(prices[self.stage_])
        self.learning_cost_ = learner.report().spent
        self.rule_: StoppingRule | AloneRule | None = None
        counts = learner.transitions
        if self.calls == "alone" and isinstance(learner.policy, ReferencePolicy):
            if counts is not None:
                own = Costs.from_stages(prices, learner.costs.mistake_cost)
                self.rule_, self.cost_ = rule_from(learner.policy, learner.stages, counts, own)
        elif isinstance(learner.policy, SituationPolicy):
            if counts is None and not learner.policy.learns:
                none = ((),) * len(learner.stages)
                counts = Transitions(Binning(edges=none, labels=none))
            if counts is not None:
                self.rule_ = learner.policy.rule(learner.stages, counts, learner.costs)
                self._binning = counts.binning
                self.cost_ = expected_cost(self.rule_, counts, learner.costs)

    # ---- predicting --------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """The answer of `stage_` for every row; or of the stage at which the rule stops each."""
        if getattr(self, "rule_", None) is None:
            return self._ask(X, "predict")
        return self.classes_[self._stop(X).codes]

    @available_if(_all_have_proba)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The class probabilities of the stage that answers, in the order of `classes_`."""
        check_is_fitted(self)
        if self.rule_ is not None:
            return self._stop(X).shares
        X, _ = self._validated(X, reset=False)
        estimator, columns = self.estimators_[self.stage_], self._columns[self.stage_]
        return shares_of(estimator, take_columns(X, columns), self.classes_)

    def stopping_stages(self, X: Any) -> IntArray:
        """The stage, 0-based, at which each row stops: the last one that is called on it."""
        check_is_fitted(self)
        if self.rule_ is not None:
            return self._stop(X).depths
        X, _ = self._validated(X, reset=False)
        return np.full(len(X), self.stage_, dtype=np.int64)

    def _stop(self, X: Any) -> Stopped:
        check_is_fitted(self)
        X, _ = self._validated(X, reset=False)
        assert self.rule_ is not None

        def ask(stage: int, rows: IntArray) -> Said:
            part = take_columns(take_rows(X, rows), self._columns[stage])
            return say(self.estimators_[stage], part, self.classes_)

        if isinstance(self.rule_, AloneRule):
            return stop_rows_alone(self.rule_, self.classes_, len(X), ask)
        return stop_rows(self.rule_, self._binning, self.classes_, len(X), ask)

    def _ask(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        X, _ = self._validated(X, reset=False)
        estimator, columns = self.estimators_[self.stage_], self._columns[self.stage_]
        return getattr(estimator, method)(take_columns(X, columns))

    # ---- checking ----------------------------------------------------------------------------

    def _checked_stages(self) -> list[StageEntry]:
        return checked_stages(self.stages, BaseEstimator.get_params(self))

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
