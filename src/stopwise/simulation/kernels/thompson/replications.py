"""Replications of the Thompson policies, exact in law, at a cost that grows with looks, not rounds.

Time goes in *blocks*. A block has a depth limit d and a budget of n rounds beyond stage one. Pairs
of stages up to d are only counted in it: whatever their outputs turn out to be, n observations can
move their tails no further than known bounds. Pairs that reach beyond d are followed exactly.
Together that bounds every depth's probability from below, and a round is one of three kinds:

- *shallow*: under the bound of a depth up to d. Many in a row are drawn in bulk.
- *deep*: under the bound of a depth beyond d. An ordinary round; the exact pairs are stepped.
- *unsure*: the rest. The counted pairs are evaluated and the depth is drawn in proportion to the
  true probability less its bound. Rare: blocks are cut so short that the bounds are tight.

A tempered rule counts every observation `temper` times (a whole number): as many steps of the
recurrences, and bounds over as many observations.

This is thinning, and exact. With d = 0 nothing needs bounds: a stop at the first stage teaches
nothing, and the number of such rounds in a row is geometric.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import new_pairs, refresh
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import RandomState
from stopwise.simulation.kernels.replications import runs_settings
from stopwise.simulation.kernels.thompson.blocks import run_block
from stopwise.simulation.kernels.thompson.looks import run_looks
from stopwise.simulation.kernels.thompson.parts import DepthReport, ShallowBounds
from stopwise.simulation.kernels.thompson.planning import plan_block
from stopwise.simulation.kernels.thompson.settings import ThompsonSettings
from stopwise.simulation.kernels.thompson.walks import depth_distribution

# Looks between two attempts at a block, doubled (up to 2^_MOST_PATIENCE) while they fail.
_PATIENCE = 32
_MOST_PATIENCE = 5


@runs_settings(ThompsonSettings)
@njit(cache=True, nogil=True, error_model="numpy")
def run_one(
    tables: Tables,
    thresholds: NDArray[np.float64],
    settings: ThompsonSettings,
    grid: NDArray[np.int64],
    state: RandomState,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> None:
    """One replication; `table` receives the depth counts at every round of the grid."""
    stages, horizon = len(thresholds), grid[-1]
    pairs = new_pairs(thresholds, settings.prior_disagreed, settings.prior_agreed)
    bounds = ShallowBounds(np.zeros_like(pairs), np.zeros(stages))
    chances = np.zeros(stages)
    report = DepthReport(grid, np.zeros(stages, dtype=np.int64), table)
    tried = np.full(stages, 64, dtype=np.int64)
    # Typed: a literal 0 would have the functions below compiled once more for that type alone.
    t = at = failed = horizon * 0
    while t < horizon:
        refresh(pairs)
        depth_distribution(pairs, pairs, 0, settings.walk, chances)
        limit, budget = plan_block(tables, settings, pairs, bounds, chances, horizon - t, tried)
        if budget > 0:
            failed = 0
            t, at = run_block(
                tables, settings, pairs, bounds, chances, report, state, rng, limit, budget, t, at
            )
        else:
            looks = _PATIENCE << min(failed, _MOST_PATIENCE)
            failed += 1
            t, at = run_looks(tables, settings, pairs, report, state, looks, t, at)
