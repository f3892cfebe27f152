"""The scikit-learn estimator: its own checks unskipped, pipelines, grids, frames, digits."""

import pickle

import numpy as np
import pandas as pd
import pytest
from estimator_checks import assert_all_checks_pass
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from stopwise import StopwiseError
from stopwise.sklearn import CascadeClassifier


def small(**settings):
    return CascadeClassifier(
        [
            ("tree", DecisionTreeClassifier(max_depth=3, random_state=0), 1),
            ("logistic", LogisticRegression(max_iter=500), 4),
        ],
        **{"mistake_cost": 20, "random_state": 0, **settings},
    )


def test_check_estimator_unskipped():
    assert_all_checks_pass("test_sklearn")


def digits():
    X, y = load_digits(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
    X_stream, X_test, _, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
    return X_train, y_train, X_stream, X_test, y_test


def test_digits_without_labels():
    """The most expensive stage's accuracy within a point, at less than 60 % of its cost."""
    X_train, y_train, X_stream, X_test, y_test = digits()
    cascade = CascadeClassifier(
        [
            ("bayes", GaussianNB(), 1),
            ("neighbours", KNeighborsClassifier(1), 10),
            ("support vectors", SVC(C=10), 40),
        ],
        mistake_cost=500,
        random_state=0,
        cv=None,
    ).fit(X_train, y_train)
    assert cascade.stage_name_ == "support vectors"
    of_the_last = cascade.estimators_[-1].score(X_test, y_test)
    cascade.partial_fit(X_stream)
    assert cascade.score(X_test, y_test) >= of_the_last - 0.01
    assert cascade.cost_ < 0.6 * 40
    # what was spent on learning is in: stream and test together, against the most expensive for all
    total = cascade.learning_cost_ + cascade.cost_ * len(X_test)
    assert total < 0.6 * 40 * (len(X_stream) + len(X_test))
    assert cascade.evidence_.seen[0, 1] > 0


def test_partial_fit_goes_on_and_pickles():
    X_train, y_train, X_stream, X_test, _ = digits()
    whole = small().fit(X_train, y_train)
    whole.partial_fit(X_stream[:200]).partial_fit(X_stream[200:])
    parts = small().fit(X_train, y_train).partial_fit(X_stream[:200])
    parts = pickle.loads(pickle.dumps(parts)).partial_fit(X_stream[200:])
    assert parts.evidence_ == whole.evidence_
    assert parts.learning_cost_ == whole.learning_cost_
    assert (parts.predict(X_test) == whole.predict(X_test)).all()
    assert whole.predict_proba(X_test).shape == (len(X_test), 10)


def test_pipeline_and_grid():
    X_train, y_train, X_stream, X_test, y_test = digits()
    pipeline = make_pipeline(StandardScaler(), small())
    assert pipeline.fit(X_train, y_train).score(X_test, y_test) > 0.9
    grid = GridSearchCV(
        small(), {"tree__max_depth": [1, 5], "mistake_cost": [5, 50]}, cv=2, error_score="raise"
    )
    grid.fit(X_train[:200], y_train[:200])
    assert set(grid.best_params_) == {"tree__max_depth", "mistake_cost"}
    assert grid.best_estimator_.partial_fit(X_stream).stage_ in (0, 1)


def test_after_fit_there_is_evidence_from_rows_that_stages_were_not_trained_on():
    X_train, y_train, _, X_test, _ = digits()
    # A tree of full depth is never wrong on its own training rows, and often elsewhere.
    stages = [
        ("tree", DecisionTreeClassifier(random_state=0), 1),
        ("neighbours", KNeighborsClassifier(1), 10),
        ("support vectors", SVC(C=10), 40),
    ]
    cascade = CascadeClassifier(stages, mistake_cost=500, random_state=0).fit(X_train, y_train)
    assert cascade.evidence_.seen[0, 2] == len(X_train)
    said = [stage.predict(X_test) for stage in cascade.estimators_]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        later = float((said[i] != said[j]).mean())
        assert cascade.evidence_.disagreement[i, j] == pytest.approx(later, abs=0.06)
    assert cascade.stage_name_ == "neighbours"
    assert (cascade.predict(X_test) == said[1]).all()
    assert cascade.learning_cost_ == 0
    again = CascadeClassifier(stages, mistake_cost=500, random_state=0).fit(X_train, y_train)
    assert again.evidence_ == cascade.evidence_


def test_a_grid_search_scores_what_the_cascade_will_do():
    X_train, y_train, *_ = digits()
    stages = [("stump", DecisionTreeClassifier(max_depth=1), 1), ("logistic", GaussianNB(), 4)]
    grid = GridSearchCV(
        CascadeClassifier(stages, random_state=0), {"mistake_cost": [2, 200]}, cv=2
    ).fit(X_train, y_train)
    assert grid.best_params_ == {"mistake_cost": 200}
    stump, deep = grid.cv_results_["mean_test_score"]
    assert stump < 0.4 < 0.7 < deep  # with the last stage for both they would be equal
    assert grid.best_estimator_.stage_ == 1


def test_folds_of_fit():
    X = np.arange(12.0)[:, None]
    stages = [("one", DecisionTreeClassifier(), 1), ("two", GaussianNB(), 2)]
    y = np.array([0] * 6 + [1] * 6)
    for cv, seen in ((None, 0), (3, 12), (50, 12), (KFold(4, shuffle=True, random_state=0), 12)):
        cascade = CascadeClassifier(stages, 9, cv=cv, random_state=0).fit(X, y)
        assert cascade.evidence_.seen[0, 1] == seen
    rare = CascadeClassifier(stages, 9).fit(X, [0] * 11 + [1])
    assert rare.evidence_.seen[0, 1] == 0  # a class of one row cannot be split
    with pytest.raises(StopwiseError, match="cv"):
        CascadeClassifier(stages, 9, cv=1).fit(X, y)
    words = CascadeClassifier(stages, 9, random_state=0).fit(X, np.where(y == 0, "no", "yes"))
    assert words.predict_proba(X).shape == (12, 2)


def test_parameters_reach_the_stages():
    cascade = small()
    cascade.set_params(tree__max_depth=7, logistic=GaussianNB(), mistake_cost=3)
    assert cascade.get_params()["tree__max_depth"] == 7
    assert isinstance(cascade.stages[1][1], GaussianNB)
    assert cascade.stages[1][2] == 4
    assert clone(cascade).mistake_cost == 3


def test_frames_and_columns_of_a_stage():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["cheap", "costly", "rest"])
    y = np.where(frame["cheap"] + 0.1 * frame["costly"] > 0, "yes", "no")
    stages = [
        ("first", LogisticRegression(), 1, ["cheap"]),
        ("second", LogisticRegression(), 5, ["cheap", "costly"]),
    ]
    cascade = CascadeClassifier(stages, mistake_cost=30, random_state=1).fit(frame, y)
    assert cascade.estimators_[0].feature_names_in_.tolist() == ["cheap"]
    cascade.partial_fit(frame)
    assert set(cascade.predict(frame)) == {"yes", "no"}
    numbers = CascadeClassifier(
        [("first", LogisticRegression(), 1, [0]), ("second", LogisticRegression(), 5, [0, 1])],
        mistake_cost=30,
        random_state=1,
    ).fit(frame.to_numpy(), y)
    numbers.partial_fit(frame.to_numpy())
    assert numbers.evidence_ == cascade.evidence_
    with pytest.raises(ValueError, match="feature names"):
        cascade.predict(frame.rename(columns={"cheap": "other"}))
    for columns, message in ((["none"], "one of"), ([7], "0 to 2"), ([], "columns is empty")):
        broken = CascadeClassifier([stages[0], ("second", LogisticRegression(), 5, columns)])
        with pytest.raises(StopwiseError, match=message):
            broken.fit(frame, y)


def test_fitted_stages_are_taken_as_they_are():
    X_train, y_train, X_stream, X_test, _ = digits()
    tree = DecisionTreeClassifier(random_state=0).fit(X_train, y_train)
    bayes = GaussianNB().fit(X_train, y_train)
    cascade = CascadeClassifier([("bayes", bayes, 1), ("tree", tree, 2)], prefit=True)
    cascade.fit(X_train, y_train).partial_fit(X_stream)
    assert cascade.estimators_ == [bayes, tree]
    # stages that know fewer classes
    few = GaussianNB().fit(X_train[y_train < 3], y_train[y_train < 3])
    cascade = CascadeClassifier([("bayes", bayes, 1), ("few", few, 2)], 9, prefit=True)
    cascade.fit(X_train, y_train)
    assert (cascade.predict_proba(X_test)[:, 3:] == 0).all()
    svc = CascadeClassifier([("bayes", bayes, 1), ("svc", SVC(), 2)])
    assert not hasattr(svc, "predict_proba")


@pytest.mark.parametrize(
    "stages",
    [
        None,
        [("one", GaussianNB(), 1)],
        [("one", GaussianNB()), ("two", GaussianNB())],
        [("a__b", GaussianNB(), 1), ("two", GaussianNB(), 1)],
        [("policy", GaussianNB(), 1), ("two", GaussianNB(), 1)],
        [("one", 3, 1), ("two", GaussianNB(), 1)],
    ],
)
def test_wrong_stages_are_named(stages):
    with pytest.raises(StopwiseError, match="stage"):
        CascadeClassifier(stages).fit([[0.0], [1.0]], [0, 1])


def test_not_fitted():
    with pytest.raises(NotFittedError):
        small().partial_fit([[0.0, 1.0]])
