from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import scipy.stats

from random_cascades import random_problem
from stopwise import Costs, Policy, Problem, StopwiseError, make_policy, simulate
from stopwise.simulation.grids import make_grid
from stopwise.simulation.results import Moments


@pytest.fixture(scope="module")
def problem():
    return Problem.from_rates(
        [0.31, 0.233, 0.228],
        [[0, 0.205, 0.205], [0.205, 0, 0.0155], [0.205, 0.0155, 0]],
        Costs.from_cumulative((0.05, 0.285, 0.45)),
    )


def same(one, two):
    """Whether two results are equal to the last bit."""
    return (
        json.dumps(one.to_dict()) == json.dumps(two.to_dict())
        and np.array_equal(one.finals, two.finals)
        and np.array_equal(one.stage_counts, two.stage_counts)
    )


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("policy", ["uss-ts", "uss-ts-literal", "uss-ucb", "hanawal-2"])
def test_same_seed_same_result(problem, policy, engine):
    settings = {"horizon": 100, "replications": 6, "engine": engine}
    one = simulate(problem, policy, seed=5, **settings)
    assert same(one, simulate(problem, policy, seed=5, **settings))
    if policy.startswith("uss-ts"):
        other = simulate(problem, policy, seed=6, **settings)
        assert not np.array_equal(one.stage_counts, other.stage_counts)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_number_of_workers_changes_nothing(problem, engine):
    settings = {"horizon": 60, "replications": 70, "seed": 5, "engine": engine}
    one = simulate(problem, "uss-ts", jobs=1, **settings)
    assert same(one, simulate(problem, "uss-ts", jobs=2, **settings))
    fewer = simulate(problem, "uss-ts", **{**settings, "replications": 40})
    assert np.array_equal(one.finals[:40], fewer.finals)  # a replication depends on its index only


def test_result_adds_up(problem):
    result = simulate(problem, "uss-ts", horizon=500, replications=40, seed=2)
    assert (result.policy, result.horizon, result.replications, result.seed) == (
        "uss-ts", 500, 40, 2,
    )  # fmt: skip
    assert result.optimal_stage == problem.optimal_stage
    assert result.weak_dominance == problem.weak_dominance
    assert result.stage_counts.shape == (40, 3)
    assert (result.stage_counts.sum(axis=1) == 500).all()
    np.testing.assert_allclose(result.finals, result.stage_counts @ problem.gaps, atol=1e-9)
    np.testing.assert_allclose(
        result.stage_share, result.stage_counts.sum(axis=0) / 20_000, atol=1e-12
    )
    assert sum(result.stage_share) == pytest.approx(1)
    regret = result.regret
    assert regret.mean == pytest.approx(result.finals.mean())
    error = result.finals.std(ddof=1) / math.sqrt(40)
    half = scipy.stats.t.ppf(0.975, 39) * error
    assert regret.ci_low == pytest.approx(regret.mean - half)
    assert regret.ci_high == pytest.approx(regret.mean + half)
    quantiles = np.quantile(result.finals, [0.05, 0.5, 0.95, 0.99])
    np.testing.assert_allclose([regret.q05, regret.q50, regret.q95, regret.q99], quantiles)
    rounds = [point.round for point in result.curve]
    assert len(rounds) == 100
    assert rounds[-1] == 500
    assert rounds == sorted(set(rounds))
    means = [point.mean for point in result.curve]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(means))
    assert means[-1] == regret.mean


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_regret_of_fixed_stages_is_exact(problem, engine):
    for stage in (0, 1, 2, -1):
        policy = f"fixed:stage={stage}"
        result = simulate(problem, policy, horizon=1000, replications=3, engine=engine)
        np.testing.assert_allclose(result.finals, 1000 * problem.gaps[stage], rtol=1e-12)
        assert result.stage_share[stage] == 1
        for point in result.curve:
            expected = point.round * problem.gaps[stage]
            assert point.mean == pytest.approx(expected, rel=1e-12)
    assert simulate(problem, "oracle", horizon=100, replications=2).regret.mean == 0


def test_one_replication_has_no_interval(problem):
    result = simulate(problem, "uss-ts", horizon=50, replications=1, seed=1)
    assert math.isnan(result.regret.ci_low)
    assert result.regret.mean == result.regret.q50 == result.finals[0]
    form = result.to_dict()
    assert form["regret"]["ci_low"] is None
    assert form["curve"][0]["ci_high"] is None
    json.dumps(form, allow_nan=False)


def test_one_round(problem):
    result = simulate(problem, "uss-ucb", horizon=1, replications=2)
    assert result.stage_share == (0.0, 0.0, 1.0)
    assert [point.round for point in result.curve] == [1]


def test_grids(problem):
    result = simulate(problem, "fixed", horizon=1000, replications=1, grid=[10, 1, 500])
    assert [point.round for point in result.curve] == [1, 10, 500, 1000]
    assert make_grid("linear", 10_000).tolist() == list(range(100, 10_001, 100))
    log = make_grid("log", 10_000)
    assert log[0] == 1
    assert log[-1] == 10_000
    assert (np.diff(log) > 0).all()
    for horizon in (1, 2, 99, 101, 12345, 2**53):
        for kind in ("linear", "log"):
            grid = make_grid(kind, horizon)
            assert grid[-1] == horizon
            assert grid[0] >= 1
            assert (np.diff(grid) > 0).all()


def test_the_curve_does_not_depend_on_the_grid(problem):
    settings = {"horizon": 200, "replications": 5, "seed": 3, "engine": "reference"}
    coarse = simulate(problem, "uss-ts", grid=[100], **settings)
    fine = simulate(problem, "uss-ts", grid=list(range(1, 201)), **settings)
    assert np.array_equal(coarse.finals, fine.finals)
    assert coarse.curve[0].mean == pytest.approx(fine.curve[99].mean)


def test_moments_merge_as_one():
    rng = np.random.default_rng(0)
    curves = rng.normal(size=(50, 4)) + 1e6
    parts = [Moments.of(curves[a:b]) for a, b in ((0, 1), (1, 20), (20, 50))]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    np.testing.assert_allclose(merged.mean, curves.mean(axis=0))
    np.testing.assert_allclose(merged.squares / 49, curves.var(axis=0, ddof=1))


class Spy(Policy):
    """Stops at the last stage and keeps what it was handed (so it is no proper policy)."""

    name = "spy"

    def __init__(self, depth):
        self.depth, self.rounds = depth, []

    def _depth_probabilities(self, evidence, round, costs):
        return np.eye(costs.stage_count)[self.depth]

    def record(self, evidence, round, prefix):
        self.rounds.append((round, tuple(prefix)))

    def label(self):
        return self.name


def test_round_robin_follows_the_rows_and_only_the_prefix_is_shown():
    predictions = [[0, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1]]
    data = Problem.from_predictions(predictions, [1, 1, 0, 1], Costs.from_cumulative((0, 0.1, 0.2)))
    for depth in range(3):
        spy = Spy(depth)
        settings = {"horizon": 9, "replications": 1, "engine": "reference"}
        simulate(data, spy, stream="round-robin", **settings)
        assert [round for round, _ in spy.rounds] == list(range(1, 10))
        for t, prefix in spy.rounds:
            shown = [data.labels[code] for code in prefix]
            assert shown == predictions[(t - 1) % 4][: depth + 1]


def test_round_robin_rounds_do_not_depend_on_the_seed():
    rng = np.random.default_rng(1)
    table = rng.integers(0, 2, size=(37, 3))
    data = Problem.from_predictions(
        table, rng.integers(0, 2, size=37), Costs.from_cumulative((0, 0.2, 0.3))
    )
    settings = {"horizon": 200, "replications": 2, "stream": "round-robin"}
    results = [simulate(data, "uss-ucb", seed=seed, **settings) for seed in (1, 2)]
    assert np.array_equal(results[0].stage_counts, results[1].stage_counts)
    assert len(set(results[0].finals.tolist())) == 1


def test_independent_draws_follow_the_probabilities():
    """Chi-square of 20,000 rounds over the patterns; false-alarm rate 1e-6."""
    rng = np.random.default_rng(4)
    case = random_problem(rng, 4)
    spy = Spy(3)
    simulate(case, spy, horizon=20_000, replications=1, seed=9, engine="reference")
    law: dict[tuple[int, ...], float] = {}
    for row, weight in zip(case.outputs.tolist(), case.p, strict=True):
        law[tuple(row)] = law.get(tuple(row), 0.0) + weight
    patterns = list(law)
    counts = dict.fromkeys(patterns, 0)
    for _, prefix in spy.rounds:
        counts[prefix] += 1
    expected = np.array([law[pattern] for pattern in patterns]) * 20_000
    observed = np.array([counts[pattern] for pattern in patterns])
    assert expected.min() > 20
    tail = scipy.stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(patterns) - 1)
    assert tail > 1e-6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon: got 0, but need a whole number, 1 or more"),
        ({"horizon": -5}, "horizon: got -5"),
        ({"horizon": 1.5}, "horizon: got 1.5"),
        ({"horizon": None}, "horizon: got None"),
        ({"horizon": 10**30}, f"horizon: got {10**30}, but need at most {2**53} rounds"),
        ({"replications": 0}, "replications: got 0, but need a whole number, 1 or more"),
        ({"replications": "7"}, "replications: got '7'"),
        ({"seed": -1}, "seed: got -1, but need a whole number, 0 or more"),
        ({"stream": "random"}, "stream: got 'random', but need 'independent' or 'round-robin'"),
        ({"stream": "round-robin"}, "stream: round-robin follows the rows of a data set"),
        ({"engine": "warp"}, "engine: got 'warp', but need 'auto'"),
        ({"grid": "square"}, "grid: got 'square', but need 'linear', 'log' or a list of rounds"),
        ({"grid": [0]}, "grid[0]: got 0, but need a whole number, 1 or more"),
        ({"grid": [101]}, "grid: got [101], but need rounds of at most the horizon, 100"),
        ({"jobs": 0}, "jobs: got 0, but need a whole number, 1 or more"),
        ({"policy": "nobody"}, "policy: got 'nobody', but need 'uss-ts'"),
        ({"policy": "fixed:stage=3"}, "stage: got 3, but need a stage from 0 to 2"),
        ({"policy": "oracle:stage=3"}, "stage: got 3, but need a stage from 0 to 2"),
    ],
)
def test_refusals(problem, changes, message):
    settings = {"policy": "uss-ts", "horizon": 100, "replications": 2, **changes}
    with pytest.raises(StopwiseError) as error:
        simulate(problem, **settings)
    assert message in str(error.value)


def test_progress_is_reported(problem):
    seen = []
    simulate(problem, "fixed", horizon=5, replications=70, progress=lambda *pair: seen.append(pair))
    assert seen[-1] == (70, 70)
    assert seen == sorted(seen)


def test_a_policy_object_and_its_name_give_the_same(problem):
    settings = {"horizon": 50, "replications": 3, "seed": 4}
    by_name = simulate(problem, "uss-ucb:alpha=0.7", **settings)
    assert same(by_name, simulate(problem, make_policy("uss-ucb", alpha=0.7), **settings))
    assert by_name.policy == "uss-ucb:alpha=0.7"


def test_a_misspelt_setting_is_refused_with_the_nearest_known_one(problem):
    with pytest.raises(StopwiseError, match=r"^simulate: .*; did you mean 'replications'"):
        simulate(problem, "uss-ts", horizon=10, **{"replicates": 3})
