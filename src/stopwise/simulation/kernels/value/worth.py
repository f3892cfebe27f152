"""Whether going from one stage to another pays, for the rules that decide by an elimination walk.

The formulas are those of the policies (`kernels.rules`); here are the tails that they need, and
bounds that say for how long an answer is sure.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from stopwise.simulation.kernels.beta import tails, upper_tail_bound
from stopwise.simulation.kernels.pairs import ABOVE, BELOW, STEPS, WEIGHT, A, B, Pairs, X, anchor
from stopwise.simulation.kernels.rules import (
    bernoulli_kl,
    imed_index,
    looks_to_learn,
    price_of_looks,
    rounds_that_count,
    stakes,
)
from stopwise.simulation.kernels.value.settings import (
    IMED,
    VOI,
    VOI_ANYTIME,
    Moment,
    Span,
    ValueSettings,
)

NO, UNSURE, YES = 0, 1, 2

Known = NDArray[np.float64]
# For every pair, an answer of `worth` that is sure while the pair was seen at most UNTIL times, m
# is at most MOST_M, rho at most MOST_RHO and what is at stake at most MOST_STAKE; and how often it
# must have been seen before the next attempt at one.
ANSWER, UNTIL, MOST_M, MOST_RHO, MOST_STAKE, TRY_AT = 0, 1, 2, 3, 4, 5
# Evaluating the tails directly costs about as much as carrying them on over this many looks.
_WORTH_KEEPING = 100
# Comparisons that hold by less than this are left to the ordinary round.
SLACK = 1e-9


@njit(cache=True, nogil=True)
def no_answers(stages: int) -> Known:
    """Nothing is sure yet."""
    known = np.zeros((stages, stages, 6))
    known[:, :, UNTIL] = -1.0
    return known


@njit(cache=True, nogil=True, inline="always")
def is_known(known: Known, i: int, j: int, seen: float, m: float, rho: float, stake: float) -> bool:
    """Whether the kept answer of a pair still holds."""
    return (
        seen <= known[i, j, UNTIL]
        and m <= known[i, j, MOST_M]
        and rho <= known[i, j, MOST_RHO]
        and stake <= known[i, j, MOST_STAKE]
    )


@njit(cache=True, nogil=True, error_model="numpy")
def worth(
    pairs: Pairs,
    known: Known,
    i: int,
    j: int,
    settings: ValueSettings,
    moment: Moment,
    stake: float,
) -> bool:
    """Whether going from stage i to stage j pays.

    Rises with m and `stake` and falls with rho, which bounds rely on. An answer that is sure for
    many looks to come is kept in `known`; until then the pair's tails need not be carried on.
    """
    c, a, b = pairs[i, j, X], pairs[i, j, A], pairs[i, j, B]
    seen, disagreed = a + b - 2.0, a - 1.0
    if is_known(known, i, j, seen, moment.m, moment.rho, stake):
        return known[i, j, ANSWER] == YES
    if c >= 1.0:
        return False
    if c <= 0.0 or seen == 0.0:
        return True
    if settings.rule == IMED:
        answer = disagreed >= c * seen or imed_index(seen, disagreed, c) <= settings.most_index
    else:
        if pairs[i, j, STEPS] == 0.0:
            anchor(pairs, i, j)
        below, above = pairs[i, j, BELOW], pairs[i, j, ABOVE]
        gain, lost, under = stakes(a, b, c, below, above, pairs[i, j, WEIGHT])
        loss = lost + moment.rho * under
        gain = max(gain, above * stake)
        price = price_of_looks(settings.kappa, len(pairs), i)
        needed = price * loss * looks_to_learn(seen, disagreed, c)
        answer = gain >= loss or rounds_that_count(moment.m, seen) * gain >= needed
    if seen >= known[i, j, TRY_AT]:
        _keep(pairs, known, i, j, settings, moment, stake, answer)
    return answer


@njit(cache=True, nogil=True, error_model="numpy")
def over_rounds(
    pairs: Pairs, i: int, j: int, rounds: int, settings: ValueSettings, span: Span, stake: float
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
    if settings.rule == IMED:
        return _imed_over_rounds(seen, disagreed, c, rounds, settings.most_index)
    price = price_of_looks(settings.kappa, len(pairs), i)
    if disagreed >= c * seen:
        return YES if _surely_pays(a, b, c, rounds, price, span) else UNSURE
    return NO if _surely_refused(a, b, c, rounds, price, span, stake) else UNSURE


@njit(cache=True, nogil=True, error_model="numpy")
def _imed_over_rounds(
    seen: float, disagreed: float, c: float, rounds: int, most_index: float
) -> int:
    lowest, highest = disagreed / (seen + rounds), (disagreed + rounds) / (seen + rounds)
    if lowest >= c * (1.0 + SLACK):
        return YES
    if highest < c and seen * bernoulli_kl(highest, c) + math.log(seen) > most_index * (
        1.0 + SLACK
    ):
        return NO
    return UNSURE


@njit(cache=True, nogil=True, error_model="numpy")
def _surely_pays(a: float, b: float, c: float, rounds: int, price: float, span: Span) -> bool:
    """Whether looks pay even if all of the next ones agree; first by a cheap bound."""
    # gain - loss = mean - c - rho E[p; p < c], and the last is at most c P(p < c).
    spare = a / (a + b + rounds) - c
    if spare > span.most_rho * c * upper_tail_bound(b + rounds, a, 1.0 - c) + SLACK:
        return True
    if span.least_m == 0.0 or spare < -0.5 * c:
        return False
    below, above, weight = tails(a, b + rounds, c)
    gain, lost, _ = stakes(a, b + rounds, c, below, above, weight)
    loss = lost + span.most_rho * c * below
    seen = a + b - 2.0
    needed = price * loss * (seen + rounds + 1.0)
    return rounds_that_count(span.least_m, seen) * gain > needed + SLACK


@njit(cache=True, nogil=True, error_model="numpy")
def _surely_refused(
    a: float, b: float, c: float, rounds: int, price: float, span: Span, stake: float
) -> bool:
    """Whether looks do not pay even if all of the next ones disagree."""
    seen, disagreed = a + b - 2.0, a - 1.0
    lowest, highest = disagreed / (seen + rounds), (disagreed + rounds) / (seen + rounds)
    if highest >= c:
        return False
    below, above, weight = tails(a + rounds, b, c)
    gain, lost, _ = stakes(a + rounds, b, c, below, above, weight)
    gain = max(gain, above * stake)
    looks = min(seen + 1.0, 0.5 / bernoulli_kl(lowest, c))
    needed = price * lost * looks * (1.0 - SLACK)
    return gain < lost and rounds_that_count(span.most_m, seen + rounds) * gain < needed


@njit(cache=True, nogil=True)
def _keep(
    pairs: Pairs,
    known: Known,
    i: int,
    j: int,
    settings: ValueSettings,
    moment: Moment,
    stake: float,
    answer: bool,
) -> None:
    """Try to make the answer sure for more looks, and for some time at changing m and rho.

    Half as many looks as could bring the share of disagreements to the threshold.
    """
    c, a, b = pairs[i, j, X], pairs[i, j, A], pairs[i, j, B]
    seen = a + b - 2.0
    most_m = np.inf
    if settings.rule == VOI_ANYTIME:
        most_m = 2.0 * moment.m
    elif settings.rule == VOI:
        most_m = 1.0 * moment.m
    most_rho, most_stake = 2.0 * moment.rho, 1.25 * stake
    slack = (a - 1.0) / c - seen if answer else (c * seen - (a - 1.0)) / (1.0 - c)
    rounds = int(min(0.5 * slack, seen))
    if rounds >= _WORTH_KEEPING:
        span = Span(0.0, most_m, 0.0, most_rho)
        sure = over_rounds(pairs, i, j, rounds, settings, span, most_stake)
        if sure == (YES if answer else NO):
            known[i, j, ANSWER] = sure
            known[i, j, UNTIL] = seen + rounds
            known[i, j, MOST_M] = np.inf if sure == YES else most_m
            known[i, j, MOST_RHO] = most_rho if sure == YES else np.inf
            known[i, j, MOST_STAKE] = np.inf if sure == YES else most_stake
            pairs[i, j, STEPS] = 0.0
            return
    known[i, j, TRY_AT] = seen + 8.0 + int(seen / 8.0)
