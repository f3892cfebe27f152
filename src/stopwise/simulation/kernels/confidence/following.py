"""Looks at one pair on the boundary of a confidence-bound rule, many at once.

Once a pair has about as many looks as the clock asks for, the rule stops before it, until the clock
has moved on enough for one look more, and so on for ever. What such a look costs the others only
depends on whether the two stages agree; so one pair's looks N and disagreements D are all that has
to be followed, from a known round to a `cut` (a round of the grid, say), where only the number of
looks made by then is asked for.

The next look, number n+1, is made in round t_{n+1} = max(t_n + 1, T_n): one look a round at most,
and not before round T_n, in which the frozen pair fails. Three facts make that quick:

- Agreements come in runs, of geometric length. Along a run T rises by more than a round a look
  (`rises` sees to that), so only its end matters; and where a run reaches the cut is a square root.
- A pair with D disagreements passes at the clock of a round as soon as N is at least `looks_for`,
  and further disagreements only raise that. So the looks up to there are made before that round,
  whatever they show: a *bulk*, one binomial. The round in which a bulk ends is not known then, only
  an interval, [low, high]; but a later T above it is, once more, the very round. Bulks therefore
  end a *reserve* of rounds before the cut.
- Should the interval ever hold the cut, the bulks since the last known round are *replayed*: given
  how many of its looks disagreed, all orders of a bulk are equally likely. That is rare; and
  exact, since t_n - n is the largest of T_m - m - 1 over all m < n (and of the round of the start).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.confidence.bounds import (
    SLACK,
    first_failing_round,
    passes,
    upper_bound,
)
from stopwise.simulation.kernels.random import (
    State,
    binomial,
    failures_before_success,
    uniform,
)

# Bulks that can be remembered; when these are not enough the rest goes by runs.
BULKS = 64
# A bulk takes as long as so many runs.
_RUNS_OF_A_BULK = 3.0


@njit(cache=True, nogil=True, error_model="numpy")
def looks_for(x: float, disagreed: float, root: float) -> float:
    """How many looks let a pair pass with so many disagreements; `root` is sqrt(alpha ln t).

    The larger solution of x N - D = root sqrt(N).
    """
    solution = (root + math.sqrt(root * root + 4.0 * x * disagreed)) / (2.0 * x)
    return solution * solution


@njit(cache=True, nogil=True, error_model="numpy")
def rises(x: float, most_seen: float, alpha: float, t: int) -> bool:
    """Whether an agreement puts off the next look by a round or more, if that is after round t.

    The logarithm of T is N q^2 / alpha with q = x - D/N. An agreement adds at least q x / alpha to
    it, and q is at least sqrt(alpha ln t / N) where T is after t. (Twice as much is asked for.)
    """
    return t * x * math.sqrt(math.log(t) / (alpha * most_seen)) >= 2.0


@njit(cache=True, nogil=True, error_model="numpy")
def rounds_to_spare(seen: float, x: float, p: float, t: int, cut: int, most: int) -> int:
    """A reserve that the looks up to the cut will hardly use up; 0 where rounds are too few.

    It has no influence on the law of the result, only on how often bulks are replayed. On the
    boundary looks grow with the logarithm of the clock, by x - p - q/2 of boundary each (q is near
    x - p), and spread as a walk does that drifts so slowly.
    """
    expected = seen * (math.log(cut) / math.log(t) - 1.0)
    spread = 2.0 * math.sqrt(expected * p * (1.0 - p)) / (x - p)
    reserve = max(3.0 * expected + 8.0 * spread + 256.0, (cut - t) / 16)
    if not (x > p and 2.0 * reserve < cut - t and reserve < most):
        return 0 * t
    return int(reserve)


@njit(cache=True, nogil=True, error_model="numpy")
def disagreements(state: State, rng: np.random.Generator, n: int, p: float, log_rest: float) -> int:
    """Binomial(n, p); `log_rest` is ln(1 - p).

    Where few are expected, by inversion: half the time of the general method. It ends where what
    is left of the distribution is far below the last bit of the uniform number.
    """
    if n * p > 30.0 or p > 0.5:
        return binomial(rng, n, p)
    left, chance, odds = uniform(state), math.exp(n * log_rest), p / (1.0 - p)
    k = 0 * n
    while left > chance > 1e-20:
        left -= chance
        chance *= odds * (n - k) / (k + 1)
        k += 1
    return k


@njit(cache=True, nogil=True)
def replay(
    bulks: NDArray[np.float64],
    kept: int,
    looks: int,
    x: float,
    alpha: float,
    strict: bool,
    low: int,
    cut: int,
    state: State,
) -> int:
    """The round of the last of so many looks: at least `low`, and whatever the bulks put it off to.

    A bulk is N and D before it, its looks and disagreements, and the looks made before it.
    """
    t, first = low, 1 + 0 * low  # typed: a literal would have the function compiled once more
    for k in range(kept):
        seen, disagreed, size, left = bulks[k, 0], bulks[k, 1], int(bulks[k, 2]), bulks[k, 3]
        before = int(bulks[k, 4])
        for n in range(size):
            due = first_failing_round(x, disagreed, seen, alpha, strict, first, cut)
            t = max(t, due + looks - (before + n) - 1)
            seen += 1.0
            if uniform(state) * (size - n) < left:
                disagreed += 1.0
                left -= 1.0
    return t


@njit(cache=True, nogil=True, error_model="numpy")
def follow(
    seen: float,
    disagreed: float,
    x: float,
    p: float,
    alpha: float,
    strict: bool,
    t: int,
    cut: int,
    most: int,
    reserve: int,
    bulks: NDArray[np.float64],
    state: State,
    rng: np.random.Generator,
) -> tuple[int, int, int]:
    """Follow a pair from round t, which is over, to the cut, or for at most so many looks.

    `p` is how often the pair disagrees. Without a reserve there are no bulks. Returns looks,
    disagreements among them, and the round that is over then.
    """
    at_cut = alpha * math.log(cut)
    safe = cut - reserve
    # The logarithm of cut - R is at least that of the cut less R over cut - R.
    root, root_safe = math.sqrt(at_cut), math.sqrt(max(at_cut - alpha * reserve / safe, 0.0))
    log_rest = math.log1p(-p)
    low = high = t
    record = alpha * math.log(t)  # a T with a smaller alpha ln T is not after `low`
    looks = differed = kept = 0 * t
    # At least so many agreements to the cut: 1/x more for every disagreement, and a little.
    needed = looks_for(x, disagreed, root) - seen
    while looks < most:
        left = most - looks
        if low == high:
            kept = 0
        if needed * p > _RUNS_OF_A_BULK:
            size = remembered = 0 * t
            if low == high:
                # Looks that are due already: each takes the next round.
                size = int(looks_for(x, disagreed, math.sqrt(record)) - seen) - 1
                size = min(size, left, cut - low)
            if size * p <= _RUNS_OF_A_BULK and reserve > 0 and kept < len(bulks):
                size = int(looks_for(x, disagreed, root_safe) - seen) - 1
                size = min(size, left, cut - reserve // 2 - max(high, safe))
                remembered = size
            if size * p > _RUNS_OF_A_BULK:
                share = disagreements(state, rng, size, p, log_rest)
                if remembered > 0:
                    bulks[kept, 0], bulks[kept, 1], bulks[kept, 2] = seen, disagreed, size
                    bulks[kept, 3], bulks[kept, 4] = share, looks
                    kept += 1
                    low, high = low + size, max(high, safe) + size
                else:
                    low = high = low + size
                    record = alpha * math.log(low)
                looks, differed = looks + size, differed + share
                seen, disagreed = seen + size, disagreed + share
                needed = looks_for(x, disagreed, root) - seen
                continue
        # A run of agreements, and the disagreement that ends it.
        run = failures_before_success(state, p, left)
        taken = min(run + 1, left)
        reached = False
        if run >= needed - 1.0:
            needed = looks_for(x, disagreed, root) - seen
        if run >= needed - 1.0:
            stop = max(int(needed) - 1, 0)
            while stop <= run and not passes(
                x, upper_bound(disagreed, seen + stop, at_cut), strict
            ):
                stop += 1
            if stop <= run:
                taken, reached = stop, True
        if high + taken > cut and low < high:
            low = high = replay(bulks, kept, looks, x, alpha, strict, low, cut, state)
        if high + taken > cut:
            taken, reached = cut - high, True  # looks that were due but had no round
        looks += taken
        if reached:
            return looks, differed, cut
        low, high = low + taken, high + taken
        before_last = seen + (taken - 1)
        surplus = x * before_last - disagreed
        if surplus > 0.0 and surplus * surplus > record * before_last:
            due = first_failing_round(x, disagreed, before_last, alpha, strict, low, cut)
            low, high = max(low, due), max(high, due)
            record = surplus * surplus / before_last * (1.0 - SLACK)
        seen, needed = seen + taken, needed - taken
        if run < left:
            disagreed, needed = disagreed + 1.0, needed + 1.0 / x
            differed += 1
    if low < high:
        low = replay(bulks, kept, looks, x, alpha, strict, low, cut, state)
    return looks, differed, low
