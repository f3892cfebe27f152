"""Bernoulli KL divergence, the facts of the paper's appendix, and the bounds that papers state.

A bound here is what its paper *states*. Where we doubt it, the doubt stands beside the function,
as text that the report of `stopwise reproduce` prints too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from stopwise.checks import (
    StopwiseError,
    fail,
    finite_number,
    names_settings,
    number_within,
    one_of,
    positive_number,
    whole_number,
)
from stopwise.costs import FloatArray
from stopwise.lazy import lazy_names
from stopwise.problem import Problem

__all__ = [
    "ALPHA",
    "DOUBT_SMALL_MARGINS",
    "DOUBT_TRANSITIVITY",
    "beta_cdf",
    "kl",
    "kl_step",
    "kl_step_bound",
    "pinsker",
    "share_bounds",
    "theorem1_bound",
    "theorem2_bound",
    "uss_ucb_bound",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, {})

Dominance = Literal["strong", "weak"]
"""Under which condition a bound holds: strong or weak dominance."""

DOUBT_TRANSITIVITY = (
    "Theorem 1 and Theorem 2 assume that the sampled preferences of a round are transitive. USS-TS"
    " draws one Beta sample for every pair, independently, and independent draws are not"
    " transitive: the walk can leave arm 1 because of arm 3 and then stop at arm 2, so that the"
    " pair (1, 3) that sent it on gets no data. In simulation the regret on PIMA instance 3 grows"
    " like a power of T, not like its logarithm."
)
"""Why the problem-dependent bound may not hold for the algorithm as printed."""

DOUBT_SMALL_MARGINS = (
    "The proof of Theorem 2 bounds the rounds spent on arms with a margin below xi' by T xi', as if"
    " such an arm cost its margin a round. An arm beyond the optimal one costs xi_j + beta, where"
    " beta is twice the chance that it is wrong while the optimal arm is right. With beta fixed and"
    " xi towards 0 the regret of USS-TS looks linear in simulation."
)
"""Why the problem-independent bound under weak dominance may not hold."""

ALPHA = 10.0
"""The constant alpha of the proof of Theorem 2, which the paper leaves unnamed.

For arms beyond the optimal one the appendix gives E M_j <= 9 ln T / (2 xi^2) + 1 + 9 / (2 xi^2),
which is at most 10 ln T / xi^2 once ln T >= 1. For arms before it, Lemma 4 hides its constant in a
Theta, so 10 is the part of alpha that can be read off, not a proved value.
"""


def kl(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """The divergence d(p, q) of two Bernoulli distributions, in nats; element by element.

    >>> kl(0.5, 0.25)   # ln 2 / 2 + ln (2/3) / 2
    array(0.14384104)
    >>> kl([0, 0.3, 1], [0, 0.3, 0])
    array([ 0.,  0., inf])
    """
    p, q = _probabilities("p", p), _probabilities("q", q)
    with np.errstate(divide="ignore", invalid="ignore"):
        # 0 ln 0 = 0, and x ln(x / 0) is infinite for x > 0.
        first = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0)
        second = np.where(p < 1, (1 - p) * (np.log1p(-p) - np.log1p(-q)), 0.0)
    return np.asarray(np.maximum(first + second, 0.0))


def pinsker(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """Pinsker's lower bound on `kl` (Fact 3 of the appendix): 2 (p - q)^2.

    >>> float(pinsker(0.5, 0.25)) <= float(kl(0.5, 0.25))
    True
    """
    return np.asarray(2.0 * (_probabilities("p", p) - _probabilities("q", q)) ** 2)


@names_settings
def kl_step(x: float, z: float, epsilon: float) -> float:
    """The y between x and z with d(y, z) = d(x, z) / (1 + epsilon), found by bisection.

    The proof of Lemma 7 chooses its two thresholds this way.

    >>> y = kl_step(0.2, 0.4, 0.5)
    >>> bool(np.isclose(kl(y, 0.4), kl(0.2, 0.4) / 1.5))
    True
    """
    x, z, epsilon = _step(x, z, epsilon)
    target = float(kl(x, z)) / (1 + epsilon)
    low, high = x, z
    while (middle := (low + high) / 2) not in (low, high):
        # d(y, z) falls as y goes up to z.
        low, high = (middle, high) if float(kl(middle, z)) > target else (low, middle)
    return middle


@names_settings
def kl_step_bound(x: float, z: float, epsilon: float) -> float:
    """What Fact 5 of the appendix says `kl_step` is at least away from x.

    >>> kl_step(0.2, 0.4, 0.5) - 0.2 >= kl_step_bound(0.2, 0.4, 0.5) > 0
    True
    """
    x, z, epsilon = _step(x, z, epsilon)
    odds = math.log(z * (1 - x) / (x * (1 - z)))
    return epsilon / (1 + epsilon) * float(kl(x, z)) / odds


def beta_cdf(a: int, b: int, x: float) -> float:
    """The Beta distribution function at whole-number parameters, as a binomial sum (Fact 1).

    P(Beta(a, b) <= x) = 1 - P(Binomial(a + b - 1, x) <= a - 1). Slow and plain: it shares nothing
    with the special functions that the policies use, which is what it is for.

    >>> beta_cdf(1, 1, 0.25)
    0.25
    >>> beta_cdf(1, 3, 0.25)   # 1 - (3/4)^3
    0.578125
    """
    a, b = whole_number("a", a, least=1), whole_number("b", b, least=1)
    x = float(_probabilities("x", x))
    n = a + b - 1
    # The upper sum is the same as one minus the lower, and keeps the digits of a small result.
    return math.fsum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))


@names_settings
def share_bounds(
    disagreed: ArrayLike, seen: ArrayLike, tail: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bound on a probability, each wrong with a chance of at most `tail`.

    These are the Clopper-Pearson bounds, quantiles of Beta(S, F + 1) and Beta(S + 1, F). They hold
    for every true value, and they lie outside the credible bounds of the uniform prior, quantiles
    of Beta(S + 1, F + 1): the level is kept as a confidence level and as a credible one.

    >>> low, high = share_bounds(0, 100, 0.05)
    >>> float(low), round(float(high), 4)     # 1 - 0.05^(1/100)
    (0.0, 0.0295)
    """
    from scipy.special import betainccinv, betaincinv

    s = np.asarray(disagreed, dtype=np.float64)
    n = np.asarray(seen, dtype=np.float64)
    f = n - s
    # Parameters of 0 stand for a point mass at the end; 1 only keeps the function defined there.
    low = np.where(s > 0, betaincinv(np.maximum(s, 1e-9), f + 1, tail), 0.0)
    high = np.where(f > 0, betainccinv(s + 1, np.maximum(f, 1e-9), tail), 1.0)
    return np.asarray(low), np.asarray(high)


@names_settings
def theorem1_bound(problem: Problem, rounds: ArrayLike, *, epsilon: float = 0.1) -> FloatArray:
    """Theorem 1 of the paper: the leading term of USS-TS's problem-dependent bound, over T.

    sum over j > i* of (1 + epsilon) ln T / d(p, p + xi_j) * Delta_j, with p the disagreement of i*
    and j. The term O((K - i*) / epsilon^2) is left out: its constants are not stated. It is nothing
    where the last stage is optimal, and infinitely loose towards xi = 0. See `DOUBT_TRANSITIVITY`.

    >>> from stopwise import Costs
    >>> costs = Costs.from_cumulative((0.0, 0.4))
    >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
    >>> theorem1_bound(problem, [1000, 10000], epsilon=0.1).round(1)
    array([16.6, 22.1])
    """
    times = _rounds(rounds)
    epsilon = positive_number("epsilon", epsilon)
    _need_weak_dominance(problem)
    best = problem.optimal_stage
    slope = 0.0
    for j in range(best + 1, problem.stage_count):
        p = float(problem.disagreements[best, j])
        # A threshold of 1 or more is never reached by a sample: d is infinite, the term nothing.
        divergence = float(kl(p, min(p + float(problem.margins[j]), 1.0)))
        slope += float(problem.gaps[j]) / divergence
    return np.asarray((1 + epsilon) * slope * np.log(times))


@names_settings
def theorem2_bound(
    stages: int,
    rounds: ArrayLike,
    *,
    dominance: Dominance,
    alpha: float = ALPHA,
) -> FloatArray:
    """Theorem 2 of the paper: USS-TS's problem-independent bounds, over T.

    2 (alpha K T ln T)^(1/2) under strong dominance, 2 (6 alpha K ln T)^(1/3) T^(2/3) under weak.
    See `ALPHA` for the constant, `DOUBT_TRANSITIVITY` and `DOUBT_SMALL_MARGINS` for the doubts.

    >>> theorem2_bound(3, 10_000, dominance="strong", alpha=1).round()
    np.float64(1051.0)
    >>> theorem2_bound(3, 10_000, dominance="weak", alpha=1).round()
    np.float64(5100.0)
    """
    stages = whole_number("stages", stages, least=2)
    times = _rounds(rounds)
    alpha = positive_number("alpha", alpha)
    logs = np.log(times)
    if one_of("dominance", dominance, get_args(Dominance)) == "strong":
        return np.asarray(2 * np.sqrt(alpha * stages * times * logs))
    return np.asarray(2 * np.cbrt(6 * alpha * stages * logs) * np.cbrt(times) ** 2)


@names_settings
def uss_ucb_bound(problem: Problem, rounds: ArrayLike, *, alpha: float = 0.51) -> FloatArray:
    """USS-UCB's problem-dependent bound (Verma et al., AISTATS 2019), over T.

    Rounds at a stage j before the optimal one: at most C / (2 xi_j^2), with C the sum of t^(-2
    alpha) up to T; beyond it: 1 + (alpha ln T + sqrt(pi alpha ln T / 2) + 1/2) / xi_j^2. Each times
    its gap. C stays bounded only for alpha > 0.5; at 0.5, the paper's choice, it grows like ln T.

    >>> from stopwise import Costs
    >>> costs = Costs.from_cumulative((0.0, 0.4))
    >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
    >>> uss_ucb_bound(problem, 10_000, alpha=0.5).round(1)
    np.float64(39.2)
    """
    from scipy.special import digamma, zeta

    times = _rounds(rounds)
    alpha = number_within("alpha", alpha, "0.5 or more", least=0.5)
    _need_weak_dominance(problem)
    if alpha == 0.5:
        series = digamma(times + 1) + np.euler_gamma
    else:
        series = zeta(2 * alpha, 1) - zeta(2 * alpha, times + 1)
    logs = np.log(times)
    beyond = alpha * logs + np.sqrt(np.pi * alpha * logs / 2) + 0.5
    total = np.zeros_like(times)
    for j in range(problem.stage_count):
        gap, margin = float(problem.gaps[j]), float(problem.margins[j])
        if j == problem.optimal_stage or gap == 0:
            continue
        if margin <= 0:
            return np.full_like(times, np.inf)
        square = margin**2
        visits = series / (2 * square) if j < problem.optimal_stage else 1 + beyond / square
        total = total + gap * visits
    return np.asarray(total)


def _need_weak_dominance(problem: Problem) -> None:
    if not problem.weak_dominance:
        raise StopwiseError(
            f"problem: its margin is {problem.margin:.4g}, but the bound needs weak dominance"
            " (a margin above 0)"
        )


def _rounds(rounds: ArrayLike) -> FloatArray:
    times = np.asarray(rounds, dtype=np.float64)
    if not (np.isfinite(times) & (times >= 1)).all():
        raise fail("rounds", rounds, "numbers of rounds, 1 or more")
    return times


def _probabilities(field: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if not ((array >= 0) & (array <= 1)).all():
        raise fail(field, values, "probabilities between 0 and 1")
    return array


def _step(x: float, z: float, epsilon: float) -> tuple[float, float, float]:
    x, z = finite_number("x", x), finite_number("z", z)
    if not 0 < x < z < 1:
        raise fail("x, z", (x, z), "two probabilities with 0 < x < z < 1")
    accepted = "a number between 0 and 1"
    return x, z, number_within("epsilon", epsilon, accepted, above=0, below=1)
