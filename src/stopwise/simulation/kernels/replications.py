"""Replications one after the other, whichever family of rules runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import RandomState

F = TypeVar("F", bound=Callable[..., None])


def run_one(
    tables: Tables,
    thresholds: NDArray[np.float64],
    settings: Any,
    grid: NDArray[np.int64],
    state: RandomState,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> None:
    """One replication, by the function that `runs_settings` of this kind; compiled code only."""
    raise NotImplementedError


def runs_settings(kind: type) -> Callable[[F], F]:
    """Decorate the compiled function that runs a replication of rules with settings of this kind.

    numba picks it by the type of the settings when `run_many` is compiled for them.
    """

    def decorate(function: F) -> F:
        @overload(run_one, inline="never")
        def choose(  # type: ignore[no-untyped-def]
            tables, thresholds, settings, grid, state, rng, table
        ):
            if getattr(settings, "instance_class", None) is not kind:
                return None

            def run(tables, thresholds, settings, grid, state, rng, table):  # type: ignore[no-untyped-def]
                function(tables, thresholds, settings, grid, state, rng, table)

            return run

        return function

    return decorate


@njit(cache=True, nogil=True)
def run_many(
    tables: Tables,
    thresholds: NDArray[np.float64],
    settings: Any,
    grid: NDArray[np.int64],
    states: NDArray[np.uint64],
    rng: np.random.Generator,
    result: NDArray[np.int64],
) -> None:
    """All replications of a chunk, each with its own stream of uniforms."""
    for k in range(len(states)):
        run_one(tables, thresholds, settings, grid, states[k], rng, result[k])
