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

RandomState = NDArray[np.uint64]
# The same four words held as numbers: a loop keeps these in registers, and an array in memory.
Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

_ULP = 2.0**-53


@njit(cache=True, nogil=True)
def words_of(state: RandomState) -> Words:
    """The words of a state, to be drawn from; `keep_words` puts them back."""
    return state[0], state[1], state[2], state[3]


@njit(cache=True, nogil=True)
def keep_words(state: RandomState, words: Words) -> None:
    """What was drawn from the words is drawn from the state."""
    state[0], state[1], state[2], state[3] = words


@njit(cache=True, nogil=True, inline="always")
def next_bits(words: Words) -> tuple[Words, np.uint64]:
    """64 random bits, by xoshiro256++."""
    s0, s1, s2, s3 = words
    total = s0 + s3
    bits = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return (s0, s1, s2, s3), bits


@njit(cache=True, nogil=True, inline="always")
def next_uniform(words: Words) -> tuple[Words, float]:
    """A number in (0, 1), from the upper 53 bits; never 0, so that it has a log."""
    words, bits = next_bits(words)
    return words, ((bits >> np.uint64(11)) + 0.5) * _ULP


@njit(cache=True, nogil=True, inline="always")
def uniform(state: RandomState) -> float:
    """A number in (0, 1), from a state in memory."""
    words, u = next_uniform((state[0], state[1], state[2], state[3]))
    state[0], state[1], state[2], state[3] = words
    return u


def _layers(count: int, tail: float) -> NDArray[np.float64]:
    """Where the layers of the ziggurat under exp(-x) end, all of one area; the tail beyond too.

    The first entry is the width of the box that stands for the lowest layer and the tail.
    """
    area = (tail + 1.0) * math.exp(-tail)
    ends = [area * math.exp(tail), tail]
    while len(ends) < count:
        ends.append(-math.log(area / ends[-1] + math.exp(-ends[-1])))
    return np.array([*ends, 0.0])


# With 256 layers the tail that makes the uppermost one end at 0 is this one (Marsaglia, Tsang).
_TAIL = 7.69711747013104972
_ENDS = _layers(256, _TAIL)
_HEIGHTS = np.exp(-_ENDS)


@njit(cache=True, nogil=True, inline="always")
def next_exponential(words: Words) -> tuple[Words, float]:
    """An exponential number by the ziggurat: in 98 of 100 cases a product and a comparison."""
    words, bits = next_bits(words)
    layer = bits & np.uint64(255)
    x = ((bits >> np.uint64(11)) + 0.5) * _ULP * _ENDS[layer]
    if x < _ENDS[layer + np.uint64(1)]:
        return words, x
    return _at_an_edge(words, layer, x)


@njit(cache=True, nogil=True)
def _at_an_edge(words: Words, layer: np.uint64, x: float) -> tuple[Words, float]:
    """The rest of the ziggurat: x lies where its layer is only partly under the curve."""
    passed = 0.0
    while x >= _ENDS[layer + np.uint64(1)]:
        if layer == 0:
            passed += _TAIL  # the tail of an exponential is an exponential
        else:
            words, u = next_uniform(words)
            low, high = _HEIGHTS[layer], _HEIGHTS[layer + np.uint64(1)]
            if low + u * (high - low) < math.exp(-x):
                break
        words, bits = next_bits(words)
        layer = bits & np.uint64(255)
        x = ((bits >> np.uint64(11)) + 0.5) * _ULP * _ENDS[layer]
    return words, passed + x


# A geometric number is an exponential one times -1 / log(1 - p), rounded down. The factor is read
# from a table, for the next larger of 64 values in every octave down to 2^-60: the upper bits of p.
_CUT = np.uint64(46)
_LEAST = 2.0**-60


def _scales() -> tuple[np.uint64, NDArray[np.float64]]:
    first, last = np.array([_LEAST, 1.0]).view(np.uint64) >> _CUT
    above = (np.arange(first + 1, last + 1, dtype=np.uint64) << _CUT).view(np.float64)
    # After the last of these comes 1 itself: certain, so no wait at all.
    return first, np.append(-1.0 / np.log1p(-above[:-1]), [0.0, 0.0])


_FIRST, _SCALES = _scales()


@njit(cache=True, nogil=True, inline="always")
def skip(words: Words, p: float, most: int) -> tuple[Words, int, float]:
    """Geometric: how many rounds pass before one of probability p, at most `most`.

    By thinning: candidates come at a rate q a little above p, and one is taken if a uniform number
    times q is below p. That product, then uniform on (0, p), is returned too.
    """
    cell = np.float64(min(max(p, _LEAST), 1.0)).view(np.uint64) >> _CUT
    q = min(np.uint64((cell + np.uint64(1)) << _CUT).view(np.float64), 1.0)
    scale = _SCALES[cell - _FIRST]
    passed = 0
    while True:
        words, wait = next_exponential(words)
        words, u = next_uniform(words)
        passed += int(min(wait * scale, float(most - passed)))
        if u * q < p or passed >= most:
            return words, passed, u * q
        passed += 1


@njit(cache=True, nogil=True, inline="always")
def failures_before_success(state: RandomState, p: float, most: int) -> int:
    """The same, from a state in memory."""
    words, passed, _ = skip((state[0], state[1], state[2], state[3]), p, most)
    state[0], state[1], state[2], state[3] = words
    return passed


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


@njit(cache=True, nogil=True)
def draw(weights: NDArray[np.float64], u: float) -> int:
    """The index that a uniform number falls on, in proportion to the weights."""
    left = u * weights.sum()
    chosen = 0
    for k in range(len(weights)):
        if weights[k] > 0.0:
            chosen = k
            if left < weights[k]:
                break
            left -= weights[k]
    return chosen
