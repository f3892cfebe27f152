"""Replications of the rules that decide by an elimination walk: USS-VOI, its anytime form, IMED.

Given the evidence and the clock the decision is certain. A stop at the first stage teaches nothing,
so it lasts until the clock alone changes it: never (known horizon), or at a round that can be
solved for (anytime). A stop at a deeper stage adds evidence; but bounds show that for a number of
rounds, whatever the outputs, the walk ends where it ends now, and that number grows with the
evidence. What is left are the rounds that matter.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import STEPS, Pairs, new_pairs
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import RandomState
from stopwise.simulation.kernels.replications import runs_settings
from stopwise.simulation.kernels.stream import next_class, report_passed
from stopwise.simulation.kernels.value.observing import count_bulk, count_switches, observe
from stopwise.simulation.kernels.value.settings import (
    VOI,
    ValueSettings,
    moment_of,
    span_of,
)
from stopwise.simulation.kernels.value.walk import lasting, stays, walk
from stopwise.simulation.kernels.value.worth import Known, no_answers

# A bulk costs about as much as this many ordinary rounds, for every stage that it goes beyond.
_BULK_COST = 16
# Rounds between two attempts at a bulk, doubled (up to 2^_MOST_PATIENCE) while they fail.
_PATIENCE = 16
_MOST_PATIENCE = 4


@njit(cache=True, nogil=True)
def planned(settings: ValueSettings, t: int, end: int, horizon: int) -> tuple[int, int, int]:
    """(m, until, end): how many rounds a look in round t + 1 may pay for, and while that holds.

    A horizon that has passed was wrong: it is doubled.
    """
    if settings.rule != VOI:
        return t + 1 + settings.rounds, horizon, end
    while end < t + 1:
        end *= 2
    return end - t, min(end, horizon), end


@njit(cache=True, nogil=True)
def _sure_rounds(
    pairs: Pairs,
    known: Known,
    settings: ValueSettings,
    depth: int,
    m: int,
    most: int,
    cost: int,
    switches: NDArray[np.float64],
) -> int:
    """For how many rounds, up to `most`, it surely stops at `depth`; 0 if not worth a bulk."""
    while most > cost:
        span = span_of(settings, m, most, switches[0], switches[1], depth)
        if stays(pairs, known, depth, most, settings, span):
            return most
        most //= 4
    return 0 * most


@runs_settings(ValueSettings)
@njit(cache=True, nogil=True, error_model="numpy")
def run_one(
    tables: Tables,
    thresholds: NDArray[np.float64],
    settings: ValueSettings,
    grid: NDArray[np.int64],
    state: RandomState,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> None:
    """One replication; `table` receives the depth counts at every round of the grid."""
    outputs, rows, cumulative = tables.outputs, tables.rows, tables.cumulative
    stages, horizon = len(thresholds), grid[-1]
    pairs = new_pairs(thresholds, 1.0, 1.0)
    pairs[:, :, STEPS] = 0.0
    known = no_answers(stages)
    visited = np.zeros(stages, dtype=np.int64)
    counts = np.zeros(stages, dtype=np.int64)
    switches = np.zeros(2)
    tried, failed, wait = 16, 0, _PATIENCE
    t, at, end = 0, 0, settings.rounds
    while t < horizon:
        m, until, end = planned(settings, t, end, horizon)
        moment = moment_of(settings, m, switches)
        depth = walk(pairs, known, settings, moment, visited)
        rounds = 1
        if depth == 0:
            rounds = lasting(pairs, settings, moment, until - t)
        elif wait > 0:
            wait -= 1
        else:
            cost = _BULK_COST * depth + tables.prefix_start[depth + 1] - tables.prefix_start[depth]
            most = min(tried, until - t)
            sure = _sure_rounds(pairs, known, settings, depth, m, most, cost, switches)
            if sure > 0:
                rounds = sure
                tried, failed = 2 * sure, 0
            else:
                tried = max(16, 2 * cost)
                wait = _PATIENCE << min(failed, _MOST_PATIENCE)
                failed += 1
        if depth > 0 and rounds == 1:
            k = next_class(rows, cumulative, t, state)
            observe(pairs, outputs, k, depth)
            count_switches(outputs, k, depth, 1, switches)
        elif depth > 0:
            count_bulk(tables, pairs, rng, depth, t, rounds, switches)
        counts[depth] += rounds
        t += rounds
        if t >= grid[at]:
            at = report_passed(grid, at, t, counts, table, depth)
