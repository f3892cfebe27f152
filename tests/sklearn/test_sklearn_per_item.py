"""`CascadeClassifier` per item: rows stop where going on does not pay."""

import pickle

import numpy as np
import pandas as pd
import pytest
from estimator_checks import assert_all_checks_pass
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from stopwise.sklearn import CascadeClassifier
from stopwise.sklearn.tables import say


def digits():
    X, y = load_digits(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X / 16, y, test_size=0.6, random_state=0)
    X_stream, X_test, _, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
    return X_train, y_train, X_stream, X_test, y_test


def per_item(**settings):
    stages = [
        ("logistic", LogisticRegression(max_iter=300, C=0.05), 1),
        ("neighbours", KNeighborsClassifier(5), 10),
        ("support vectors", SVC(C=10, random_state=0), 40),
    ]
    return CascadeClassifier(
        stages, **{"mistake_cost": 500, "random_state": 0, "policy": "per-item", **settings}
    )


def small():
    stages = [
        ("bayes", GaussianNB(), 1),
        ("tree", DecisionTreeClassifier(random_state=0), 4),
    ]
    return CascadeClassifier(stages, 20, "per-item", random_state=0)


def test_check_estimator_per_item_unskipped():
    assert_all_checks_pass("test_sklearn_per_item")


def test_rows_stop_where_their_situation_says():
    """It costs less than the best single stage, calls and mistakes together, on rows held out."""
    X_train, y_train, X_stream, X_test, y_test = digits()
    cascade = per_item().fit(X_train, y_train)
    depths = cascade.stopping_stages(X_test)
    assert set(depths) >= {0, 1}
    said = [say(stage, X_test, cascade.classes_).codes for stage in cascade.estimators_]
    cumulative = np.cumsum([1, 10, 40])
    fixed = [cumulative[at] + 500 * (codes != y_test).mean() for at, codes in enumerate(said)]
    total = cumulative[depths].mean() + 500 * (cascade.predict(X_test) != y_test).mean()
    assert total < min(fixed)
    # before any row was seen, what a prediction costs is told from rows left out of training
    assert cascade.cost_ == pytest.approx(cumulative[depths].mean(), rel=0.35)
    assert cascade.learning_cost_ == 0
    cascade.partial_fit(X_stream)
    assert cascade.learning_cost_ > 0
    assert cascade.cost_ == pytest.approx(
        cumulative[cascade.stopping_stages(X_test)].mean(), rel=0.3
    )


def test_probabilities_are_those_of_the_stage_that_answers():
    X_train, y_train, _, X_test, _ = digits()
    stages = [
        ("bayes", GaussianNB(), 1),
        ("neighbours", KNeighborsClassifier(5), 10),
        ("logistic", LogisticRegression(max_iter=3000), 40),
    ]
    cascade = CascadeClassifier(stages, 200, "per-item", random_state=0).fit(X_train, y_train)
    shares, depths = cascade.predict_proba(X_test), cascade.stopping_stages(X_test)
    assert shares.shape == (len(X_test), 10)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (cascade.classes_[shares.argmax(axis=1)] == cascade.predict(X_test)).all()
    early = depths < 2  # after the last stage the answer may be an earlier one's
    for stage in (0, 1):
        own = depths == stage
        alone = cascade.estimators_[stage].predict_proba(X_test)
        assert own.any()
        assert (shares[own] == alone[own]).all()
    assert early.mean() > 0.5
    assert not hasattr(per_item(), "predict_proba")  # support vectors have none here


def test_each_row_is_asked_only_as_far_as_it_goes():
    calls = []

    class Counting(GaussianNB):
        def predict_proba(self, X):
            calls.append(len(X))
            return super().predict_proba(X)

    X_train, y_train, _, X_test, _ = digits()
    stages = [("first", Counting(), 1), ("second", Counting(var_smoothing=0.1), 5)]
    cascade = CascadeClassifier(stages, 20, "per-item", random_state=0).fit(X_train, y_train)
    calls.clear()
    depths = cascade.stopping_stages(X_test)
    assert calls == [len(X_test), int((depths == 1).sum())][: len(calls)]
    assert sum(calls) == len(X_test) + (depths == 1).sum()


def test_clone_grid_pickle_frames_and_text_labels():
    X_train, y_train, X_stream, _, _ = digits()
    words = np.array([f"digit {one}" for one in y_train])
    frame = pd.DataFrame(X_train, columns=[f"pixel{at}" for at in range(64)])
    cascade = small().fit(frame, words)
    later = pd.DataFrame(X_stream, columns=frame.columns)
    cascade.partial_fit(later[:150])
    again = pickle.loads(pickle.dumps(cascade))
    for one in (cascade, again):
        one.partial_fit(later[150:])
    assert (again.predict(later) == cascade.predict(later)).all()
    assert again.cost_ == cascade.cost_
    assert set(again.predict(later)) <= set(words)
    assert clone(cascade).policy == "per-item"
    grid = GridSearchCV(per_item(cv=2), {"mistake_cost": [1, 500]}, cv=2, error_score="raise")
    grid.fit(X_train, y_train)
    cheap, deep = grid.cv_results_["mean_test_score"]
    assert cheap < deep
    assert grid.best_params_ == {"mistake_cost": 500}


def test_without_evidence_all_rows_go_to_the_last_stage_then_it_learns():
    X_train, y_train, X_stream, X_test, _ = digits()
    cascade = per_item(cv=None).fit(X_train, y_train)
    assert cascade.rule_ is None
    assert (cascade.stopping_stages(X_test) == 2).all()
    assert (cascade.predict(X_test) == cascade.estimators_[-1].predict(X_test)).all()
    cascade.partial_fit(X_stream)
    assert cascade.rule_ is not None
    assert (cascade.stopping_stages(X_test) < 2).any()
    row = per_item(policy="agree-in-a-row").fit(X_train, y_train)
    logistic, neighbours = (stage.predict(X_test) for stage in row.estimators_[:2])
    assert ((logistic == neighbours) == (row.stopping_stages(X_test) == 1)).all()
