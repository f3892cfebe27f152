"""Whether going from one stage to another pays, for the rules that decide by an elimination walk.

The rules of `policies.voi` and `policies.imed` once more, compiled, with bounds that say for how
long an answer is sure.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.policies.voi import LATE_CAUTION
from stopwise.simulation.kernels.beta import tails, upper_tail_bound
from stopwise.simulation.kernels.pairs import ABOVE, BELOW, STEPS, WEIGHT, A, B, Pairs, X, anchor

VOI = 0
VOI_ANYTIME = 1
IMED = 2

NO, UNSURE, YES = 0, 1, 2

Known = NDArray[np.float64]
# For every pair, an answer of `worth` that is sure while the pair was seen at most UNTIL times, m
# is at most MOST_M, rho at most MOST_RHO and what is at stake at most MOST_STAKE; and when to
# attempt the next one.
ANSWER, UNTIL, MOST_M, MOST_RHO, MOST_STAKE, TRY_AT = 0, 1, 2, 3, 4, 5
# Evaluating the tails again costs about as much as carrying them on over this many looks.
_WORTH_KEEPING = 100
# Comparisons that hold by less than this are left to the ordinary round.
SLACK = 1e-9


@njit(cache=True, nogil=True)
def no_answers(stages: int) -> Known:
    """Nothing is sure yet."""
    known = np.zeros((stages, stages, 6))
    known[:, :, UNTIL] = -1.0
    return known


@njit(cache=True, nogil=True, error_model="numpy")
def divergence(p: float, q: float) -> float:
    """Kullback-Leibler divergence of two coins, 0 < q < 1."""
    result = 0.0
    if p > 0.0:
        result += p * math.log(p / q)
    if p < 1.0:
        result += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def looks_needed(seen: float, disagreed: float, c: float) -> float:
    """About how many looks move the evidence by one unit."""
    looks = seen + 1.0
    if disagreed < c * seen:
        looks /= max(1.0, 2.0 * seen * divergence(disagreed / seen, c))
    return looks


@njit(cache=True, nogil=True, inline="always")
def rounds_that_count(m: float, seen: float) -> float:
    """By how many rounds a gain is multiplied; rises with both."""
    return max(m, LATE_CAUTION * math.sqrt(m * seen))


@njit(cache=True, nogil=True, inline="always")
def price(knob: float, stages: int, i: int) -> float:
    """What a look from stage i must promise for its cost: kappa (deeper stages)^(-1/4)."""
    return knob / math.sqrt(math.sqrt(stages - 1.0 - i))


@njit(cache=True, nogil=True, error_model="numpy")
def stakes(
    a: float, b: float, c: float, below: float, above: float, weight: float
) -> tuple[float, float, float]:
    """E(p - c)+, E(c - p)+ and E[p; p < c] from the tails of Beta(a, b) at c."""
    mean, step = a / (a + b), weight / (a + b)
    return (
        max(0.0, (mean - c) * above + step),
        max(0.0, (c - mean) * below + step),
        max(0.0, mean * (below - weight / a)),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def over_rounds(
    pairs: Pairs,
    i: int,
    j: int,
    rounds: int,
    rule: int,
    knob: float,
    least_m: float,
    most_m: float,
    most_rho: float,
    most_stake: float,
) -> int:
    """What `worth` says in all of the next `rounds` looks at this pair, whatever they bring.

    The extremes are all agreeing, Beta(a, b + n), and all disagreeing, Beta(a + n, b): the gain
    rises and E(c - p)+ falls from the one to the other.
    """
    c, a, b = pairs[i, j, X], pairs[i, j, A], pairs[i, j, B]
    if c >= 1.0:
        return NO
    if c <= 0.0:
        return YES
    seen, disagreed = a + b - 2.0, a - 1.0
    if seen == 0.0:
        return UNSURE
    lowest, highest = disagreed / (seen + rounds), (disagreed + rounds) / (seen + rounds)
    if rule == IMED:
        if lowest >= c * (1.0 + SLACK):
            return YES
        if highest < c and seen * divergence(highest, c) + math.log(seen) > knob * (1.0 + SLACK):
            return NO
        return UNSURE
    if disagreed >= c * seen:
        # gain - loss = mean - c - rho E[p; p < c], and the last is at most c P(p < c).
        spare = a / (a + b + rounds) - c
        if spare > most_rho * c * upper_tail_bound(b + rounds, a, 1.0 - c) + SLACK:
            return YES
        if least_m == 0.0 or spare < -0.5 * c:
            return UNSURE
        below, above, weight = tails(a, b + rounds, c)
        gain, lost, _ = stakes(a, b + rounds, c, below, above, weight)
        loss = lost + most_rho * c * below
        needed = price(knob, len(pairs), i) * loss * (seen + rounds + 1.0)
        return YES if rounds_that_count(least_m, seen) * gain > needed + SLACK else UNSURE
    if highest >= c:
        return UNSURE
    below, above, weight = tails(a + rounds, b, c)
    gain, lost, _ = stakes(a + rounds, b, c, below, above, weight)
    gain = max(gain, above * most_stake)
    looks = min(seen + 1.0, 0.5 / divergence(lowest, c))
    needed = price(knob, len(pairs), i) * lost * looks * (1.0 - SLACK)
    refused = gain < lost and rounds_that_count(most_m, seen + rounds) * gain < needed
    return NO if refused else UNSURE


@njit(cache=True, nogil=True, error_model="numpy")
def worth(
    pairs: Pairs,
    known: Known,
    i: int,
    j: int,
    rule: int,
    knob: float,
    m: float,
    rho: float,
    stake: float,
) -> bool:
    """Whether going from stage i to stage j pays; `knob` is kappa, or IMED's ln T - margin.

    Rises with m and `stake` and falls with rho, which bounds rely on. An answer that is sure for
    many looks to come is kept in `known`; until then the pair's tails need not be carried on.
    """
    c, a, b = pairs[i, j, X], pairs[i, j, A], pairs[i, j, B]
    seen, disagreed = a + b - 2.0, a - 1.0
    if (
        seen <= known[i, j, UNTIL]
        and m <= known[i, j, MOST_M]
        and rho <= known[i, j, MOST_RHO]
        and stake <= known[i, j, MOST_STAKE]
    ):
        return known[i, j, ANSWER] == YES
    if c >= 1.0:
        return False
    if c <= 0.0 or seen == 0.0:
        return True
    if rule == IMED:
        if disagreed >= c * seen:
            answer = True
        else:
            answer = seen * divergence(disagreed / seen, c) + math.log(seen) <= knob
        if seen >= known[i, j, TRY_AT]:
            _keep(pairs, known, i, j, rule, knob, m, rho, stake, answer)
        return answer
    if pairs[i, j, STEPS] == 0.0:
        anchor(pairs, i, j)
    gain, lost, under = stakes(a, b, c, pairs[i, j, BELOW], pairs[i, j, ABOVE], pairs[i, j, WEIGHT])
    loss = lost + rho * under
    gain = max(gain, pairs[i, j, ABOVE] * stake)
    needed = price(knob, len(pairs), i) * loss * looks_needed(seen, disagreed, c)
    answer = gain >= loss or rounds_that_count(m, seen) * gain >= needed
    if seen >= known[i, j, TRY_AT]:
        _keep(pairs, known, i, j, rule, knob, m, rho, stake, answer)
    return answer


@njit(cache=True, nogil=True)
def _keep(
    pairs: Pairs,
    known: Known,
    i: int,
    j: int,
    rule: int,
    knob: float,
    m: float,
    rho: float,
    stake: float,
    answer: bool,
) -> None:
    """Try to make the answer sure for more looks, and for some time at changing m and rho.

    Half as many looks as could bring the share of disagreements to the threshold.
    """
    c, a, b = pairs[i, j, X], pairs[i, j, A], pairs[i, j, B]
    seen = a + b - 2.0
    most_m = 2.0 * m if rule == VOI_ANYTIME else (m if rule == VOI else np.inf)
    slack = (a - 1.0) / c - seen if answer else (c * seen - (a - 1.0)) / (1.0 - c)
    rounds = int(min(0.5 * slack, seen))
    if rounds >= _WORTH_KEEPING:
        sure = over_rounds(pairs, i, j, rounds, rule, knob, 0.0, most_m, 2.0 * rho, 1.25 * stake)
        if sure == (YES if answer else NO):
            known[i, j, ANSWER] = sure
            known[i, j, UNTIL] = seen + rounds
            known[i, j, MOST_M] = np.inf if sure == YES else most_m
            known[i, j, MOST_RHO] = 2.0 * rho if sure == YES else np.inf
            known[i, j, MOST_STAKE] = np.inf if sure == YES else 1.25 * stake
            pairs[i, j, STEPS] = 0.0
            return
    known[i, j, TRY_AT] = seen + 8.0 + int(seen / 8.0)
