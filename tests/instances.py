"""The 15 instances of the paper: printed error rates and costs, calibrated disagreement rates."""

from __future__ import annotations

import numpy as np

from stopwise import Costs, Problem

ERROR_RATES = {
    "bsc": (0.3937, 0.2899, 0.1358),
    "pima": (0.3098, 0.233, 0.2278),
    "heart": (0.2929, 0.2025, 0.1483),
}
DISAGREEMENTS = {  # of stages 1-2, 1-3, 2-3
    "bsc": (0.225, 0.38, 0.385),
    "pima": (0.205, 0.205, 0.0155),
    "heart": (0.266, 0.26, 0.125),
}
COSTS = {
    "bsc": ((0.05, 0.285, 0.45), (0.05, 0.1, 0.53), (0.05, 0.3, 0.45), (0.05, 0.25, 0.29),
            (0.1, 0.2, 0.41)),
    "pima": ((0.05, 0.28, 0.45), (0.2, 0.25, 0.269), (0.05, 0.309, 0.45), (0.2, 0.25, 0.255),
             (0.05, 0.146, 0.3)),
    "heart": ((0.02, 0.32, 0.45), (0.2, 0.25, 0.395), (0.02, 0.34, 0.45), (0.2, 0.25, 0.3),
              (0.2, 0.25, 0.325)),
}  # fmt: skip
ROWS = {"bsc": 500, "pima": 768, "heart": 297}
NAMES = [f"{data}-{number}" for data in COSTS for number in range(1, 6)]


def instance(name: str, stream: str = "independent") -> Problem:
    """An instance such as "pima-2"; for a round-robin stream, with rows drawn once and for all."""
    data, _, number = name.partition("-")
    d12, d13, d23 = DISAGREEMENTS[data]
    problem = Problem.from_rates(
        ERROR_RATES[data],
        [[0, d12, d13], [d12, 0, d23], [d13, d23, 0]],
        Costs.from_cumulative(COSTS[data][int(number) - 1]),
    )
    if stream == "independent":
        return problem
    rows = np.random.default_rng(5).choice(len(problem.p), size=ROWS[data], p=problem.p)
    return problem.with_rows(rows)
