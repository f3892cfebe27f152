"""Policies over given rows, compiled: the depths of the plain loop, exactly or in law."""

# ruff: noqa: NPY002  (inside numba this is its own generator, and none of stopwise's)
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from stopwise import ABSTAINED, Costs, Evidence, Policy, StopwiseError, make_policy
from stopwise.policies.base import certain_depth
from stopwise.policies.oracle import Oracle
from stopwise.simulation.replay_engine import has_row_kernel, replay_rows
from two_samples import assert_same_law

FAMILY_RATE = 1e-6
"""Chance that this file rejects a correct engine (a theorem: see two_samples.py)."""
COMPARISONS = 128
"""More than all comparisons made here; each gets the share FAMILY_RATE / COMPARISONS."""


def some_rows(number, stages, seed, abstaining=0.15):
    """Outputs that mostly agree, some abstentions; no two columns alike."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(rng.integers(0, 3, size=(number, 1)), stages, axis=1)
    noise = rng.random(codes.shape) < np.linspace(0.35, 0.05, stages)
    codes = np.where(noise, rng.integers(0, 3, size=codes.shape), codes)
    return np.where(rng.random(codes.shape) < abstaining, -1, codes)


def plain_loop(policy, codes, costs, seed=0):
    """What every caller without a kernel runs: a round after the other, in Python."""
    evidence = Evidence(costs.stage_count)
    rng = np.random.default_rng(seed)
    depths = []
    for at, row in enumerate(codes.tolist()):
        depth = policy.draw(evidence, at + 1, costs, rng)
        prefix = [ABSTAINED if code < 0 else code for code in row[: depth + 1]]
        policy.record(evidence, at + 1, prefix)
        depths.append(depth)
    return depths


CERTAIN = [
    "uss-ucb", "uss-ucb:alpha=0.1", "hanawal-2", "hanawal-2:alpha=0.1", "uss-voi",
    "uss-voi:horizon=150", "uss-voi-anytime", "uss-voi-anytime:head_start=20", "imed",
    "fixed:stage=1", "fixed",
]  # fmt: skip


@pytest.mark.parametrize("name", CERTAIN)
@pytest.mark.parametrize("stages", [2, 4])
def test_rules_that_decide_do_exactly_what_the_plain_loop_does(name, stages):
    codes = some_rows(700, stages, seed=stages)
    costs = Costs.from_stages([0.02] + [0.12] * (stages - 1))
    policy = make_policy(name).for_horizon(len(codes))
    (run,) = replay_rows(policy, codes, costs)
    assert run.order.tolist() == list(range(700))
    assert run.depths.tolist() == plain_loop(policy, codes, costs)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_rules_that_decide_on_any_rows(data):
    stages = data.draw(st.integers(2, 4))
    row = st.lists(st.integers(-1, 2), min_size=stages, max_size=stages)
    codes = np.array(data.draw(st.lists(row, min_size=1, max_size=25)))
    own = data.draw(st.lists(st.integers(0, 60), min_size=stages, max_size=stages))
    costs = Costs.from_stages([cost / 50 for cost in own])
    for name in ("uss-ucb:alpha=0.05", "hanawal-2:alpha=0.05", "uss-voi-anytime:head_start=3"):
        (run,) = replay_rows(make_policy(name), codes, costs)
        assert run.depths.tolist() == plain_loop(make_policy(name), codes, costs), name


@njit
def as_printed(codes, x, a, b, jumps, temper, seed, replications, cuts):
    """USS-TS with its Beta draws, by the step or the jump walk; sums of depths up to each cut."""
    np.random.seed(seed)
    last = len(x) - 1
    sums = np.zeros((replications, len(cuts)))
    for r in range(replications):
        S, F = np.full(x.shape, a), np.full(x.shape, b)
        total, at = 0, 0
        for t in range(len(codes)):
            depth = 0
            while depth < last:
                to = 0
                for j in range(depth + 1, last + 1):
                    if not x[depth, j] > np.random.beta(S[depth, j], F[depth, j]):
                        to = j if jumps else depth + 1
                        break
                if to == 0:
                    break
                depth = to
            for j in range(1, depth + 1):
                for i in range(j):
                    if codes[t, i] >= 0 and codes[t, j] >= 0:
                        if codes[t, i] != codes[t, j]:
                            S[i, j] += temper
                        else:
                            F[i, j] += temper
            total += depth
            if t + 1 == cuts[at]:
                sums[r, at] = total
                at += 1
    return sums


@pytest.mark.parametrize(
    "name",
    ["uss-ts", "uss-ts:prior_agreed=2.5", "uss-ts-literal", "uss-ts-jump", "uss-ts-tempered"],
)
def test_law_of_thompson_sampling_over_rows(name):
    policy: Any = make_policy(name)
    n, cuts = 1500, np.array([10, 60, 400])
    codes = some_rows(400, 3, seed=9)
    costs = Costs.from_stages([0.02, 0.15, 0.1])
    runs = replay_rows(policy, codes, costs, replications=n, seed=4)
    ours = np.array([np.cumsum(run.depths)[cuts - 1] for run in runs])
    jumps = name in ("uss-ts-jump", "uss-ts-tempered")
    theirs = as_printed(
        codes, np.array(costs.thresholds), float(policy.prior_disagreed),
        float(policy.prior_agreed), jumps, float(getattr(policy, "temper", 1)), 5, n, cuts,
    )  # fmt: skip
    assert ours[:, -1].std() > 5
    for at, cut in enumerate(cuts):
        assert_same_law(
            ours[:, at], theirs[:, at], rate=FAMILY_RATE, comparisons=COMPARISONS,
            what=f"{name} after {cut} rounds",
        )  # fmt: skip
    # The check can fail: abstentions taken for a label of their own are told apart.
    wrong = as_printed(
        np.where(codes < 0, 9, codes), np.array(costs.thresholds), float(policy.prior_disagreed),
        float(policy.prior_agreed), jumps, float(getattr(policy, "temper", 1)), 5, n, cuts,
    )  # fmt: skip
    with pytest.raises(AssertionError):
        assert_same_law(
            ours[:, -1], wrong[:, -1], rate=FAMILY_RATE, comparisons=COMPARISONS, what=""
        )


def test_law_of_the_plain_loop_too():
    """The Python loop that callers fall back on, at fewer rounds."""
    n, codes = 500, some_rows(30, 3, seed=2)
    costs = Costs.from_stages([0.02, 0.15, 0.1])
    policy = make_policy("uss-ts")
    ours = [run.depths.sum() for run in replay_rows(policy, codes, costs, replications=n, seed=1)]
    theirs = [sum(plain_loop(policy, codes, costs, seed)) for seed in range(n)]
    assert_same_law(
        np.array(ours, dtype=float), np.array(theirs), rate=FAMILY_RATE, comparisons=COMPARISONS,
        what="plain loop",
    )  # fmt: skip


def test_orders_are_those_of_the_seed_and_jobs_do_not_matter():
    codes, costs = some_rows(200, 3, seed=3), Costs.from_stages([0.1, 0.1, 0.1])
    given = {"order": "shuffled", "rounds": 150, "replications": 5, "seed": 7}
    one = list(replay_rows(make_policy("uss-ts"), codes, costs, **given))
    two = list(replay_rows(make_policy("uss-ts"), codes, costs, jobs=2, **given))
    for first, second in zip(one, two, strict=True):
        assert np.array_equal(first.order, second.order)
        assert np.array_equal(first.depths, second.depths)
    seeds = np.random.SeedSequence(7).spawn(5)
    wanted = np.random.default_rng(seeds[2].spawn(2)[0]).permutation(200)[:150]
    assert np.array_equal(one[2].order, wanted)
    assert not np.array_equal(one[0].order, one[1].order)
    # A rule that decides sees the rows in that order.
    (run,) = list(replay_rows(make_policy("uss-ucb"), codes, costs, order="shuffled", seed=1))
    assert run.depths.tolist() == plain_loop(make_policy("uss-ucb"), codes[run.order], costs)


@dataclass(frozen=True)
class Compiled(Policy):
    """Goes on while a pair disagreed in at least a tenth; written twice."""

    name = "compiled"

    def _depth_probabilities(self, evidence, round, costs):
        seen, disagreed = evidence.counts(0, 1)
        return certain_depth(costs.stage_count, int(10 * disagreed >= seen))

    def compiled_rule(self):
        @njit
        def rule(seen, disagreed, x, round, depths):
            depths[1 if 10 * disagreed[0, 1] >= seen[0, 1] else 0] = 1.0

        return rule


@dataclass(frozen=True)
class Slow(Compiled):
    """Without a second form."""

    name = "slow"

    def compiled_rule(self):
        return None


def test_own_rules():
    codes, costs = some_rows(300, 2, seed=6), Costs.from_stages([0.1, 0.1])
    assert has_row_kernel(Compiled())
    (run,) = replay_rows(Compiled(), codes, costs)
    assert run.depths.tolist() == plain_loop(Compiled(), codes, costs)
    assert not has_row_kernel(Slow())
    with pytest.raises(StopwiseError, match="slow has no compiled loop; run the plain one"):
        list(replay_rows(Slow(), codes, costs))


def test_what_does_not_fit_is_refused():
    costs = Costs.from_stages([0.1, 0.1])
    for codes, message in (
        ([[0, 1, 2]], "shape"), ([], "shape"), ([[0.5, 1.0]], "float64"), ([[0, 2**40]], "2\\^31"),
    ):  # fmt: skip
        with pytest.raises(StopwiseError, match=message):
            list(replay_rows(make_policy("uss-ts"), codes, costs))
    with pytest.raises(StopwiseError, match="order"):
        list(replay_rows(make_policy("uss-ts"), [[0, 1]], costs, order="random"))
    with pytest.raises(StopwiseError, match="stage"):
        list(replay_rows(make_policy("fixed:stage=5"), [[0, 1]], costs))
    with pytest.raises(StopwiseError, match="oracle"):
        list(replay_rows(Oracle(), [[0, 1]], costs))
    (run,) = replay_rows(Oracle(1), [[0, 1]] * 3, costs)
    assert run.depths.tolist() == [1, 1, 1]
