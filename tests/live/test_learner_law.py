"""Live follows the same law as simulation. Each comparison: false alarms at most 1e-6."""

import numpy as np
import pytest

from stopwise import Costs, Evidence, Problem, make_policy, policy_names, simulate
from stopwise.live import Learner
from stopwise.policies.base import Policy
from stopwise.policies.oracle import with_oracle_stage
from stopwise.policies.per_item.situation import RowPolicy, SituationPolicy

# |z| > 5.5 of a normal mean has probability 4e-8; the rest of 1e-6 is room for skewness.
LIMIT = 5.5

# Some rules have to be told the horizon, or the optimal stage, before they can decide anything.
# Those that learn from whole rows are for logs (test_live_per_item.py has their refusal).
EVERY_POLICY = [
    with_oracle_stage(policy, 1).for_horizon(1000)
    for policy in map(make_policy, policy_names())
    if not isinstance(policy, RowPolicy)
]


def problem(costs=(0.05, 0.15, 0.2)):
    # the calibrated PIMA distribution; with these costs the second stage is best
    return Problem.from_rates(
        [0.3098, 0.233, 0.2278],
        [[0, 0.205, 0.205], [0.205, 0, 0.0155], [0.205, 0.0155, 0]],
        Costs.from_cumulative(costs),
    )


def live_regret(problem, policy, horizon, seed, in_flight):
    rng = np.random.default_rng([seed, 1])
    rows = rng.choice(len(problem.p), size=horizon, p=problem.p)
    outputs = problem.outputs.tolist()
    learner = Learner(problem.costs, policy, seed=seed)
    waiting = []
    depths = np.zeros(problem.stage_count)
    for row in rows.tolist():
        round = learner.begin()
        depths[round.depth] += 1
        waiting.append((round, outputs[row]))
        if len(waiting) >= in_flight:
            oldest, seen = waiting.pop(0)
            for stage in range(oldest.depth + 1):
                oldest.observe(seen[stage])
            oldest.end()
    return float(depths @ problem.gaps)


def delayed_reference(problem, policy, horizon, seed, lag):
    """The protocol of the paper with feedback that comes `lag` rounds late, written once more."""
    rng = np.random.default_rng([seed, 2])
    rows = rng.choice(len(problem.p), size=horizon, p=problem.p)
    evidence, waiting, regret = Evidence(problem.stage_count), [], 0.0
    for t, row in enumerate(rows, 1):
        depth = policy.draw(evidence, t, problem.costs, rng)
        regret += problem.gaps[depth]
        waiting.append(problem.outputs[row][: depth + 1].tolist())
        if len(waiting) >= lag:
            policy.record(evidence, t, waiting.pop(0))
    return regret


def z(one, two):
    return (np.mean(one) - np.mean(two)) / np.sqrt(
        np.var(one, ddof=1) / len(one) + np.var(two, ddof=1) / len(two)
    )


@pytest.mark.parametrize(
    ("policy", "costs", "horizon"),
    [("uss-ts", (0.05, 0.15, 0.2), 1500), ("uss-ucb", (0.0, 0.6, 1.2), 300)],
)
def test_regret_is_that_of_simulate(policy, costs, horizon):
    given = problem(costs)
    live = [live_regret(given, policy, horizon, seed, 1) for seed in range(60)]
    simulated = simulate(given, policy, horizon=horizon, replications=40, seed=1).finals
    assert np.std(simulated) > 0
    assert abs(z(live, simulated)) < LIMIT


def test_regret_with_a_hundred_rounds_in_flight():
    live = [live_regret(problem(), "uss-ts", 1500, seed, 100) for seed in range(40)]
    late = [
        delayed_reference(problem(), make_policy("uss-ts"), 1500, seed, 100) for seed in range(30)
    ]
    assert abs(z(live, late)) < LIMIT
    simulated = simulate(problem(), "uss-ts", horizon=1500, replications=40, seed=1).finals
    assert abs(z(live, simulated)) < LIMIT


# Policies that look at situations feed the pair counters by full runs alone: test_live_per_item.py.
DEPTH_FIRST = [policy for policy in EVERY_POLICY if not isinstance(policy, SituationPolicy)]


@pytest.mark.parametrize("policy", DEPTH_FIRST, ids=lambda policy: policy.name)
def test_probabilities_are_those_of_the_policy(policy):
    """Every depth-first policy: what a round states is what the policy says of the evidence."""
    rng = np.random.default_rng(7)
    learner = Learner([0.0, 0.1, 0.1], policy, seed=3)
    evidence, costs = Evidence(3), learner.costs
    for t in range(1, 120):
        want = policy.probabilities(evidence, t, costs)
        np.testing.assert_allclose(learner.probabilities(), want, rtol=1e-9, atol=1e-17)
        round = learner.begin()
        assert round.number == t
        assert round.probability == pytest.approx(want[round.depth], rel=1e-9)
        prefix = rng.integers(0, 2, round.depth + 1).tolist()
        for output in prefix:
            round.observe(output)
        round.end()
        policy.record(evidence, t, prefix)
        assert learner.evidence() == evidence


def test_draws_follow_the_stated_probabilities():
    """Bernstein's inequality at 1e-7 for each of three depths."""
    learner = Learner([0.0, 0.3, 0.3], seed=11)
    p = np.array(learner.probabilities())
    number = 20_000
    counts = np.bincount([learner.begin().depth for _ in range(number)], minlength=3)
    log = np.log(2 / 1e-7)
    allowed = log / 3 + np.sqrt((log / 3) ** 2 + 2 * number * p * (1 - p) * log)
    assert (np.abs(counts - number * p) <= allowed).all()


def test_a_users_own_policy():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class EverySecond(Policy):
        name = "every-second"

        def _depth_probabilities(self, evidence, round, costs):
            p = np.zeros(costs.stage_count)
            p[-1 if round % 2 else 0] = 1
            return p

    learner = Learner([0, 1], EverySecond())
    assert [learner.begin().depth for _ in range(4)] == [1, 0, 1, 0]


@pytest.mark.parametrize("policy", DEPTH_FIRST, ids=lambda policy: policy.name)
def test_policies_take_real_counts(policy):
    """Discounted and lent evidence has real counts; every registered policy must read it."""
    learner = Learner([0.0, 0.1, 0.1], policy, half_life=20, seed=1)
    rng = np.random.default_rng(0)
    for t in range(60):
        with learner.begin(segment="ab"[t % 2]) as round:
            for _ in range(round.depth + 1):
                round.observe(int(rng.integers(2)))
    p = learner.probabilities("c")
    assert sum(p) == pytest.approx(1)
    assert min(p) >= 0


@pytest.mark.parametrize("name", ["uss-ts", "uss-ts-jump", "uss-voi-anytime", "imed:horizon=5000"])
def test_older_rounds_weigh_less_by_the_real_counts(name):
    """Rounding them, as rules once did, changes decisions: the weights are added up here again."""
    policy = make_policy(name)
    learner = Learner([0.0, 0.2, 0.2], policy, half_life=30, seed=2)
    rng = np.random.default_rng(6)
    weighed, rounded = Evidence(3), 0
    for t in range(1, 400):
        want = policy.probabilities(weighed, t, learner.costs)
        round = learner.begin()
        assert round.probability == pytest.approx(want[round.depth], rel=1e-9)
        whole = weighed.copy()
        whole.seen, whole.disagreed = np.floor(weighed.seen), np.floor(weighed.disagreed)
        rounded += not np.allclose(want, policy.probabilities(whole, t, learner.costs), atol=1e-3)
        for output in (rng.random(round.depth + 1) < 0.1).tolist():
            round.observe(output)
        round.end()
        for table in ("seen", "disagreed", "switched", "switched_twice"):
            setattr(weighed, table, getattr(weighed, table) * 0.5 ** (1 / 30))
        weighed.merge(Evidence.from_prefixes(3, [round.outputs]))
    assert rounded >= 3  # so the test tells rounding from not rounding
