"""Looks of a confidence-bound rule that hugs its boundary, many at once.

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

from stopwise.simulation.kernels.bounds import first_failing_round, passes, upper_bound
from stopwise.simulation.kernels.meeting import write_counts
from stopwise.simulation.kernels.pairs import A, B, Pairs, X, observe_many
from stopwise.simulation.kernels.random import (
    State,
    binomial,
    failures_before_success,
    split,
    uniform,
)
from stopwise.simulation.kernels.tables import Tables

# Bulks that can be remembered; when these are not enough the rest goes by runs.
BULKS = 64
# A bulk takes as long as so many runs.
_RUNS_OF_A_BULK = 3.0
# Comparisons that hold by less than this are not relied upon.
_SLACK = 1e-12


@njit(cache=True, nogil=True)
def bulk_cost(tables: Tables, depth: int) -> int:
    """How many ordinary rounds take as long as counting the outputs of many at once."""
    return 16 + tables.prefix_start[depth + 1] - tables.prefix_start[depth]


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
    if n * p > 16.0 or p > 0.5:
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
            record = surplus * surplus / before_last * (1.0 - _SLACK)
        seen, needed = seen + taken, needed - taken
        if run < left:
            disagreed, needed = disagreed + 1.0, needed + 1.0 / x
            differed += 1
    if low < high:
        low = replay(bulks, kept, looks, x, alpha, strict, low, cut, state)
    return looks, differed, low


@njit(cache=True, nogil=True, error_model="numpy")
def hugged_stage(
    pairs: Pairs,
    base: int,
    depth: int,
    t: int,
    cut: int,
    most: int,
    alpha: float,
    two_sided: bool,
) -> int:
    """The deeper stage that alone decides between a stop at `base` and a look at `depth`, or -1.

    Over so many looks and up to the cut, whatever is output: all other pairs of `base` pass, and
    a round that goes on stops at `depth`. (That all rounds come as far as `base` is known.)
    """
    early, late, last = alpha * math.log(t + 1), alpha * math.log(cut), len(pairs) - 1
    found = -1
    for i in range(base, depth + 1):
        passed_over = False
        for j in range(i + 1, last + 1):
            x, disagreed, seen = pairs[i, j, X], pairs[i, j, A], pairs[i, j, A] + pairs[i, j, B]
            if seen == 0.0:
                return -1
            more = most if j <= depth else 0
            highest = (disagreed + more) / (seen + more) + math.sqrt(late / seen)
            lowest = disagreed / (seen + more) + math.sqrt(early / (seen + more))
            surely_passes = x > highest * (1.0 + _SLACK)
            if i == base and not surely_passes:
                if found >= 0 or j > depth:
                    return -1
                found = j
            if i == depth and not surely_passes:
                return -1
            passed_over = passed_over or x < lowest * (1.0 - _SLACK)
        if two_sided and i > base:
            for j in range(i):
                x, disagreed, seen = pairs[j, i, X], pairs[j, i, A], pairs[j, i, A] + pairs[j, i, B]
                highest = (disagreed + most) / (seen + most) + math.sqrt(late / seen)
                lowest = disagreed / (seen + most) + math.sqrt(early / (seen + most))
                if i == depth and depth < last and not x < lowest * (1.0 - _SLACK):
                    return -1
                passed_over = passed_over or x > highest * (1.0 + _SLACK)
        if base < i < depth and not passed_over:
            return -1
    return found


@njit(cache=True, nogil=True)
def share_of_disagreements(tables: Tables, depth: int, i: int, j: int) -> float:
    """How often the outputs of stages i and j differ in rounds that stop at `depth`."""
    total = differ = 0.0
    for k in range(tables.prefix_start[depth], tables.prefix_start[depth + 1]):
        total += tables.prefix_p[k]
        stands_for = tables.prefix_class[k]
        if tables.outputs[stands_for, i] != tables.outputs[stands_for, j]:
            differ += tables.prefix_p[k]
    return differ / total


@njit(cache=True, nogil=True)
def deal(
    tables: Tables,
    pairs: Pairs,
    rng: np.random.Generator,
    depth: int,
    i: int,
    j: int,
    looks: int,
    differed: int,
) -> None:
    """Count the outputs of looks at `depth` of which we know how often stages i and j differed."""
    start, end = tables.prefix_start[depth], tables.prefix_start[depth + 1]
    classes, dealt = np.empty(end - start, dtype=np.int64), np.empty(end - start, dtype=np.int64)
    weights = np.empty(end - start)
    for differ, total in ((True, differed), (False, looks - differed)):
        count = 0
        for k in range(start, end):
            stands_for = tables.prefix_class[k]
            if (tables.outputs[stands_for, i] != tables.outputs[stands_for, j]) == differ:
                classes[count], weights[count] = stands_for, tables.prefix_p[k]
                count += 1
        split(rng, total, weights[:count], dealt[:count])
        for k in range(count):
            if dealt[k]:
                observe_many(pairs, tables.outputs, classes[k], depth, dealt[k])


@njit(cache=True, nogil=True)
def hug(
    tables: Tables,
    pairs: Pairs,
    base: int,
    depth: int,
    t: int,
    sure_until: int,
    alpha: float,
    two_sided: bool,
    strict: bool,
    bulks: NDArray[np.float64],
    grid: NDArray[np.int64],
    at: int,
    counts: NDArray[np.int64],
    table: NDArray[np.int64],
    state: State,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Take the rounds after t, for as long as one pair decides, if that is sure to spare looks.

    All rounds until `sure_until` come as far as `base`, and the next one goes on to `depth`. Looks
    are observed and all rounds counted. Returns the round that is over (t if it was not worth it)
    and the place in the grid.
    """
    cost = bulk_cost(tables, depth)
    until = min(sure_until, 2 * t)
    most = until - t
    stage = hugged_stage(pairs, base, depth, t, until, 0 * t, alpha, two_sided)
    while stage >= 0 and hugged_stage(pairs, base, depth, t, until, most, alpha, two_sided) < 0:
        most //= 4
    if stage < 0 or most <= cost:
        return t, at
    x, disagreed = pairs[base, stage, X], pairs[base, stage, A]
    seen = disagreed + pairs[base, stage, B]
    if not x > 0.0 or not rises(x, seen + most, alpha, t):
        return t, at
    if looks_for(x, disagreed, math.sqrt(alpha * math.log(until))) - seen <= cost:
        return t, at
    p = share_of_disagreements(tables, depth, base, stage)
    all_looks = all_differed = 0 * t
    while t < until and all_looks < most:
        cut, left = min(grid[at], until), most - all_looks
        reserve = rounds_to_spare(seen, x, p, t, cut, left)
        looks, differed, now = follow(
            seen, disagreed, x, p, alpha, strict, t, cut, left, reserve, bulks, state, rng
        )
        seen, disagreed = seen + looks, disagreed + differed
        all_looks, all_differed = all_looks + looks, all_differed + differed
        counts[depth] += looks
        counts[base] += now - t - looks
        t = now
        # Rounds of the grid before the next look.
        due = first_failing_round(x, disagreed, seen, alpha, strict, t + 1, until + 1)
        while at < len(grid) and grid[at] < due:
            counts[base] += grid[at] - t
            t = grid[at]
            write_counts(table, at, counts)
            at += 1
        if due > until:
            counts[base] += until - t
            t = until
    deal(tables, pairs, rng, depth, base, stage, all_looks, all_differed)
    return t, at
