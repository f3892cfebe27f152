"""What the kernels of the elimination walks know of a policy, and of the moment it decides in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

VOI = 0
VOI_ANYTIME = 1
IMED = 2


class ValueSettings(NamedTuple):
    """The settings of USS-VOI, its anytime form, or IMED.

    Attributes:
        rule: which of the three.
        kappa: of USS-VOI, what a look must promise for its cost.
        rho0: of USS-VOI, what an unneeded look costs beyond its margin at the start.
        most_index: of IMED, the index up to which a look is worth it.
        rounds: the horizon, or the head start of the anytime form.
    """

    rule: int
    kappa: float
    rho0: float
    most_index: float
    rounds: int


class Moment(NamedTuple):
    """What a decision depends on besides the pairs.

    Attributes:
        m: how many rounds a look may pay for.
        rho: what an unneeded look costs beyond its margin, as a share of the disagreement.
    """

    m: float
    rho: float


class Span(NamedTuple):
    """Bounds on the moments of several rounds."""

    least_m: float
    most_m: float
    least_rho: float
    most_rho: float


@njit(cache=True, nogil=True, inline="always")
def moment_of(settings: ValueSettings, m: int, switches: NDArray[np.float64]) -> Moment:
    """The moment of a round; `switches` is as in `value/observing.py`."""
    return Moment(float(m), settings.rho0 + switches[1] / (switches[0] + 2.0))


@njit(cache=True, nogil=True)
def span_of(
    settings: ValueSettings, m: int, rounds: int, switched: float, twice: float, depth: int
) -> Span:
    """The moments of the next rounds, if all stop at `depth`, whatever their outputs are.

    Only rounds of three or more answers count switches.
    """
    later = m + rounds if settings.rule == VOI_ANYTIME else m - rounds
    more = float(rounds) if depth >= 2 else 0.0
    return Span(
        float(min(m, later)),
        float(max(m, later)),
        settings.rho0 + twice / (switched + 2.0 + more),
        settings.rho0 + (twice + more) / (switched + 2.0 + more),
    )
