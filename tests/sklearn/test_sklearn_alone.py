"""`CascadeClassifier` whose stages are called alone: only what is asked for is called."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from test_sklearn_per_item import digits, per_item

from stopwise.checks import StopwiseError
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.sklearn.per_item import observed
from stopwise.sklearn.tables import say

OWN = np.array([1.0, 10.0, 40.0])


@pytest.fixture(scope="module")
def fitted():
    X_train, y_train, X_stream, X_test, y_test = digits()
    return per_item(calls="alone").fit(X_train, y_train), X_stream, X_test, y_test


def test_rows_are_answered_as_the_rule_follows_rows_that_have_all_outputs(fitted):
    cascade, _, X_test, y_test = fitted
    assert isinstance(cascade.rule_, AloneRule)
    said = [say(stage, X_test, cascade.classes_) for stage in cascade.estimators_]
    rows = observed(cascade.classes_, said)
    followed = cascade.rule_.follow(rows)
    np.testing.assert_array_equal(cascade.stopping_stages(X_test), followed.answered_by)
    assert len(np.unique(followed.answered_by)) > 1
    np.testing.assert_allclose(followed.spent, followed.called @ OWN)
    # After all stages the likeliest answer is given; before that, that of the stage called last.
    early = followed.called.sum(axis=1) < 3
    expected = rows.codes[np.arange(len(rows.codes)), followed.answered_by]
    np.testing.assert_array_equal(cascade.predict(X_test)[early], cascade.classes_[expected[early]])
    alone = [own + 500 * (one.codes != y_test).mean() for own, one in zip(OWN, said, strict=True)]
    assert followed.cost + 500 * (cascade.predict(X_test) != y_test).mean() < min(alone)


def test_each_stage_is_asked_of_the_rows_that_call_it_and_of_no_others(fitted, monkeypatch):
    cascade, _, X_test, _ = fitted
    asked = []

    def counted(estimator, X, classes):
        asked.append(len(X))
        return say(estimator, X, classes)

    monkeypatch.setattr("stopwise.sklearn.classifier.say", counted)
    cascade.predict(X_test)
    said = [say(stage, X_test, cascade.classes_) for stage in cascade.estimators_]
    called = cascade.rule_.follow(observed(cascade.classes_, said)).called
    assert sum(asked) == called.sum()
    assert 1 < cascade.cost_ < 51


def test_it_learns_on_from_full_runs_and_keeps_its_settings(fitted):
    cascade, X_stream, X_test, _ = fitted
    before = cascade.rule_.rows
    again = pickle.loads(pickle.dumps(cascade))
    assert again.rule_ == cascade.rule_
    np.testing.assert_array_equal(again.predict(X_test), cascade.predict(X_test))
    again.partial_fit(X_stream[:100])
    assert before < again.rule_.rows <= before + 100
    assert again.learning_cost_ > 0
    assert clone(again).calls == "alone"


def test_a_single_stage_called_alone_costs_what_it_costs_alone(fitted):
    X_train, y_train, _, _, _ = digits()
    in_cascade = per_item(policy="uss-ts").fit(X_train[:300], y_train[:300])
    alone = per_item(policy="uss-ts", calls="alone").fit(X_train[:300], y_train[:300])
    assert in_cascade.cost_ == OWN[: in_cascade.stage_ + 1].sum()
    assert alone.cost_ == OWN[alone.stage_]


def test_what_calls_may_be_is_said():
    X_train, y_train, _, _, _ = digits()
    with pytest.raises(StopwiseError, match="calls: got 'solo', but need 'cascade' or 'alone'"):
        per_item(calls="solo").fit(X_train[:100], y_train[:100])
