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
    from stopwise.simulation.kernels.confidence.bounds import Rule
    from stopwise.simulation.kernels.patterns import Tables

# (tables, thresholds, grid, uniform states, generator, result); fills the result.
Kernel = Callable[[Any, Any, IntArray, Any, Any, IntArray], None]


@lru_cache(maxsize=64)
def shortcut(policy: Policy) -> Kernel:
    """The compiled loop of a policy that has one (see `has_shortcut`).

    Remembered, so that a user's `compiled_rule` is compiled once and not for every chunk.
    """
    if _is_built_in(policy):
        return _BUILT_IN[type(policy)](policy)
    from stopwise.simulation.kernels import plain

    rule = policy.compiled_rule()
    assert rule is not None, "has_shortcut said so"
    return lambda tables, x, grid, states, rng, result: plain.run_many(
        tables, x, rule, grid, states, result
    )


def has_shortcut(policy: Policy) -> bool:
    """Whether the fast engine knows the policy; loads no compiler to find out.

    >>> has_shortcut(UssTs())
    True
    """
    return _is_built_in(policy) or policy.compiled_rule() is not None


def _is_built_in(policy: Policy) -> bool:
    """The type must match exactly, since a subclass may have changed the rule.

    The recurrences step by whole observations, so counts times a fraction have no shortcut.
    """
    return type(policy) in _BUILT_IN and float(getattr(policy, "temper", 1)).is_integer()


def thompson_settings(policy: UssTs | UssTsJump) -> tuple[float, float, int, int]:
    """What the Thompson kernels need to know of a policy: both priors, the walk, the temper."""
    from stopwise.simulation.kernels.thompson import walks

    a, b = float(policy.prior_disagreed), float(policy.prior_agreed)
    if isinstance(policy, UssTsJump):
        return a, b, walks.JUMP_WALK, int(policy.temper)
    return a, b, walks.STEP_WALK, 1


def _thompson(policy: Any) -> Kernel:
    from stopwise.simulation.kernels.thompson import replications

    settings = thompson_settings(policy)
    return lambda tables, x, grid, states, rng, result: replications.run_many(
        tables, x, *settings, grid, states, rng, result
    )


def _literal(policy: Any) -> Kernel:
    from stopwise.simulation.kernels.thompson import literal

    a, b = policy.prior_disagreed, policy.prior_agreed
    return lambda tables, x, grid, states, rng, result: literal.run_many(
        tables, x, a, b, grid, states, rng, result
    )


def confidence_rule(policy: UssUcb | Hanawal2) -> Rule:
    """What the kernel of the confidence-bound rules needs to know of a policy."""
    from stopwise.simulation.kernels.confidence.bounds import Rule

    ucb = isinstance(policy, UssUcb)
    return Rule(policy.alpha, two_sided=ucb, strict=ucb, first_counts_last_only=not ucb)


def _confidence(policy: Any) -> Kernel:
    from stopwise.simulation.kernels.confidence import replications

    rule = confidence_rule(policy)
    return lambda tables, x, grid, states, rng, result: replications.run_many(
        tables, x, rule, grid, states, rng, result
    )


def value_settings(policy: UssVoi | UssVoiAnytime | Imed) -> tuple[int, float, float, int]:
    """What the kernels of elimination walks need to know of a policy; see `worth`."""
    from stopwise.simulation.kernels.value import worth

    if isinstance(policy, UssVoiAnytime):
        return worth.VOI_ANYTIME, float(policy.kappa), float(policy.rho0), policy.head_start
    assert policy.horizon is not None, "for_horizon was called"
    if isinstance(policy, UssVoi):
        return worth.VOI, float(policy.kappa), float(policy.rho0), policy.horizon
    return worth.IMED, math.log(policy.horizon) - policy.margin, 0.0, policy.horizon


def _value(policy: Any) -> Kernel:
    from stopwise.simulation.kernels.value import replications

    settings = value_settings(policy)
    return lambda tables, x, grid, states, rng, result: replications.run_many(
        tables, x, *settings, grid, states, rng, result
    )


def _always(policy: Any) -> Kernel:
    """A rule that has decided needs no rounds, only the grid."""
    stage = policy.stage

    def fill(tables: Any, x: Any, grid: IntArray, states: Any, rng: Any, result: IntArray) -> None:
        result[:, :, stage] = grid

    return fill


_BUILT_IN: dict[type[Policy], Callable[[Any], Kernel]] = {
    FixedStage: _always,
    Oracle: _always,
    UssTs: _thompson,
    UssTsJump: _thompson,
    UssTsTempered: _thompson,
    UssTsLiteral: _literal,
    UssUcb: _confidence,
    Hanawal2: _confidence,
    UssVoi: _value,
    UssVoiAnytime: _value,
    Imed: _value,
}


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
        """Depth counts of replications x grid x stages."""
        result = np.zeros((len(indices), len(grid), self.problem.stage_count), dtype=np.int64)
        seeds = np.random.SeedSequence(seed, spawn_key=(indices.start,))
        bulk_seed, uniform_seed = seeds.spawn(2)
        states = uniform_seed.generate_state(4 * len(indices), np.uint64).reshape(-1, 4)
        shortcut(self.policy)(
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
