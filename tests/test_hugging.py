"""Looks on the boundary, many at once: the same looks, the same law as one by one."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numba import njit

from independent import play
from stopwise import Costs, Problem, make_policy
from stopwise.simulation.engines import choose_engine
from stopwise.simulation.kernels.confidence import following, hugging
from stopwise.simulation.kernels.confidence import replications as clock
from stopwise.simulation.kernels.patterns import make_tables
from two_samples import assert_same_law

FAMILY_RATE = 1e-6
"""Chance that this file rejects a correct engine (a theorem: see two_samples.py)."""
COMPARISONS = 256
"""More than all comparisons made here; each gets the share FAMILY_RATE / COMPARISONS."""


def plain(differs, seen, disagreed, x, alpha, strict, t, cut, most):
    """One round at a time: looks, disagreements, round of the last look, and whether it rests."""
    looks = differed = 0
    last = t
    for round in range(t + 1, cut + 1):
        bound = disagreed / seen + math.sqrt(alpha * math.log(round) / seen)
        if x > bound if strict else x >= bound:
            continue
        if looks == most:
            return looks, differed, last, False
        differ = int(differs[looks])
        looks, differed, last = looks + 1, differed + differ, round
        seen, disagreed = seen + 1, disagreed + differ
    return looks, differed, last, True


class Script:
    """Stands in for the random numbers of `follow`: what it draws is read from a given sequence."""

    def __init__(self, differs: np.ndarray, seen_to: Counter[str]) -> None:
        self.differs, self.at, self.seen_to = differs, 0, seen_to
        self.replayed: list[bool] = []

    def failures_before_success(self, state, p, most):
        run = 0
        while run < most and not self.differs[self.at + run]:
            run += 1
        self.at += min(run + 1, most)
        return run

    def disagreements(self, state, rng, n, p, log_rest):
        self.seen_to["bulks"] += 1
        self.at += n
        return int(self.differs[self.at - n : self.at].sum())

    def replay(self, bulks, kept, *rest):
        self.seen_to["replays"] += 1
        self.seen_to["bulks replayed"] += kept
        self.replayed = [
            bool(differ)
            for k in range(kept)
            for differ in self.differs[int(bulks[k, 4]) : int(bulks[k, 4] + bulks[k, 2])]
        ]
        result = following_replay.py_func(bulks, kept, *rest)
        assert not self.replayed
        return result

    def uniform(self, state):
        return 1e-9 if self.replayed.pop(0) else 1 - 1e-9


following_replay = following.replay
what_happened: Counter[str] = Counter()


@given(
    seed=st.integers(0, 2**32), x=st.floats(0.02, 0.9), excess=st.floats(-0.3, 0.5),
    alpha=st.sampled_from([0.005, 0.02, 0.1, 0.5]), strict=st.booleans(),
    t=st.one_of(st.integers(5, 60), st.integers(20, 2000)),
    longer=st.floats(0.003, 1.5), off=st.floats(-3.0, 3.0),
    reserve=st.one_of(st.integers(0, 12), st.floats(0.0, 0.6)),
    most=st.sampled_from([7, 60, 10**6]), memory=st.sampled_from([1, 3, 64]),
    bulk=st.sampled_from([0.0, 0.5, 4.0]),
)  # fmt: skip
# A bulk that came too close to the cut would show here, and seldom anywhere else.
@example(
    seed=3258890393, x=0.18167950947445252, excess=-0.18926229965651611, alpha=0.5, strict=False,
    t=75, longer=1.41282997289288, off=-2.267162140557473, reserve=0.4669786265331152,
    most=10**6, memory=64, bulk=0.0,
)  # fmt: skip
@example(
    seed=4110171141, x=0.16384998296708445, excess=-0.23294710896762671, alpha=0.5, strict=False,
    t=90, longer=0.8370486938687489, off=-0.31050768628384917, reserve=0.4222503328564061,
    most=10**6, memory=64, bulk=0.0,
)  # fmt: skip
@settings(max_examples=2500, deadline=None, derandomize=True)
def check_the_same_looks(
    seed, x, excess, alpha, strict, t, longer, off, reserve, most, memory, bulk
):
    """Given which looks disagree, `follow` makes as many by the cut as one round after another."""
    rng = np.random.default_rng(seed)
    cut = t + int(t * longer) + 1
    reserve = int(reserve * (cut - t)) if isinstance(reserve, float) else reserve
    # Near the boundary, `off` to one side of it in disagreements; p is below x, or above.
    p = min(max(x * (1.0 - excess), 0.0), 0.99)
    seen = min(float(int(alpha * math.log(t) / max(x - p, 0.03) ** 2) + 1), float(t))
    disagreed = round(x * seen - math.sqrt(alpha * seen * math.log(t)) + off)
    disagreed = float(min(max(disagreed, 0), seen))
    assume(following.rises(x, seen + cut - t, alpha, t))
    differs = rng.random(cut - t + 1) < p
    script = Script(differs, what_happened)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("failures_before_success", "disagreements", "replay", "uniform"):
            patch.setattr(following, name, getattr(script, name))
        patch.setattr(following, "_RUNS_OF_A_BULK", bulk)
        most = min(most, cut - t)
        ours = following.follow.py_func(
            seen, disagreed, x, p, alpha, strict, t, cut, most,
            min(reserve, cut - t - 1), np.empty((memory, 5)), None, None,
        )  # fmt: skip
    looks, differed, last, rests = plain(
        differs, seen, disagreed, x, alpha, strict, t, cut, most
    )  # fmt: skip
    assert ours[:2] == (looks, differed)
    assert ours[2] == last if looks == most and ours[2] < cut else ours[2] == cut and rests
    what_happened["looks"] += looks
    what_happened["rests"] += rests and 0 < looks < cut - t


def test_the_same_looks() -> None:
    what_happened.clear()
    check_the_same_looks()
    # All that can happen did: bulks, replays of several of them, cuts reached on the boundary.
    assert what_happened["looks"] > 30_000
    assert what_happened["bulks"] > 2000
    assert what_happened["replays"] > 100
    assert what_happened["bulks replayed"] > what_happened["replays"]
    assert what_happened["rests"] > 300


@njit(cache=True)
def look_by_look(seen0, disagreed0, x, p, alpha, t0, cut, replications, seed):
    """Looks and disagreements by the cut, every look drawn and dated by itself."""
    np.random.seed(seed)  # noqa: NPY002
    result = np.zeros((replications, 2), dtype=np.int64)
    for replication in range(replications):
        seen, disagreed, t = seen0, disagreed0, t0
        while True:
            surplus = x * seen - disagreed
            due = t + 1
            if surplus > 0.0:
                due = max(due, int(math.exp(min(surplus * surplus / (alpha * seen), 40.0))) + 1)
            if due > cut:
                break
            t = due
            seen += 1.0
            result[replication, 0] += 1
            if np.random.random() < p:  # noqa: NPY002
                disagreed += 1.0
                result[replication, 1] += 1
    return result


@njit
def draw(n, p, states, rng):
    result = np.zeros(len(states), dtype=np.int64)
    for k in range(len(states)):
        result[k] = following.disagreements(states[k], rng, n, p, math.log1p(-p))
    return result


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (20, 0.5), (300, 0.0152), (10**6, 1e-5), (9, 0.9)])
def test_disagreements_are_binomial(n: int, p: float) -> None:
    states = np.random.SeedSequence(n).generate_state(4 * 50_000, np.uint64).reshape(-1, 4)
    got = draw(n, p, states, np.random.default_rng(1))
    wanted = np.random.default_rng(2).binomial(n, p, size=len(got))
    assert_same_law(got, wanted, rate=FAMILY_RATE, comparisons=COMPARISONS, what=f"{n} of {p}")


@njit  # not cached: that would outlive a change of what it calls
def follow_many(seen, disagreed, x, p, alpha, t, cut, reserve, states, rng):
    bulks = np.empty((following.BULKS, 5))
    result = np.zeros((len(states), 3), dtype=np.int64)
    for k in range(len(states)):
        looks, differed, now = following.follow(
            seen, disagreed, x, p, alpha, False, t, cut, cut - t, reserve, bulks, states[k], rng
        )
        result[k, 0], result[k, 1], result[k, 2] = looks, differed, now
    return result


def count_replays(seen, disagreed, x, p, alpha, t, cut, reserve, states) -> int:
    count = 0

    def replay(*given):
        nonlocal count
        count += 1
        return following_replay(*given)

    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        patch.setattr(following, "replay", replay)
        for state in states:
            following.follow.py_func(
                seen, disagreed, x, p, alpha, False, t, cut, cut - t, reserve,
                np.empty((following.BULKS, 5)), state.copy(), np.random.default_rng(9),
            )  # fmt: skip
    return count


@pytest.mark.parametrize(
    ("x", "p", "alpha", "t", "cut"),
    [
        (0.13, 0.1, 0.3, 10**4, 10**5),
        (0.04, 0.03, 0.1, 10**4, 10**6),
        (0.55, 0.5, 1.0, 10**4, 10**6),
        (0.019, 0.0152, 1.5, 2 * 10**6, 2_400_000),  # as on PIMA 2
    ],
)
def test_law_of_the_looks(x: float, p: float, alpha: float, t: int, cut: int) -> None:
    """By runs, with the usual reserve, and with so small a one that bulks are replayed a lot."""
    seen = float(int(alpha * math.log(t) / (x - p) ** 2))
    disagreed = float(int(x * seen - math.sqrt(alpha * seen * math.log(t))))
    usual = following.rounds_to_spare(seen, x, p, t, cut, cut - t)
    assert usual > 0
    assert following.rises(x, seen + cut - t, alpha, t)
    n = 2000 if t > 10**4 else 20_000
    wanted = look_by_look(seen, disagreed, x, p, alpha, t, cut, n, 1)
    for at, reserve in enumerate((0, usual, usual // 32)):
        sequence = np.random.SeedSequence((5, at))
        states = sequence.generate_state(4 * n, np.uint64).reshape(-1, 4)
        got = follow_many(
            seen, disagreed, x, p, alpha, t, cut, reserve, states, np.random.default_rng(at)
        )
        assert (got[:, 2] == cut).all()
        replays = count_replays(seen, disagreed, x, p, alpha, t, cut, reserve, states[:20])
        assert replays == 0 if reserve == 0 else replays > 0 if reserve < usual else replays < 3
        for column in range(2):
            assert_same_law(
                got[:, column], wanted[:, column], rate=FAMILY_RATE, comparisons=COMPARISONS,
                what=f"column {column} with reserve {reserve}",
            )  # fmt: skip


def hugging_problem(count: int) -> Problem:
    """The last two stages differ in a tenth of all rounds, at a price of 0.13 mistakes.

    Of three stages the first differs too often to be stopped at.
    """
    if count == 2:
        return Problem.from_patterns(
            [(0, (0, 0), 0.9), (1, (0, 1), 0.1)], Costs.from_cumulative((0.0, 0.13))
        )  # fmt: skip
    patterns = [
        (0, (0, 0, 0), 0.63), (0, (1, 0, 0), 0.27), (1, (0, 0, 1), 0.06), (1, (1, 0, 1), 0.04),
    ]  # fmt: skip
    return Problem.from_patterns(patterns, Costs.from_cumulative((0.0, 0.05, 0.18)))


def shares_of_looks_followed(problem: Problem, ucb: bool, alpha: float, horizon: int) -> float:
    """Which share of the deepest rounds `follow` has taken."""
    taken = 0

    def follow(*given):
        nonlocal taken
        result = hugging_follow(*given)
        taken += result[0]
        return result

    hugging_follow = hugging.follow
    table = np.zeros((1, problem.stage_count), dtype=np.int64)
    state = np.random.SeedSequence(1).generate_state(4, np.uint64)
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        patch.setattr(hugging, "follow", follow)
        patch.setattr(clock, "hug", hugging.hug.py_func)
        clock.run_one.py_func(
            make_tables(problem, "independent"), np.array(problem.costs.thresholds), alpha,
            ucb, ucb, not ucb, np.array([horizon]), state, np.random.default_rng(2), table,
        )  # fmt: skip
    return taken / int(table[0, -1])


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("algorithm", ["uss-ucb", "hanawal-2"])
def test_law_of_rules_that_hug(algorithm: str, count: int) -> None:
    """Against the printed algorithms, at rounds before and after the boundary is reached."""
    problem, alpha, n = hugging_problem(count), 0.3, 1000
    assert shares_of_looks_followed(problem, algorithm == "uss-ucb", alpha, 30_000) > 0.3
    grid = np.array([1000, 3000, 5000, 30_000])
    policy = make_policy(f"{algorithm}:alpha={alpha}")
    ours = choose_engine("fast", problem, policy, "independent").depth_counts(grid, 3, range(n))
    assert 0 < ours[:, -1, -1].min() < np.median(ours[:, -1, -1]) < 6000
    for at, horizon in enumerate(grid):
        theirs = play(
            problem, algorithm, horizon=int(horizon), replications=n, seed=at, settings=(alpha,)
        )
        for stage in range(count):
            assert_same_law(
                ours[:, at, stage], theirs[:, stage], rate=FAMILY_RATE, comparisons=COMPARISONS,
                what=f"stage {stage} at {horizon}",
            )  # fmt: skip
