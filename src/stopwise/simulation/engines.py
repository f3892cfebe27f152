"""Which engine runs a simulation. An engine turns (problem, policy, seed) into depth counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stopwise.checks import fail
from stopwise.policies.base import Policy
from stopwise.problem import IntArray, Problem
from stopwise.simulation.reference import run_replication
from stopwise.simulation.results import Chunk
from stopwise.simulation.streams import Stream

CHUNK = 32
"""Replications reduced together. Fixed, so that sums do not depend on the number of workers."""

RunChunk = Callable[[Problem, Policy, IntArray, Stream, int, range], Chunk]


@dataclass(frozen=True)
class Engine:
    """A way to run replications, and whether its workers should be threads or processes."""

    name: str
    run_chunk: RunChunk
    threads: bool


def run_reference_chunk(
    problem: Problem, policy: Policy, grid: IntArray, stream: Stream, seed: int, indices: range
) -> Chunk:
    """Run the replications with these indices, each with its own child of the seed."""
    tables = [
        run_replication(
            problem, policy, grid, stream, np.random.SeedSequence(seed, spawn_key=(index,))
        )
        for index in indices
    ]
    return Chunk.of(np.stack(tables), problem.gaps)


REFERENCE = Engine("reference", run_reference_chunk, threads=False)


def choose_engine(name: str, problem: Problem, policy: Policy) -> Engine:
    """The engine of that name; "auto" takes the fastest that knows the policy.

    >>> from stopwise import Costs, make_policy
    >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], Costs((0.0, 0.1)))
    >>> choose_engine("reference", problem, make_policy("uss-ts")).name
    'reference'
    """
    if name not in ("auto", "reference"):
        raise fail("engine", name, "auto or reference")
    return REFERENCE
