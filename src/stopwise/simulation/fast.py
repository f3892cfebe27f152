"""The fast engine: compiled, exact in law, at a cost that grows with looks and not with rounds."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stopwise.policies.base import Policy
from stopwise.policies.fixed import FixedStage
from stopwise.policies.hanawal2 import Hanawal2
from stopwise.policies.imed import Imed
from stopwise.policies.oracle import Oracle
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump, UssTsTempered
from stopwise.policies.uss_ts_literal import UssTsLiteral
from stopwise.policies.uss_ucb import UssUcb
from stopwise.policies.voi import UssVoi, UssVoiAnytime
from stopwise.problem import IntArray, Problem
from stopwise.simulation.streams import Stream

if TYPE_CHECKING:
    from stopwise.simulation.kernels.tables import Tables

# (tables, thresholds, grid, uniform states, generator, result); fills the result.
Kernel = Callable[..., None]


@lru_cache(maxsize=64)
def shortcut(policy: Policy) -> Callable[[Any, Any, IntArray, Any, Any, IntArray], None] | None:
    """The compiled loop of a policy, or None where there is none.

    The type must match exactly: a subclass may have changed the rule. Remembered, so that a user's
    `compiled_rule` is compiled once and not for every chunk.
    """
    kind = type(policy)
    if kind is FixedStage or kind is Oracle:
        return _always(policy)
    if kind is UssTs:
        from stopwise.simulation.kernels import thompson, walking

        a, b = policy.prior_disagreed, policy.prior_agreed  # type: ignore[attr-defined]
        return lambda tables, x, grid, states, rng, result: thompson.run_many(
            tables, x, a, b, walking.STEP_WALK, 1, grid, states, rng, result
        )
    if isinstance(policy, UssTsJump) and _is_jump(policy):
        from stopwise.simulation.kernels import thompson, walking

        a, b, temper = policy.prior_disagreed, policy.prior_agreed, int(policy.temper)
        return lambda tables, x, grid, states, rng, result: thompson.run_many(
            tables, x, a, b, walking.JUMP_WALK, temper, grid, states, rng, result
        )
    if kind is UssVoi or kind is UssVoiAnytime or kind is Imed:
        return _eliminating(policy)
    if kind is UssTsLiteral:
        from stopwise.simulation.kernels import literal

        a, b = policy.prior_disagreed, policy.prior_agreed  # type: ignore[attr-defined]
        return lambda tables, x, grid, states, rng, result: literal.run_many(
            tables, x, a, b, grid, states, rng, result
        )
    if kind is UssUcb or kind is Hanawal2:
        from stopwise.simulation.kernels import clock

        alpha, ucb = policy.alpha, kind is UssUcb  # type: ignore[attr-defined]
        return lambda tables, x, grid, states, rng, result: clock.run_many(
            tables, x, alpha, ucb, ucb, not ucb, grid, states, rng, result
        )
    rule = policy.compiled_rule()
    if rule is not None:
        from stopwise.simulation.kernels import compiled

        return lambda tables, x, grid, states, rng, result: compiled.run_many(
            tables, x, rule, grid, states, result
        )
    return None


def _is_jump(policy: Policy) -> bool:
    """Recurrences step by whole observations, so a fraction of one has no shortcut."""
    return type(policy) in (UssTsJump, UssTsTempered) and float(policy.temper).is_integer()  # type: ignore[attr-defined]


def _eliminating(policy: Policy) -> Kernel:
    from stopwise.simulation.kernels import elimination, worth

    if isinstance(policy, Imed):
        assert policy.horizon is not None, "simulate tells the horizon"
        most = math.log(policy.horizon) - policy.margin
        rule, knob, rho0, told = worth.IMED, most, 0.0, policy.horizon
    elif isinstance(policy, UssVoi):
        assert policy.horizon is not None, "simulate tells the horizon"
        rule, knob, rho0, told = worth.VOI, policy.kappa, policy.rho0, policy.horizon
    else:
        assert isinstance(policy, UssVoiAnytime)
        rule, knob, rho0, told = (
            worth.VOI_ANYTIME, policy.kappa, policy.rho0, policy.head_start,
        )  # fmt: skip
    return lambda tables, x, grid, states, rng, result: elimination.run_many(
        tables, x, rule, knob, rho0, told, grid, states, rng, result
    )


def _always(policy: Policy) -> Kernel:
    """A rule that has decided needs no rounds, only the grid."""
    stage = policy.stage  # type: ignore[attr-defined]

    def fill(tables: Any, x: Any, grid: IntArray, states: Any, rng: Any, result: IntArray) -> None:
        result[:, :, stage] = grid

    return fill


def has_shortcut(policy: Policy) -> bool:
    """Whether the fast engine knows the policy; loads no compiler to find out.

    >>> has_shortcut(UssTs())
    True
    """
    known = (
        FixedStage, Oracle, UssTs, UssTsLiteral, UssUcb, Hanawal2, UssVoi, UssVoiAnytime, Imed,
    )  # fmt: skip
    return type(policy) in known or _is_jump(policy) or policy.compiled_rule() is not None


@dataclass(frozen=True)
class FastEngine:
    """Runs replications in chunks; the seed of a chunk depends on nothing but its place.

    Uniforms of replication k come from words 4k to 4k+3 of the seed sequence; bulk draws from one
    generator for every chunk, whose size is fixed, so that results do not depend on the workers.
    """

    problem: Problem
    policy: Policy
    stream: Stream
    name: str = field(default="fast", init=False)
    threads: bool = field(default=True, init=False)
    chunk: int = field(default=64, init=False)

    @cached_property
    def _tables(self) -> Tables:
        from stopwise.simulation.kernels.tables import make_tables

        return make_tables(self.problem, self.stream)

    def depth_counts(self, grid: IntArray, seed: int, indices: range) -> IntArray:
        """Depth counts of replications x grid x stages."""
        result = np.zeros((len(indices), len(grid), self.problem.count), dtype=np.int64)
        seeds = np.random.SeedSequence(seed, spawn_key=(indices.start,))
        bulk_seed, uniform_seed = seeds.spawn(2)
        states = uniform_seed.generate_state(4 * len(indices), np.uint64).reshape(-1, 4)
        kernel = shortcut(self.policy)
        assert kernel is not None
        kernel(
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
