from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.logs.replaying.replay import replay
from stopwise.policies.conformance import check_policy
from stopwise.policies.contextual.glm import fit_logistic, logistic
from stopwise.policies.contextual.uss_pd import MOST_ROUNDS, PairLearner, UssPd, contexts_of
from stopwise.policies.per_item.learning import called, learn_over
from stopwise.policies.registry import make_policy
from stopwise.policies.uss_ucb import bound_of
from stopwise.simulation.contextual import ContextualProblem, simulate_contextual
from stopwise.situations.observations import Observations

TWO = ContextualProblem(((0.0, 3.0, 0.0),), Costs.from_cumulative((0.0, 0.4)))
THREE = ContextualProblem(((0.5, 2.5), (-1.0, 1.0)), Costs.from_cumulative((0.0, 0.2, 0.45)))


def test_it_keeps_the_rules_of_the_frame() -> None:
    check_policy(UssPd())
    check_policy(UssPd(alpha=1.0, start=4, growth=2.0))


def test_it_is_in_the_registry_with_its_settings() -> None:
    assert make_policy("uss-pd:alpha=1,growth=1") == UssPd(alpha=1, growth=1)


@pytest.mark.parametrize("given", [{"alpha": 0}, {"start": 0}, {"growth": 0.5}])
def test_settings_that_make_no_sense_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(StopwiseError, match=next(iter(given))):
        UssPd(**given)  # type: ignore[arg-type]


def test_newton_finds_the_maximum_of_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([np.ones((400, 1)), rng.normal(size=(400, 3))], axis=1)
    y = rng.random(400) < logistic(x @ np.array([-0.5, 1.0, -2.0, 0.0]))

    def loss(theta: np.ndarray) -> float:
        z = x @ theta
        return float((np.logaddexp(0, z) - y * z).sum() + 0.5e-3 * (theta @ theta))

    other = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    assert fit_logistic(x, y) == pytest.approx(other, abs=1e-5)


def test_by_hand_one_number_per_context() -> None:
    """Of four rounds one differs: the likelihood is greatest at p = 1/4, theta = -ln 3."""
    theta = fit_logistic(np.ones((4, 1)), np.array([True, False, False, False]), ridge=0.0)
    assert theta[0] == pytest.approx(-math.log(3))


def test_what_a_plane_parts_still_has_an_end() -> None:
    x = np.array([[1.0, -1.0], [1.0, 1.0]] * 20)
    theta = fit_logistic(x, x[:, 1] > 0)
    assert np.isfinite(theta).all()
    assert logistic(x @ theta)[1] > 0.95


def literal(policy: UssPd, rows: Observations, costs: Costs) -> list[int]:
    """The rule once more, round by round, with nothing carried along. Independent of the learner
    but for the numbers that features become."""
    last = costs.stage_count - 1
    depths: list[int] = []
    learner = PairLearner(policy, costs)
    learner.record(rows.where(slice(0, policy.start)), np.zeros(policy.start, dtype=bool))
    learner.refresh()
    assert learner.columns is not None, "the start is long enough here"
    x = contexts_of(rows, learner.columns)
    for t in range(1, len(rows) + 1):
        if t <= policy.start:
            depths.append(last)
            continue
        chosen = last
        for i in range(last):
            fine = True
            for j in range(i + 1, last + 1):
                saw = [s for s in range(t - 1) if depths[s] >= j]
                differ = rows.codes[saw, i] != rows.codes[saw, j]
                theta = fit_logistic(x[saw], differ)
                v = 1e-3 * np.eye(x.shape[1]) + x[saw].T @ x[saw]
                width = math.sqrt(
                    policy.alpha * math.log(t) * x[t - 1] @ np.linalg.solve(v, x[t - 1])
                )
                bound = float(logistic(x[t - 1] @ theta)) + width
                fine &= costs.cumulative[j] - costs.cumulative[i] > bound
            if fine:
                chosen = i
                break
        depths.append(chosen)
    return depths


@pytest.mark.parametrize("problem", [TWO, THREE])
def test_it_is_the_rule_as_written_round_by_round(problem: ContextualProblem) -> None:
    policy = UssPd(start=20, growth=1.0, alpha=0.1)
    rows, _ = problem.draw(160, np.random.default_rng(3))
    names = tuple(f"s{at}" for at in range(problem.costs.stage_count))
    depths, full, _ = learn_over(policy, names, rows, problem.costs, np.random.default_rng(0))
    assert depths.tolist() == literal(policy, rows, problem.costs)
    assert not full.any()
    assert len(set(depths[20:].tolist())) > 1, "it decides by the context"


def test_without_features_it_is_the_upward_test_of_uss_ucb() -> None:
    costs = Costs.from_cumulative((0.0, 0.3))
    rng = np.random.default_rng(1)
    rows = Observations(("a", "b"), rng.integers(0, 2, (300, 2)) * (rng.random((300, 1)) < 0.2))
    depths, _, _ = learn_over(UssPd(growth=1.0), ("s", "l"), rows, costs, rng)
    evidence, compared = Evidence(2), 0
    for at, depth in enumerate(depths.tolist()):
        if at >= 16:
            bound = bound_of(evidence, 0, 1, 0.5 * math.log(at + 1))
            if abs(bound - 0.3) > 0.0006:  # the ridge moves a chance by less
                asked = UssPd().probabilities(evidence, at + 1, costs)
                assert asked[depth] == 1.0
                compared += 1
        evidence.add(rows.codes[at, : depth + 1].tolist())
    assert compared > 100


@pytest.mark.parametrize("problem", [TWO, THREE])
def test_its_regret_grows_ever_more_slowly(problem: ContextualProblem) -> None:
    """Mean of five runs; a rule that looks at no context loses the same in each half."""
    runs = [simulate_contextual(problem, UssPd(growth=1.2), 3000, seed) for seed in range(5)]
    regret = np.mean([run.regret for run in runs], axis=0)
    _, contexts = problem.draw(20_000, np.random.default_rng(0))
    totals = problem.error_rates(contexts) + np.asarray(problem.costs.in_mistakes)
    blind = float((totals - totals.min(axis=1)[:, None]).mean(axis=0).min())
    assert regret[-1] < 0.6 * blind * 3000
    assert regret[-1] - regret[1500] < 0.35 * blind * 1500


def test_the_depth_rests_on_the_context_alone() -> None:
    """Outputs beyond the depth are scrambled, and those of a round before it is decided."""
    rows, _ = THREE.draw(600, np.random.default_rng(4))
    names, rng = ("a", "b", "c"), np.random.default_rng
    depths, _, _ = learn_over(UssPd(), names, rows, THREE.costs, rng(0))
    beyond = np.arange(3)[None] > depths[:, None]
    assert beyond.any()
    scrambled = Observations(
        rows.labels, np.where(beyond, 1 - rows.codes, rows.codes), None, rows.features
    )
    assert (learn_over(UssPd(), names, scrambled, THREE.costs, rng(0))[0] == depths).all()
    own = rows.codes.copy()
    own[-1] = 1 - own[-1]
    changed = Observations(rows.labels, own, None, rows.features)
    assert learn_over(UssPd(), names, changed, THREE.costs, rng(0))[0][-1] == depths[-1]


def test_a_feature_that_never_changes_does_not_hold_it_up() -> None:
    rows, contexts = TWO.draw(300, np.random.default_rng(5))
    constant = Observations(
        rows.labels, rows.codes, None,
        {"x": contexts, "same": np.full(300, 7.0), "kind": np.array(["a", "b"] * 150)},
    )  # fmt: skip
    depths, _, learned = learn_over(
        UssPd(), ("s", "l"), constant, TWO.costs, np.random.default_rng()
    )
    assert isinstance(learned, PairLearner)
    assert learned.started
    assert (depths == 0).any()


def test_memory_is_bounded() -> None:
    learner = PairLearner(UssPd(), TWO.costs)
    rows, _ = TWO.draw(9000, np.random.default_rng(6))
    for _ in range(4):
        learner.record(called(rows, np.ones(9000, dtype=np.int64)), np.zeros(9000, dtype=bool))
        learner.refresh()
    assert len(learner.contexts) == MOST_ROUNDS
    assert not learner.early


def test_replay_takes_features_as_the_context() -> None:
    rows, contexts = TWO.draw(1500, np.random.default_rng(7))
    frame = pl.DataFrame({"s": rows.codes[:, 0], "l": rows.codes[:, 1], "n": contexts[:, 0]})
    given = {"stages": ["s", "l"], "costs": [0, 0.4], "replications": 1}
    told = replay(frame, "uss-pd", features="n", **given)
    blind = replay(frame, "uss-pd", **given)
    assert told.outcomes[0].cost + told.outcomes[0].differs < (
        0.97 * (blind.outcomes[0].cost + blind.outcomes[0].differs)
    )
