"""The state of all pairs in a Thompson loop: counts, and the tails of their Beta posteriors.

One array, `pairs[i, j]`, eight numbers (one cache line) for every pair i < j.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.beta import tails, upper_tail_bound

Pairs = NDArray[np.float64]

X = 0  # threshold C_j - C_i, clipped to [0, 1]
A = 1  # prior and seen disagreements
B = 2  # prior and seen agreements
BELOW = 3  # P(sample < x): the Beta distribution function I_x(a, b)
ABOVE = 4  # P(sample >= x): its complement J
WEIGHT = 5  # w = x^a (1-x)^b / B(a, b), what the recurrences step by
FLOOR = 6  # re-anchor once the smaller tail leaves the span from this to _SPAN times it ...
STEPS = 7  # ... or after this many more steps; 0 says that the tails are stale

# A tail is carried from look to look by adding and subtracting; every step may lose an ulp, and
# what is lost weighs more once the tail has shrunk. So the smaller tail may fall by a factor of 64
# between two anchors; and it may rise only as much, since the ulps lost up there would stay when it
# falls again, or be those of the other tail when the two change places. The relative error then
# stays below 512 ulps times 64^2 < 1e-9 (tests measure it) down to `_NEGLIGIBLE`, below which only
# the absolute size is kept: such a chance does not come true within 10^9 rounds.
_ANCHOR_AFTER = 512.0
_SPAN = 4096.0
_NEGLIGIBLE = 1e-17


@njit(cache=True, nogil=True)
def new_pairs(
    thresholds: NDArray[np.float64], prior_disagreed: float, prior_agreed: float
) -> Pairs:
    """Nothing seen yet."""
    stages = len(thresholds)
    pairs = np.zeros((stages, stages, 8))
    for j in range(1, stages):
        for i in range(j):
            pairs[i, j, X] = min(max(thresholds[i, j], 0.0), 1.0)
            pairs[i, j, A] = prior_disagreed
            pairs[i, j, B] = prior_agreed
            anchor(pairs, i, j)
    return pairs


@njit(cache=True, nogil=True)
def anchor(pairs: Pairs, i: int, j: int) -> None:
    """Evaluate the tails of one pair directly."""
    below, above, weight = tails(pairs[i, j, A], pairs[i, j, B], pairs[i, j, X])
    smaller = max(min(below, above), _NEGLIGIBLE)
    pairs[i, j, BELOW] = below
    pairs[i, j, ABOVE] = above
    pairs[i, j, WEIGHT] = weight
    pairs[i, j, FLOOR] = smaller / 64.0
    pairs[i, j, STEPS] = _ANCHOR_AFTER


@njit(cache=True, nogil=True)
def refresh(pairs: Pairs) -> None:
    """Evaluate the stale pairs."""
    for j in range(1, len(pairs)):
        for i in range(j):
            if pairs[i, j, STEPS] == 0.0:
                anchor(pairs, i, j)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def stepped(
    a: float, b: float, x: float, weight: float, below: float, above: float, agree: float
) -> tuple[float, float, float]:
    """Weight and tails after one more observation: an agreement (1.0), or not (0.0).

    Written without branches on whether outputs agree, since they could not be predicted.
    """
    differ = 1.0 - agree
    step = weight / (differ * a + agree * b)
    weight = step * ((a + b) * abs(agree - x))
    step *= agree - differ
    return weight, max(below + step, 0.0), max(above - step, 0.0)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def observe(
    pairs: Pairs,
    float_outputs: NDArray[np.float64] | NDArray[np.int32],
    k: int,
    depth: int,
    stale_up_to: int,
) -> bool:
    """One round of class k that stopped at `depth`; whether a pair is now due to be anchored.

    Pairs beyond stage `stale_up_to` have their tails stepped; the others are only counted. Written
    without calls that take arrays: around those numba would count references to the arrays, at the
    cost of a whole look.
    """
    due = False
    for j in range(1, depth + 1):
        for i in range(j):
            agree = 1.0 if float_outputs[k, i] == float_outputs[k, j] else 0.0
            a, b, x = pairs[i, j, A], pairs[i, j, B], pairs[i, j, X]
            pairs[i, j, A], pairs[i, j, B] = a + (1.0 - agree), b + agree
            if j <= stale_up_to:
                pairs[i, j, STEPS] = 0.0
                continue
            weight, below, above = stepped(
                a, b, x, pairs[i, j, WEIGHT], pairs[i, j, BELOW], pairs[i, j, ABOVE], agree
            )
            pairs[i, j, WEIGHT], pairs[i, j, BELOW], pairs[i, j, ABOVE] = weight, below, above
            steps = pairs[i, j, STEPS] - 1.0
            pairs[i, j, STEPS] = steps
            due |= is_due(below, above, pairs[i, j, FLOOR], steps)
    return due


@njit(cache=True, nogil=True, error_model="numpy")
def observe_pair(pairs: Pairs, i: int, j: int, agree: bool) -> bool:
    """One observation of one pair; whether it is now due to be anchored."""
    agreed = 1.0 if agree else 0.0
    a, b = pairs[i, j, A], pairs[i, j, B]
    weight, below, above = stepped(
        a, b, pairs[i, j, X], pairs[i, j, WEIGHT], pairs[i, j, BELOW], pairs[i, j, ABOVE], agreed
    )
    pairs[i, j, A], pairs[i, j, B] = a + (1.0 - agreed), b + agreed
    pairs[i, j, WEIGHT], pairs[i, j, BELOW], pairs[i, j, ABOVE] = weight, below, above
    pairs[i, j, STEPS] -= 1.0
    return is_due(below, above, pairs[i, j, FLOOR], pairs[i, j, STEPS])


@njit(cache=True, nogil=True, inline="always")
def is_due(below: float, above: float, floor: float, steps: float) -> bool:
    """Whether tails must be evaluated directly: the smaller one left its span, or many steps."""
    smaller = max(min(below, above), _NEGLIGIBLE)
    return (steps == 0.0) | (smaller < floor) | (smaller > floor * _SPAN)


@njit(cache=True, nogil=True)
def anchor_due(pairs: Pairs, depth: int, stale_up_to: int) -> None:
    """Evaluate the pairs that an observation at `depth` has made due."""
    for j in range(stale_up_to + 1, depth + 1):
        for i in range(j):
            below, above = pairs[i, j, BELOW], pairs[i, j, ABOVE]
            if is_due(below, above, pairs[i, j, FLOOR], pairs[i, j, STEPS]):
                anchor(pairs, i, j)


@njit(cache=True, nogil=True)
def observe_many(pairs: Pairs, outputs: NDArray[np.int32], k: int, depth: int, times: int) -> None:
    """Count equal rounds at once; the tails of the pairs they touch are stale then."""
    for j in range(1, depth + 1):
        for i in range(j):
            pairs[i, j, A if outputs[k, i] != outputs[k, j] else B] += times
            pairs[i, j, STEPS] = 0.0


@njit(cache=True, nogil=True)
def cheap_bounds(pairs: Pairs, i: int, j: int, rounds: int) -> tuple[float, float]:
    """Lower bounds on both tails over the next `rounds` rounds, whatever the outputs will be.

    I_x falls with every disagreement and rises with every agreement. Where Chernoff's bound shows
    that one tail stays near one, nothing is claimed for the other; elsewhere nothing at all.
    """
    x, a, b = pairs[i, j, X], pairs[i, j, A], pairs[i, j, B]
    if x <= 0.0:
        return 0.0, 1.0
    if x >= 1.0:
        return 1.0, 0.0
    if a < x * (a + b):
        above_at_most = upper_tail_bound(a + rounds, b, x)
        return (1.0 - above_at_most if above_at_most < 1e-3 else 0.0), 0.0
    below_at_most = upper_tail_bound(b + rounds, a, 1.0 - x)
    return 0.0, (1.0 - below_at_most if below_at_most < 1e-3 else 0.0)


@njit(cache=True, nogil=True)
def exact_bounds(pairs: Pairs, i: int, j: int, rounds: int) -> tuple[float, float]:
    """The same, by evaluating both ends: all disagree, all agree."""
    x, a, b = pairs[i, j, X], pairs[i, j, A], pairs[i, j, B]
    below, _, _ = tails(a + rounds, b, x)
    _, above, _ = tails(a, b + rounds, x)
    return below, above
