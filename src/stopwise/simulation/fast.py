"""The fast engine: compiled, exact in law, at a cost that grows with looks and not with rounds."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stopwise.policies.base import Policy
from stopwise.policies.uss_ts_literal import UssTsLiteral
from stopwise.problem import IntArray, Problem
from stopwise.simulation.compiled import (
    SETTINGS_OF,
    confidence_settings,
    loop_of,
    thompson_settings,
)
from stopwise.simulation.streams import Stream

if TYPE_CHECKING:
    from stopwise.simulation.kernels.patterns import Tables

# (tables, thresholds, grid, uniform states, generator, result); fills the result.
Kernel = Callable[[Any, Any, IntArray, Any, Any, IntArray], None]


@lru_cache(maxsize=64)
def kernel_of(policy: Policy) -> Kernel:
    """The compiled loop of a policy that has one (see `has_kernel`).

    Remembered, so that a user's `compiled_rule` is compiled once and not for every chunk.
    """
    return loop_of(policy, decided=_always, built_in=_built_in, own=_own)


def _own(rule: Any) -> Kernel:
    from stopwise.simulation.kernels import plain

    return lambda tables, thresholds, grid, states, rng, result: plain.run_many(
        tables, thresholds, rule, grid, states, result
    )


def _built_in(policy: Policy) -> Kernel:
    from stopwise.simulation.kernels import replications

    settings = _settings(policy)
    return lambda tables, thresholds, grid, states, rng, result: replications.run_many(
        tables, thresholds, settings, grid, states, rng, result
    )


def _settings(policy: Policy) -> Any:
    """The settings for `run_many`; the family that runs them is imported, so that it is known."""
    if type(policy) is UssTsLiteral:
        from stopwise.simulation.kernels.thompson import literal

        return literal.LiteralSettings(policy.prior_disagreed, policy.prior_agreed)
    make = SETTINGS_OF[type(policy)]
    family = {thompson_settings: "thompson", confidence_settings: "confidence"}.get(make, "value")
    importlib.import_module(f"stopwise.simulation.kernels.{family}.replications")
    return make(policy)


def _always(policy: Any) -> Kernel:
    """A rule that has decided needs no rounds, only the grid."""
    stage = policy.stage

    def fill(
        tables: Any, thresholds: Any, grid: IntArray, states: Any, rng: Any, result: IntArray
    ) -> None:
        result[:, :, stage] = grid

    return fill


@dataclass(frozen=True)
class FastEngine:
    """Runs replications in chunks; the seed of a chunk depends on nothing but its place.

    Each replication of a chunk has its own stream of uniforms; bulk draws come from one generator
    for the chunk. The size of chunks is fixed, so results do not depend on the workers.
    """

    problem: Problem
    policy: Policy
    stream: Stream
    name: str = field(default="fast", init=False)
    threads: bool = field(default=True, init=False)
    chunk: int = field(default=64, init=False)

    @cached_property
    def _tables(self) -> Tables:
        from stopwise.simulation.kernels.patterns import make_tables

        return make_tables(self.problem, self.stream)

    def depth_counts(self, grid: IntArray, seed: int, indices: range) -> IntArray:
        """Depth counts of replications thresholds grid thresholds stages."""
        result = np.zeros((len(indices), len(grid), self.problem.stage_count), dtype=np.int64)
        seeds = np.random.SeedSequence(seed, spawn_key=(indices.start,))
        bulk_seed, uniform_seed = seeds.spawn(2)
        states = uniform_seed.generate_state(4 * len(indices), np.uint64).reshape(-1, 4)
        kernel_of(self.policy)(
            self._tables,
            np.array(self.problem.costs.thresholds),
            grid,
            states,
            np.random.default_rng(bulk_seed),
            result,
        )
        return result

    def prepare(self) -> None:
        """Compile (or load from the cache) before the clock runs, and say so if it takes long."""
        notice = threading.Timer(
            1.5,
            lambda: print(
                "stopwise: compiling the engine for this machine (once; later runs load it)",
                file=sys.stderr,
                flush=True,
            ),
        )
        notice.daemon = True
        notice.start()
        try:
            self.depth_counts(np.array([1], dtype=np.int64), 0, range(1))
        finally:
            notice.cancel()
