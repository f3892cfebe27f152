"""The reference engine: the interaction protocol of the paper, one round after the other."""

from __future__ import annotations

import numpy as np

from stopwise.evidence import Evidence
from stopwise.policies.base import Policy
from stopwise.problem import IntArray, Problem
from stopwise.simulation.streams import Stream, pattern_indices


def run_replication(
    problem: Problem,
    policy: Policy,
    grid: IntArray,
    stream: Stream,
    seed: np.random.SeedSequence,
) -> IntArray:
    """Run one replication (Algorithm 1 of the paper) and count the depths.

    The policy is handed the outputs of the stages that were called and nothing else; it has its own
    random numbers, so that what the stream draws never depends on the policy.

    Args:
        grid: rounds at which to report, increasing; the last is the horizon.

    Returns:
        A table: for every round of the grid, how often each stage was stopped at so far.

    >>> from stopwise import Costs, make_policy
    >>> costs = Costs.from_cumulative((0.0, 0.3))
    >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
    >>> seed = np.random.SeedSequence(1)
    >>> run_replication(problem, make_policy("fixed"), np.array([5, 10]), "independent", seed)
    array([[ 0,  5],
           [ 0, 10]])
    """
    stream_seed, policy_seed = seed.spawn(2)
    patterns = pattern_indices(problem, stream, np.random.default_rng(stream_seed))
    rng = np.random.default_rng(policy_seed)
    evidence = Evidence(problem.stage_count)
    outputs = [tuple(row) for row in problem.outputs.tolist()]
    counts = np.zeros(problem.stage_count, dtype=np.int64)
    table = np.zeros((len(grid), problem.stage_count), dtype=np.int64)
    round = 0
    for row, until in enumerate(grid.tolist()):
        while round < until:
            round += 1
            depth = policy.draw(evidence, round, problem.costs, rng)
            prefix = outputs[next(patterns)][: depth + 1]
            policy.record(evidence, round, prefix)
            counts[depth] += 1
        table[row] = counts
    return table
