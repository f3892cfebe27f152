from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.policies.conformance import check_policy
from stopwise.policies.per_item.learning import called, learn_over
from stopwise.policies.per_item.logistic.columns import RowNumbers
from stopwise.policies.per_item.logistic.features import FeatureColumn
from stopwise.policies.per_item.logistic.model import fit_model
from stopwise.policies.per_item.logistic.policy import MOST_ROWS, LogisticLearner, PerItemLogistic
from stopwise.policies.per_item.logistic.rule import LogisticRule
from stopwise.policies.per_item.logistic.words import weights_in_words
from stopwise.policies.registry import make_policy
from stopwise.situations.observations import Observations

STAGES = ("small", "medium", "large")
COSTS = Costs.from_stages([0.1, 1, 4], 25.0)


def sure_rows(number: int = 2000, seed: int = 3) -> tuple[Observations, np.ndarray]:
    """Rows whose confidences tell a lot."""
    rows, truth = made_up(number, (0.2, 1.0, 2.0), labels=4, seed=seed)
    right = (rows.codes == truth[:, None]).astype(float)
    return Observations(rows.labels, rows.codes, right + rows.confidences), truth


def test_it_keeps_the_rules_of_the_frame() -> None:
    check_policy(PerItemLogistic())
    check_policy(PerItemLogistic(reference="last", trust=0.5, kappa=1.0, always_full=4))


def test_it_is_in_the_registry_with_its_settings() -> None:
    policy = make_policy("per-item-logistic:trust=.5,reference=last,strength=2")
    assert policy == PerItemLogistic(trust=0.5, reference="last", strength=2)


@pytest.mark.parametrize(
    "given", [{"reference": "x"}, {"trust": 2}, {"kappa": -1}, {"strength": 0}, {"always_full": 0}]
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(StopwiseError, match=next(iter(given))):
        PerItemLogistic(**given)  # type: ignore[arg-type]


def test_the_regression_is_the_penalised_maximum_of_the_likelihood() -> None:
    """Against the same function minimised by SciPy, with targets between 0 and 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    target = np.clip(1 / (1 + np.exp(-x @ [1.0, -2.0, 0.0])) + rng.normal(0, 0.1, 300), 0, 1)

    def loss(w: np.ndarray) -> float:
        z = x @ w[1:] + w[0]
        return float((np.logaddexp(0, z) - target * z).sum() + 0.5 * (w[1:] @ w[1:]) / 0.7)

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    model = fit_model(x, target, 0.7)
    assert model.intercept == pytest.approx(best[0], abs=2e-3)
    assert model.weights == pytest.approx(best[1:], abs=2e-3)


def test_what_always_or_never_happens_needs_no_regression() -> None:
    x = np.zeros((10, 2))
    assert fit_model(x, np.zeros(10), 1.0).chance(x)[0] < 1e-12
    assert fit_model(x, np.ones(10), 1.0).chance(x)[0] == pytest.approx(10.5 / 11)
    assert fit_model(x[:0], np.zeros(0), 1.0).chance(x)[0] == 0.5


def test_fitted_on_half_it_pays_less_than_the_best_fixed_stage() -> None:
    rows, truth = sure_rows(4000)
    rule = LogisticRule.fit(STAGES, rows.where(np.arange(2000)), COSTS)
    test = np.arange(2000, 4000)
    depths = rule.depths(rows.where(test))
    wrong = rows.codes[test] != truth[test][:, None]
    cumulative = np.asarray(COSTS.cumulative)
    own = cumulative[depths].mean() + 25 * wrong[np.arange(2000), depths].mean()
    assert own < 0.85 * (cumulative + 25 * wrong.mean(axis=0)).min()


def feature_rows() -> Observations:
    """Whether the first stage is right is known from the features alone."""
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=3000)
    hard = hidden > 0.5
    codes = np.stack([np.where(hard, rng.integers(0, 2, 3000), 0), np.zeros(3000)], 1).astype(int)
    vector = np.stack([hidden * 3 + 100, rng.normal(size=3000)], axis=1)
    kind = np.where(hard, "hard", "easy")
    return Observations(("no", "yes"), codes, None, {"vector": vector, "kind": kind})


@pytest.mark.parametrize("name", ["vector", "kind", "number"])
def test_features_of_every_kind_are_used(name: str) -> None:
    rows = feature_rows()
    columns = dict(rows.features)
    columns["number"] = columns["vector"][:, 0]
    # The label alone would tell "yes": it is hidden, so that only the feature can.
    codes = rows.codes.copy()
    codes[:, 0] = np.where(np.random.default_rng(2).random(3000) < 0.5, codes[:, 0], 0)
    rows = Observations(rows.labels, codes, None, {name: columns[name]})
    costs = Costs.from_stages([1, 2], 40)
    rule = LogisticRule.fit(("small", "large"), rows, costs)
    hard = columns["kind"] == "hard"
    said_no = codes[:, 0] == 0
    depths = rule.depths(rows)
    assert depths[hard & said_no].mean() > 0.8 or depths[hard].mean() > depths[~hard].mean() + 0.2
    assert depths[~hard].mean() < 0.2
    assert any(name in line.about for line in weights_in_words(rule))


def test_a_rule_comes_back_from_json_without_scikit_learn() -> None:
    rows, _ = sure_rows(600)
    with_features = Observations(
        rows.labels, rows.codes, rows.confidences,
        {"length": np.arange(600.0), "kind": np.array(["a", "b"] * 300)},
    )  # fmt: skip
    rule = LogisticRule.fit(STAGES, with_features, COSTS)
    text = json.dumps(rule.to_dict())
    back = LogisticRule.from_json(text)
    assert back == rule
    assert (back.depths(with_features) == rule.depths(with_features)).all()
    assert "scikit-learn" in rule.fitted_by


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"rule": "per-item"}, "per-item-logistic"),
        ({"models": []}, "models"),
        ({"models": [[{"intercept": "x", "weights": []}] * 3] * 2}, "intercept"),
        ({"models": [[{"intercept": 0.0, "weights": [1.0]}] * 3] * 2}, "weights"),
        ({"columns": {}}, "columns"),
        ({"stages": ["a", "b"]}, "stages"),
        ({"odd": 1}, "odd"),
        ({"version": 9}, "version"),
    ],
)
def test_a_forged_rule_is_refused_by_name(change: dict[str, object], part: str) -> None:
    rows, _ = sure_rows(300)
    form = LogisticRule.fit(STAGES, rows, COSTS).to_dict() | change
    with pytest.raises(StopwiseError, match=part):
        LogisticRule.from_json(json.dumps(form))


def test_nothing_is_known_of_stages_that_were_not_called() -> None:
    """Outputs and confidences beyond the depth are scrambled; not one decision changes."""
    rows, _ = sure_rows(1500, seed=5)
    policy = PerItemLogistic()
    depths, full, _ = learn_over(policy, STAGES, rows, COSTS, np.random.default_rng(0))
    beyond = np.arange(3)[None] > depths[:, None]
    assert beyond.any()
    assert rows.confidences is not None
    scrambled = Observations(
        rows.labels,
        np.where(beyond, (rows.codes + 1) % len(rows.labels), rows.codes),
        np.where(beyond, -7.0, rows.confidences),
    )
    again, same_full, _ = learn_over(policy, STAGES, scrambled, COSTS, np.random.default_rng(0))
    assert (again == depths).all()
    assert (same_full == full).all()


def test_early_stops_do_not_bias_what_is_learned() -> None:
    """A rule that sends hard items deeper: losses fitted on what it left, against all rows.

    Of the rounds that went on, stages differ far more often than of all; the regressions must not.
    """
    rows, _ = sure_rows(20_000, seed=8)
    rule = LogisticRule.fit(STAGES, rows, COSTS, reference="last", trust=1.0)
    full = np.random.default_rng(1).random(len(rows)) < 0.1
    depths = np.where(full, 2, rule.depths(rows))
    left = called(rows, depths)
    went_on = left.codes[:, 1] >= 0
    differ = rows.codes[:, 0] != rows.codes[:, 2]
    assert differ[went_on].mean() > 1.3 * differ.mean()  # what pair counters would say
    again = LogisticRule.fit(
        STAGES, left, COSTS, reference="last", trust=1.0, full=full, strength=1.0
    )
    stated = again.losses(rows, 0)[:, 0].mean()
    assert stated == pytest.approx(differ.mean(), abs=0.02)


def test_learning_as_it_goes_pays_less_than_the_best_fixed_stage() -> None:
    rows, truth = sure_rows(6000, seed=4)
    depths, full, learned = learn_over(
        PerItemLogistic(), STAGES, rows, COSTS, np.random.default_rng(0)
    )
    wrong = rows.codes != truth[:, None]
    cumulative = np.asarray(COSTS.cumulative)
    own = cumulative[depths].mean() + 25 * wrong[np.arange(len(depths)), depths].mean()
    assert own < 0.95 * (cumulative + 25 * wrong.mean(axis=0)).min()
    assert full[:64].all()
    assert full.mean() < 0.1
    assert learned.round == 6000


def test_memory_is_bounded() -> None:
    learner = LogisticLearner(PerItemLogistic(), ("a", "b"), Costs.from_stages([1, 2], 10))
    rows = Observations(("x", "y"), np.array([[0, 0], [1, 0]] * 3000))
    for at in range(6):
        learner.record(rows, np.full(6000, at % 2 == 0))
        learner.refresh()
    assert len(learner.kept) == 1
    assert len(learner.kept[0]) == 2 * MOST_ROWS


def test_another_price_needs_no_new_fit() -> None:
    rows, _ = sure_rows(800)
    rule = LogisticRule.fit(STAGES, rows, COSTS)
    cheap = replace(rule, costs=Costs.from_stages([0.1, 1, 4], 1.0))
    assert cheap.depths(rows).mean() < rule.depths(rows).mean()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(width=32), st.just(float("nan")), st.just(1e300)), min_size=2,
        max_size=20,
    )
)  # fmt: skip
def test_numbers_of_any_size_stay_finite(values: list[float]) -> None:
    column = FeatureColumn.fit("x", np.asarray(values))
    matrix = column.matrix(np.asarray(values))
    assert np.isfinite(matrix).all()
    assert FeatureColumn.from_dict(json.loads(json.dumps(column.to_dict()))) == column


def test_what_an_item_lacks_counts_as_blank() -> None:
    assert FeatureColumn("n", (1.0,), (2.0,)).of_one(None).tolist() == [0, 1]
    assert FeatureColumn("t", values=("a", "b")).of_one(None).tolist() == [0, 0]
    assert FeatureColumn("v", (1.0, 2.0), (1.0, 1.0), vector=True).of_one([2, 2]).tolist() == [1, 0]
    with pytest.raises(StopwiseError, match="feature v"):
        FeatureColumn("v", (1.0, 2.0), (1.0, 1.0), vector=True).of_one([2, 2, 3])


def test_a_feature_that_was_fitted_on_must_be_there() -> None:
    columns = RowNumbers.fit(feature_rows())
    bare = Observations(("no", "yes"), np.array([[0, 1]]))
    with pytest.raises(StopwiseError, match="vector"):
        columns.matrix(bare, 0)
