"""Which engine runs a simulation. An engine turns a seed into depth counts."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

import numpy as np

from stopwise.checks import StopwiseError, one_of
from stopwise.lazy import missing
from stopwise.policies.base import Policy
from stopwise.problem import IntArray, Problem
from stopwise.simulation.compiled import has_kernel
from stopwise.simulation.reference import run_replication
from stopwise.simulation.streams import Stream

EngineName = Literal["auto", "fast", "reference"]


class Engine(Protocol):
    """A problem, a policy and a stream, ready to run replications."""

    @property
    def name(self) -> str:
        """What results say they were made with."""

    @property
    def threads(self) -> bool:
        """Whether workers should be threads (it frees the interpreter) or processes."""

    @property
    def chunk(self) -> int:
        """Replications run together. Fixed, so that results do not depend on the workers."""

    def prepare(self) -> None:
        """Do once what all chunks need."""

    def depth_counts(self, grid: IntArray, seed: int, indices: range) -> IntArray:
        """Depth counts of replications x grid x stages."""


@dataclass(frozen=True)
class ReferenceEngine:
    """The literal loop, for any policy; every replication has its own child of the seed."""

    problem: Problem
    policy: Policy
    stream: Stream
    name: str = field(default="reference", init=False)
    threads: bool = field(default=False, init=False)
    chunk: int = field(default=16, init=False)

    def prepare(self) -> None:
        """Nothing to do."""

    def depth_counts(self, grid: IntArray, seed: int, indices: range) -> IntArray:
        """Depth counts of replications x grid x stages."""
        tables = [
            run_replication(
                self.problem,
                self.policy,
                grid,
                self.stream,
                np.random.SeedSequence(seed, spawn_key=(index,)),
            )
            for index in indices
        ]
        return np.stack(tables)


def check_engine(name: str) -> EngineName:
    """Refuse an unknown engine.

    >>> check_engine("fast")
    'fast'
    """
    return one_of("engine", name, get_args(EngineName))


def choose_engine(name: EngineName, problem: Problem, policy: Policy, stream: Stream) -> Engine:
    """The engine of that name; "auto" takes the fast one where it knows the policy.

    >>> from stopwise import Costs, make_policy
    >>> costs = Costs.from_cumulative((0.0, 0.1))
    >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
    >>> choose_engine("reference", problem, make_policy("uss-ts"), "independent").name
    'reference'
    """
    if check_engine(name) == "reference":
        return ReferenceEngine(problem, policy, stream)
    if not has_kernel(policy):
        if name == "fast":
            raise StopwiseError(
                f"engine: the fast one has no kernel for {policy.name}; use auto or reference,"
                " or give the policy a compiled_rule"
            )
        return ReferenceEngine(problem, policy, stream)
    if importlib.util.find_spec("numba") is None:
        if name == "fast":
            raise missing("engine: the fast one", "numba")
        print(
            f"stopwise: {missing('the fast engine', 'numba')};"
            " until then this runs on the slow reference engine",
            file=sys.stderr,
        )
        return ReferenceEngine(problem, policy, stream)
    from stopwise.simulation.fast import FastEngine

    return FastEngine(problem, policy, stream)
