"""Random numbers of the compiled loops.

The loop over looks wants a uniform number in a nanosecond or two; a call through NumPy's bit
generator costs more than the rest of a look. So uniforms come from xoshiro256++ (Blackman, Vigna),
its state filled by a `numpy.random.SeedSequence`. Bulk draws (binomials) take a NumPy Generator.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

State = NDArray[np.uint64]

_ULP = 2.0**-53


@njit(cache=True, nogil=True, inline="always")
def uniform(state: State) -> float:
    """A number in (0, 1), from the upper 53 bits of xoshiro256++; never 0, so that it has a log."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return ((result >> np.uint64(11)) + 0.5) * _ULP


@njit(cache=True, nogil=True, inline="always")
def failures_before_success(state: State, p: float, most: int) -> int:
    """Geometric: how many rounds pass before one of probability p; at most `most`."""
    if p > 0.15:
        # A few uniforms are sooner drawn than two logarithms taken.
        passed = 0
        while passed < most and uniform(state) >= p:
            passed += 1
        return passed
    if p <= 0.0:
        return most
    wait = math.log(uniform(state)) / math.log1p(-p)
    return most if wait >= most else int(wait)


@njit(cache=True, nogil=True)
def binomial(rng: np.random.Generator, n: int, p: float) -> int:
    """Binomial(n, p), with the certain cases settled without a draw."""
    if n <= 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    return rng.binomial(n, p)


@njit(cache=True, nogil=True)
def split(
    rng: np.random.Generator, total: int, weights: NDArray[np.float64], out: NDArray[np.int64]
) -> None:
    """Multinomial: deal `total` out over the weights (they need not sum to one), into `out`."""
    rest = weights.sum()
    for k in range(len(weights)):
        if total == 0:
            out[k] = 0
            continue
        if k == len(weights) - 1 or weights[k] >= rest:
            share = total
        else:
            share = binomial(rng, total, weights[k] / rest)
        out[k] = share
        total -= share
        rest -= weights[k]
