"""What the parts of a Thompson replication hand to each other, besides pairs and random numbers.

A part is handed what it needs one by one, and at most a few arrays tied together: numba counts the
references to every array of a tuple that is handed over, and for all that a replication has that
would take longer than to plan a block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import Pairs


class DepthReport(NamedTuple):
    """What a replication reports: how many rounds had each depth, up to every round of a grid.

    Attributes:
        grid: rounds to report at.
        counts: rounds of each depth so far.
        table: the counts at each round of the grid that is passed.
    """

    grid: NDArray[np.int64]
    counts: NDArray[np.int64]
    table: NDArray[np.int64]


class ShallowBounds(NamedTuple):
    """Lower bounds that hold for all rounds of a block.

    Attributes:
        tails: of pairs up to the depth limit.
        low: of the chance of every depth.
    """

    tails: Pairs
    low: NDArray[np.float64]
