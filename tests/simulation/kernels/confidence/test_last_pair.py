"""Rounds in which the last pair alone decides: the same law as the printed algorithms."""

from __future__ import annotations

import numpy as np
import pytest

from independent import play
from stopwise import Costs, Problem, make_policy
from stopwise.simulation.compiled import confidence_settings
from stopwise.simulation.engines import choose_engine
from stopwise.simulation.kernels.confidence import replications
from stopwise.simulation.kernels.confidence.bounds import looks_to_pass
from stopwise.simulation.kernels.patterns import make_tables
from stopwise.simulation.kernels.rules import upper_bound
from two_samples import assert_same_law

FAMILY_RATE = 1e-6
"""Chance that this file rejects a correct engine (a theorem: see two_samples.py)."""
COMPARISONS = 256
"""More than all comparisons made here; each gets the share FAMILY_RATE / COMPARISONS."""


def boundary_problem(count: int) -> Problem:
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


def share_of_looks_followed(problem: Problem, policy, horizon: int) -> float:
    """Which share of the deepest rounds `follow_last_pair` has taken."""
    taken = 0
    follow = vars(replications)["follow_last_pair"]

    def counting(*given):
        nonlocal taken
        counts = given[7]
        before = counts[-1]
        result = follow(*given)
        taken += counts[-1] - before
        return result

    table = np.zeros((1, problem.stage_count), dtype=np.int64)
    state = np.random.SeedSequence(1).generate_state(4, np.uint64)
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore", invalid="ignore"):
        patch.setattr(replications, "follow_last_pair", counting)
        replications.run_one.py_func(
            make_tables(problem, "independent"), np.array(problem.costs.thresholds),
            confidence_settings(policy), np.array([horizon]), state, np.random.default_rng(2),
            table,
        )  # fmt: skip
    return taken / int(table[0, -1])


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("algorithm", ["uss-ucb", "hanawal-2"])
def test_law_at_the_boundary(algorithm: str, count: int) -> None:
    """Against the printed algorithms, at rounds before and after the boundary is reached."""
    problem, alpha, n = boundary_problem(count), 0.3, 500
    grid = np.array([1000, 4000, 30_000])
    policy = make_policy(f"{algorithm}:alpha={alpha}")
    assert share_of_looks_followed(problem, policy, 30_000) > 0.3
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


def test_looks_to_pass_is_where_the_bound_reaches_the_threshold() -> None:
    for x, disagreed, scaled_log in ((0.13, 20.0, 3.0), (0.9, 0.0, 0.5), (0.02, 300.0, 10.0)):
        needed = looks_to_pass(x, disagreed, scaled_log)
        assert upper_bound(disagreed, needed, scaled_log) == pytest.approx(x, rel=1e-12)
        assert looks_to_pass(x, disagreed + 1, scaled_log) > needed
    assert looks_to_pass(0.0, 1.0, 1.0) == looks_to_pass(-0.1, 1.0, 1.0) == np.inf
