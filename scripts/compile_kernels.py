"""Compile every kernel of the fast engine once, so that tests that run side by side need not.

python scripts/compile_kernels.py
"""

from __future__ import annotations

import importlib.util

import numpy as np

from stopwise import Costs, Problem, make_policy
from stopwise.policies import policy_names
from stopwise.simulation.compiled import has_kernel


def main() -> None:
    """Run every policy that has a kernel for a round, in both engines."""
    if importlib.util.find_spec("numba") is None:
        return
    from stopwise.simulation.fast import FastEngine
    from stopwise.simulation.replay_engine import replay_rows

    codes = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1]])
    problem = Problem.from_predictions(codes, codes[:, 2], Costs.from_cumulative((0.0, 0.1, 0.2)))
    for name in policy_names():
        policy = make_policy(name).for_horizon(len(codes))
        if has_kernel(policy) and name != "oracle":  # it needs to know a stage, and no kernel
            FastEngine(problem, policy, "independent").prepare()
            list(replay_rows(policy, codes, problem.costs))


if __name__ == "__main__":
    main()
