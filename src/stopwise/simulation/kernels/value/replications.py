"""Replications of the rules that decide by an elimination walk: USS-VOI, its anytime form, IMED.

Given the evidence and the clock the decision is certain. A stop at the first stage teaches nothing,
so it lasts until the clock alone changes it: never (known horizon), or at a round that can be
solved for (anytime). A stop at a deeper stage adds evidence; but bounds show that for so many
rounds, whatever the outputs, the walk ends where it ends now, and these many grow with the
evidence. What is left are the rounds that matter.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.policies.voi import LATE_CAUTION
from stopwise.simulation.kernels.pairs import (
    ABOVE,
    BELOW,
    FLOOR,
    STEPS,
    WEIGHT,
    A,
    B,
    Pairs,
    X,
    anchor,
    new_pairs,
    observe_many,
)
from stopwise.simulation.kernels.patterns import Tables
from stopwise.simulation.kernels.random import State, split
from stopwise.simulation.kernels.stream import next_class, rows_met
from stopwise.simulation.kernels.value.worth import (
    ANSWER,
    MOST_M,
    MOST_RHO,
    MOST_STAKE,
    NO,
    SLACK,
    TRY_AT,
    UNSURE,
    UNTIL,
    VOI,
    VOI_ANYTIME,
    YES,
    Known,
    looks_needed,
    no_answers,
    over_rounds,
    price,
    stakes,
    worth,
)

# A bulk costs about as much as this many ordinary rounds, for every stage that it goes beyond.
_BULK_COST = 16
# Rounds between two attempts at a bulk, doubled (up to 2^_MOST_PATIENCE) while they fail.
_PATIENCE = 16
_MOST_PATIENCE = 4


@njit(cache=True, nogil=True)
def walk(
    pairs: Pairs,
    known: Known,
    rule: int,
    knob: float,
    m: float,
    rho: float,
    visited: NDArray[np.int64],
) -> int:
    """Where the elimination walk stops; `visited` is room to work in.

    A stage is visited if it is worth going to from every stage visited before it, the last of which
    is asked first because it is the likeliest to refuse.
    """
    visited[0] = 0
    number = 1
    for j in range(1, len(pairs)):
        answer = True
        stake = 0.0
        for at in range(number - 1, -1, -1):
            i = visited[at]
            # The two frequent cases stand here because a call costs more than they do.
            a, b, c = pairs[i, j, A], pairs[i, j, B], pairs[i, j, X]
            seen = a + b - 2.0
            if (
                seen <= known[i, j, UNTIL]
                and m <= known[i, j, MOST_M]
                and rho <= known[i, j, MOST_RHO]
                and stake <= known[i, j, MOST_STAKE]
            ):
                answer = known[i, j, ANSWER] == YES
            elif (
                pairs[i, j, STEPS] > 0.0
                and 0.0 < seen < known[i, j, TRY_AT]
                and a - c * (a + b) > rho * c * pairs[i, j, BELOW] * (a + b) + SLACK
            ):
                # gain - loss = mean - c - rho E[p; p < c], and the last is at most c P(p < c).
                answer = True
            else:
                answer = worth(pairs, known, i, j, rule, knob, m, rho, stake)
            if not answer:
                break
            if at == number - 1:
                stake = max(a / (a + b) - c, 0.0)
        if answer:
            visited[number] = j
            number += 1
    return visited[number - 1]


@njit(cache=True, nogil=True)
def stays(
    pairs: Pairs,
    known: Known,
    depth: int,
    rounds: int,
    rule: int,
    knob: float,
    least_m: float,
    most_m: float,
    least_rho: float,
    most_rho: float,
) -> bool:
    """Whether the walk surely stops at `depth` in each of the next `rounds` rounds.

    Pairs up to `depth` move; those beyond are frozen, but the clock and rho are not. Every stage
    must surely be visited or surely not.
    """
    visited = np.zeros(len(pairs), dtype=np.int64)
    number = 1
    for j in range(1, len(pairs)):
        together = YES
        stake = 0.0
        for at in range(number - 1, -1, -1):
            i = visited[at]
            seen = pairs[i, j, A] + pairs[i, j, B] - 2.0
            later = seen + rounds if j <= depth else seen
            if (
                later <= known[i, j, UNTIL]
                and most_m <= known[i, j, MOST_M]
                and most_rho <= known[i, j, MOST_RHO]
                and stake <= known[i, j, MOST_STAKE]
            ):
                answer = int(known[i, j, ANSWER])
            elif j <= depth:
                answer = over_rounds(
                    pairs, i, j, rounds, rule, knob, least_m, most_m, most_rho, stake
                )
            elif not worth(pairs, known, i, j, rule, knob, most_m, least_rho, stake):
                answer = NO
            elif worth(pairs, known, i, j, rule, knob, least_m, most_rho, 0.0):
                answer = YES
            else:
                answer = UNSURE
            together = min(together, answer)
            if together == NO:
                break
            if at == number - 1:
                more = rounds if j <= depth else 0
                a, b = pairs[i, j, A] + more, pairs[i, j, B]
                stake = max(a / (a + b) - pairs[i, j, X], 0.0)
        if together == UNSURE:
            return False
        if together == YES:
            visited[number] = j
            number += 1
    return visited[number - 1] == depth


@njit(cache=True, nogil=True, error_model="numpy")
def first_change(pairs: Pairs, knob: float, m: float, rho: float, most: int) -> int:
    """In how many rounds a stop at the first stage can end, while m grows by one in each.

    At the earliest: one more round is as good as none where rounding could matter.
    """
    wait = most
    for j in range(1, len(pairs)):
        c, a, b = pairs[0, j, X], pairs[0, j, A], pairs[0, j, B]
        if c >= 1.0:
            continue
        if pairs[0, j, STEPS] == 0.0:
            anchor(pairs, 0, j)
        gain, lost, under = stakes(
            a, b, c, pairs[0, j, BELOW], pairs[0, j, ABOVE], pairs[0, j, WEIGHT]
        )
        if gain == 0.0:
            continue
        seen = a + b - 2.0
        needed = price(knob, len(pairs), 0) * (lost + rho * under) * looks_needed(seen, a - 1.0, c)
        # Solves rounds_that_count(m, seen) * gain = needed for m.
        enough = needed * (1.0 - SLACK) / gain
        enough = min(enough, (enough / LATE_CAUTION) ** 2 / seen)
        if enough < m + wait:
            wait = max(1, min(wait, int(enough - m)))
    return wait


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def observe(pairs: Pairs, outputs: NDArray[np.int32], k: int, depth: int) -> None:
    """One round of class k that stopped at `depth`.

    Tails that somebody asked for are stepped, until they have lost digits; the others are stale.
    """
    for j in range(1, depth + 1):
        for i in range(j):
            differ = outputs[k, i] != outputs[k, j]
            a, b = pairs[i, j, A], pairs[i, j, B]
            pairs[i, j, A] = a + (1.0 if differ else 0.0)
            pairs[i, j, B] = b + (0.0 if differ else 1.0)
            if pairs[i, j, STEPS] == 0.0:
                continue
            x = pairs[i, j, X]
            step = pairs[i, j, WEIGHT] / (a if differ else b)
            pairs[i, j, WEIGHT] = step * (a + b) * (x if differ else 1.0 - x)
            step = -step if differ else step
            below = max(pairs[i, j, BELOW] + step, 0.0)
            above = max(pairs[i, j, ABOVE] - step, 0.0)
            pairs[i, j, BELOW] = below
            pairs[i, j, ABOVE] = above
            pairs[i, j, STEPS] -= 1.0
            if min(below, above) < pairs[i, j, FLOOR]:
                pairs[i, j, STEPS] = 0.0


@njit(cache=True, nogil=True, inline="always")
def count_switches(
    outputs: NDArray[np.int32], k: int, depth: int, times: int, switches: NDArray[np.float64]
) -> None:
    """Add to (rounds with a switch, rounds with two), counted where three stages answered."""
    if depth < 2:
        return
    changes = 0
    for j in range(1, depth + 1):
        changes += outputs[k, j] != outputs[k, j - 1]
    if changes >= 1:
        switches[0] += times
    if changes >= 2:
        switches[1] += times


@njit(cache=True, nogil=True)
def _count_bulk(
    tables: Tables,
    pairs: Pairs,
    rng: np.random.Generator,
    depth: int,
    t: int,
    rounds: int,
    switches: NDArray[np.float64],
) -> None:
    """Count the outputs of so many rounds after t that all stopped at `depth`."""
    if len(tables.rows):
        for k in range(len(tables.outputs)):
            met = rows_met(tables, k, t, rounds)
            if met:
                observe_many(pairs, tables.outputs, k, depth, met)
                count_switches(tables.outputs, k, depth, met, switches)
        return
    start, end = tables.prefix_start[depth], tables.prefix_start[depth + 1]
    dealt = np.empty(end - start, dtype=np.int64)
    split(rng, rounds, tables.prefix_p[start:end], dealt)
    for at in range(end - start):
        if dealt[at]:
            k = tables.prefix_class[start + at]
            observe_many(pairs, tables.outputs, k, depth, dealt[at])
            count_switches(tables.outputs, k, depth, dealt[at], switches)


@njit(cache=True, nogil=True, error_model="numpy")
def run_one(
    tables: Tables,
    x: NDArray[np.float64],
    rule: int,
    knob: float,
    rho0: float,
    told: int,
    grid: NDArray[np.int64],
    state: State,
    rng: np.random.Generator,
    table: NDArray[np.int64],
) -> None:
    """One replication; `table` receives the depth counts at every round of the grid.

    `told` is the horizon that the rule was told, or the head start of the anytime form.
    """
    outputs, rows, cumulative = tables.outputs, tables.rows, tables.cumulative
    stages, horizon = len(x), grid[-1]
    pairs = new_pairs(x, 1.0, 1.0)
    pairs[:, :, STEPS] = 0.0
    known = no_answers(stages)
    visited = np.zeros(stages, dtype=np.int64)
    counts = np.zeros(stages, dtype=np.int64)
    switches = np.zeros(2)
    tried, failed, wait = 16, 0, _PATIENCE
    t, at, end = 0, 0, told
    while t < horizon:
        if rule == VOI:
            while end < t + 1:
                end *= 2
            m, until = end - t, min(end, horizon)
        else:
            m, until = t + 1 + told, horizon
        rho = rho0 + switches[1] / (switches[0] + 2.0)
        depth = walk(pairs, known, rule, knob, m, rho, visited)
        rounds = 1
        if depth == 0:
            rounds = until - t
            if rule == VOI_ANYTIME:
                rounds = first_change(pairs, knob, m, rho, until - t)
        elif wait > 0:
            wait -= 1
        else:
            cost = _BULK_COST * depth + tables.prefix_start[depth + 1] - tables.prefix_start[depth]
            budget = min(tried, until - t)
            while budget > cost:
                later = m + budget if rule == VOI_ANYTIME else m - budget
                fewer, more = switches[1], switches[1]
                if depth >= 2:
                    more += budget
                if stays(
                    pairs, known, depth, budget, rule, knob, min(m, later), max(m, later),
                    rho0 + fewer / (switches[0] + 2.0 + (budget if depth >= 2 else 0)),
                    rho0 + more / (switches[0] + 2.0 + more - fewer),
                ):  # fmt: skip
                    break
                budget //= 4
            if budget > cost:
                rounds = budget
                tried, failed = 2 * budget, 0
            else:
                tried = max(16, 2 * cost)
                wait = _PATIENCE << min(failed, _MOST_PATIENCE)
                failed += 1
        if depth > 0 and rounds == 1:
            k = next_class(rows, cumulative, t, state)
            observe(pairs, outputs, k, depth)
            count_switches(outputs, k, depth, 1, switches)
        elif depth > 0:
            _count_bulk(tables, pairs, rng, depth, t, rounds, switches)
        counts[depth] += rounds
        t += rounds
        while at < len(grid) and grid[at] <= t:
            table[at] = counts
            table[at, depth] -= t - grid[at]
            at += 1


@njit(cache=True, nogil=True)
def run_many(
    tables: Tables,
    x: NDArray[np.float64],
    rule: int,
    knob: float,
    rho0: float,
    told: int,
    grid: NDArray[np.int64],
    states: NDArray[np.uint64],
    rng: np.random.Generator,
    result: NDArray[np.int64],
) -> None:
    """Replications one after the other, each with its own stream of uniforms."""
    for k in range(len(states)):
        run_one(tables, x, rule, knob, rho0, told, grid, states[k], rng, result[k])
