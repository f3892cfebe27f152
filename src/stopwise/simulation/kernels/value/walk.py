"""Where the elimination walk stops, and for how long it is sure to."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.pairs import (
    ABOVE,
    BELOW,
    STEPS,
    WEIGHT,
    A,
    B,
    Pairs,
    X,
    anchor,
)
from stopwise.simulation.kernels.rules import LATE_CAUTION, looks_to_learn, price_of_looks, stakes
from stopwise.simulation.kernels.value.settings import VOI_ANYTIME, Moment, Span, ValueSettings
from stopwise.simulation.kernels.value.worth import (
    ANSWER,
    NO,
    SLACK,
    TRY_AT,
    UNSURE,
    YES,
    Known,
    is_known,
    over_rounds,
    worth,
)


@njit(cache=True, nogil=True)
def walk(
    pairs: Pairs,
    known: Known,
    settings: ValueSettings,
    moment: Moment,
    visited: NDArray[np.int64],
) -> int:
    """Where the elimination walk stops; `visited` is room to work in.

    A stage is visited if it is worth going to from every stage visited before it, the last of which
    is asked first because it is the likeliest to refuse.
    """
    m, rho = moment.m, moment.rho
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
            if is_known(known, i, j, seen, m, rho, stake):
                answer = known[i, j, ANSWER] == YES
            elif (
                pairs[i, j, STEPS] > 0.0
                and 0.0 < seen < known[i, j, TRY_AT]
                and a - c * (a + b) > rho * c * pairs[i, j, BELOW] * (a + b) + SLACK
            ):
                # gain - loss = mean - c - rho E[p; p < c], and the last is at most c P(p < c).
                answer = True
            else:
                answer = worth(pairs, known, i, j, settings, moment, stake)
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
    pairs: Pairs, known: Known, depth: int, rounds: int, settings: ValueSettings, span: Span
) -> bool:
    """Whether the walk surely stops at `depth` in each of the next `rounds` rounds.

    Every stage must surely be visited or surely not.
    """
    visited = np.zeros(len(pairs), dtype=np.int64)
    number = 1
    for j in range(1, len(pairs)):
        together = YES
        stake = 0.0
        for at in range(number - 1, -1, -1):
            i = visited[at]
            answer = _answer_throughout(pairs, known, i, j, depth, rounds, settings, span, stake)
            together = min(together, answer)
            if together == NO:
                break
            if at == number - 1:
                stake = _most_at_stake(pairs, i, j, rounds if j <= depth else 0)
        if together == UNSURE:
            return False
        if together == YES:
            visited[number] = j
            number += 1
    return visited[number - 1] == depth


@njit(cache=True, nogil=True)
def _answer_throughout(
    pairs: Pairs,
    known: Known,
    i: int,
    j: int,
    depth: int,
    rounds: int,
    settings: ValueSettings,
    span: Span,
    stake: float,
) -> int:
    """Whether going from i to j pays in each of the next rounds, which all stop at `depth`.

    Pairs up to `depth` change; those beyond are frozen, but the clock and rho are not.
    """
    seen = pairs[i, j, A] + pairs[i, j, B] - 2.0
    later = seen + rounds if j <= depth else seen
    if is_known(known, i, j, later, span.most_m, span.most_rho, stake):
        return int(known[i, j, ANSWER])
    if j <= depth:
        return over_rounds(pairs, i, j, rounds, settings, span, stake)
    if not worth(pairs, known, i, j, settings, Moment(span.most_m, span.least_rho), stake):
        return NO
    if worth(pairs, known, i, j, settings, Moment(span.least_m, span.most_rho), 0.0):
        return YES
    return UNSURE


@njit(cache=True, nogil=True)
def _most_at_stake(pairs: Pairs, i: int, j: int, rounds: int) -> float:
    """The expected margin of a pair if the next rounds all disagree, or 0."""
    a, b = pairs[i, j, A] + rounds, pairs[i, j, B]
    return max(a / (a + b) - pairs[i, j, X], 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def first_change(pairs: Pairs, kappa: float, moment: Moment, most: int) -> int:
    """In how many rounds a stop at the first stage can end, while m grows by one in each.

    At the earliest: one more round is as good as none where rounding could matter.
    """
    wait, m = most, moment.m
    price = price_of_looks(kappa, len(pairs), 0)
    for j in range(1, len(pairs)):
        c, a, b = pairs[0, j, X], pairs[0, j, A], pairs[0, j, B]
        if c >= 1.0:
            continue
        if pairs[0, j, STEPS] == 0.0:
            anchor(pairs, 0, j)
        below, above = pairs[0, j, BELOW], pairs[0, j, ABOVE]
        gain, lost, under = stakes(a, b, c, below, above, pairs[0, j, WEIGHT])
        if gain == 0.0:
            continue
        seen = a + b - 2.0
        needed = price * (lost + moment.rho * under) * looks_to_learn(seen, a - 1.0, c)
        # Solves rounds_that_count(m, seen) * gain = needed for m.
        enough = needed * (1.0 - SLACK) / gain
        enough = min(enough, (enough / LATE_CAUTION) ** 2 / seen)
        if enough < m + wait:
            wait = max(1, min(wait, int(enough - m)))
    return wait


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def lasting(pairs: Pairs, settings: ValueSettings, moment: Moment, most: int) -> int:
    """How many rounds a stop at the first stage lasts, since the clock alone can end it."""
    if settings.rule == VOI_ANYTIME:
        return first_change(pairs, settings.kappa, moment, most)
    return most
