"""The pieces of the compiled loops, each against something that shares no line with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from exact_beta import both_tails
from instances import instance
from random_cascades import random_costs, random_evidence
from stopwise import Costs, Problem
from stopwise.policies.uss_ts import UssTs
from stopwise.simulation.kernels import pairs, random, stream
from stopwise.simulation.kernels.beta import tails, upper_tail_bound
from stopwise.simulation.kernels.patterns import make_tables
from stopwise.simulation.kernels.thompson import walks as walking
from stopwise.simulation.kernels.thompson.settings import STEP_WALK

FALSE_ALARM_RATE = 1e-9
"""Of each statistical test of this file (bounded)."""


def hard_cases() -> list[tuple[float, float, float]]:
    """Counts from 1 to 10^9, skewed and not, x from the mean out to 30 standard deviations."""
    cases = []
    for n in (2.0, 7.0, 100.0, 2_900.0, 3_100.0, 10**5, 10**7, 10**9):
        for share in (0.5, 0.2, 0.003):
            a = max(1.0, round(n * share))
            b = max(1.0, n - a)
            mean = a / (a + b)
            deviation = math.sqrt(mean * (1 - mean) / (a + b + 1))
            for z in (0.0, 0.3, -2.0, 5.0, -9.0, 30.0):
                x = mean + z * deviation
                if 0 < x < 1:
                    cases.append((a, b, x))
    cases += [(1.0, 10.0**9, 1e-9), (10.0**9, 1.0, 1 - 1e-9), (2.0, 10.0**6, 3e-6)]
    cases += [(5.0, 10.0**9, 2e-9), (30.0, 10.0**9, 2e-8), (10.0**9, 4.0, 1 - 2e-9)]
    cases += [(1.5, 10.0**6, 2e-6), (2.5, 10.0**8, 4e-8), (10.0**7, 1.7, 1 - 3e-7)]
    cases += [(3.0, 10.0**9, 1e-7), (51.0, 10.0**9, 9e-8), (49.5, 10.0**7, 5e-6)]
    cases += [(0.5, 0.5, 0.3), (0.3, 800.5, 0.001), (3.7, 2_000.2, 0.003), (1.5, 4_000.0, 1e-3)]
    return cases


@pytest.mark.parametrize("part", range(8))
def test_tails_against_50_digits(part: int) -> None:
    cases = hard_cases()
    assert len(cases) > 120
    for a, b, x in cases[part::8]:
        below, above, _ = tails(a, b, x)
        exact_below, exact_above = both_tails(a, b, x)
        if min(exact_below, exact_above) < 1e-280:
            continue  # beyond what a float holds
        assert abs(below / exact_below - 1) < 1e-9, (a, b, x)
        assert abs(above / exact_above - 1) < 1e-9, (a, b, x)


def test_tails_against_polynomials() -> None:
    """Hand-sized: I_x(1, 1) = x, I_x(2, 1) = x^2, I_x(1, 2) = 1 - (1-x)^2; and the ends."""
    assert tails(1.0, 1.0, 0.3)[:2] == pytest.approx((0.3, 0.7), rel=1e-14)
    assert tails(2.0, 1.0, 0.3)[:2] == pytest.approx((0.09, 0.91), rel=1e-14)
    assert tails(1.0, 2.0, 0.3)[:2] == pytest.approx((0.51, 0.49), rel=1e-14)
    assert tails(5.0, 5.0, 0.0) == (0.0, 1.0, 0.0)
    assert tails(5.0, 5.0, 1.0) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_stepping_keeps_the_tails(seed: int) -> None:
    """Along random paths the carried tails stay within 1e-9 of direct ones.

    Below 10^-17 only the absolute size is kept, to a thousandth of a billionth of that.
    """
    rng = np.random.default_rng(seed)
    marks = np.array([[0.0, 0.0], [0.0, 1.0]])  # class 0 agrees, class 1 does not
    for _ in range(8):
        x = float(rng.choice([0.01, 0.05, 0.2, 0.5, 0.8, 0.97]))
        rate = float(np.clip(x + rng.choice([-0.3, -0.05, 0.0, 0.02, 0.3]), 0.0, 1.0))
        prior = rng.choice([0.5, 1.0, 3.0], size=2)
        state = pairs.new_pairs(np.array([[0, x], [-x, 0]]), *prior)
        for step in range(3000):
            if step == 1500:
                rate = 1 - rate  # the world turns: what had vanished must grow back
            thompson_step(state, marks, int(rng.random() < rate))
            cell = state[0, 1]
            below, above, _ = tails(cell[pairs.A], cell[pairs.B], x)
            assert abs(cell[pairs.BELOW] - below) <= 1e-9 * below + 1e-26
            assert abs(cell[pairs.ABOVE] - above) <= 1e-9 * above + 1e-26
    assert cell[pairs.A] + cell[pairs.B] == pytest.approx(3000 + prior.sum())


@njit(cache=True)
def thompson_step(state, marks, k):  # type: ignore[no-untyped-def]
    """`observe` is inlined where it is called, so it wants a compiled caller."""
    if pairs.observe(state, marks, k, 1, 0):
        pairs.anchor_due(state, 1, 0)


def test_depth_distribution_is_the_policy() -> None:
    rng = np.random.default_rng(3)
    smallest = 1.0
    for _ in range(1500):
        count = int(rng.integers(2, 9))
        evidence = random_evidence(rng, count, int(rng.choice([0, 3, 50, 2_000, 100_000])))
        costs = random_costs(rng, count)
        policy = UssTs(*rng.choice([0.5, 1.0, 2.5], size=2))
        state = pairs.new_pairs(
            np.array(costs.thresholds), policy.prior_disagreed, policy.prior_agreed
        )
        for i, j in zip(*np.triu_indices(count, 1), strict=True):
            state[i, j, pairs.A] += evidence.disagreed[i, j]
            state[i, j, pairs.B] += evidence.seen[i, j] - evidence.disagreed[i, j]
            pairs.anchor(state, i, j)
        found = np.zeros(count)
        walking.depth_distribution(state, state, 0, STEP_WALK, found)
        wanted = policy.probabilities(evidence, 1, costs)
        compared = wanted > 1e-250
        np.testing.assert_allclose(found[compared], wanted[compared], rtol=1e-9)
        assert (found[~compared] < 1e-240).all()
        smallest = min(smallest, float(wanted[wanted > 0].min()))
    assert smallest < 1e-100  # tiny ones were among them


@given(
    st.floats(1, 2000), st.floats(1, 2000), st.floats(0.001, 0.999)
)  # fmt: skip
@settings(max_examples=400, deadline=None)
def test_upper_tail_bound_is_one(a: float, b: float, x: float) -> None:
    _, above, _ = tails(a, b, x)
    assert upper_tail_bound(a, b, x) >= above * (1 - 1e-11)


@given(
    st.integers(0, 3000), st.integers(0, 3000), st.sampled_from([0.5, 1.0, 2.3]),
    st.floats(0.001, 0.999), st.integers(1, 400), st.integers(0, 2**32),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_bounds_hold_whatever_is_output(
    disagreed: int, agreed: int, prior: float, x: float, rounds: int, seed: int
) -> None:
    state = pairs.new_pairs(np.array([[0, x], [-x, 0]]), disagreed + prior, agreed + prior)
    bounds = [pairs.cheap_bounds(state, 0, 1, rounds), pairs.exact_bounds(state, 0, 1, rounds)]
    rng = np.random.default_rng(seed)
    for more in {0, rounds, int(rng.integers(rounds + 1))}:
        for differ in {0, more, int(rng.integers(more + 1))}:
            below, above, _ = tails(
                disagreed + prior + differ, agreed + prior + more - differ, x
            )  # fmt: skip
            for low_below, low_above in bounds:
                # What the loops take back before they trust a bound is 1e-11 of it.
                assert low_below * (1 - 1e-11) <= below
                assert low_above * (1 - 1e-11) <= above


def test_tables_merge_only_what_no_rule_can_tell_apart() -> None:
    problem = Problem.from_patterns(
        [("a", list("aab"), 0.1), ("b", list("bba"), 0.2), ("a", list("abc"), 0.3),
         ("c", list("cab"), 0.15), ("a", list("aaa"), 0.25)],
        Costs.from_cumulative((0.0, 0.1, 0.2)),
    )  # fmt: skip
    tables = make_tables(problem.with_rows(np.array([0, 2, 1, 3, 4, 4])), "round-robin")
    assert tables.outputs.tolist() == [[0, 0, 1], [0, 1, 2], [0, 0, 0]]
    assert tables.rows.tolist() == [0, 1, 0, 1, 2, 2]
    tables = make_tables(problem, "independent")
    assert len(tables.rows) == 0
    np.testing.assert_allclose(tables.cumulative, [0.3, 0.75])
    start = tables.prefix_start
    assert start.tolist() == [0, 1, 3, 6]
    np.testing.assert_allclose(tables.prefix_p[start[1] : start[2]], [0.55, 0.45])
    for depth in range(3):
        assert tables.prefix_p[start[depth] : start[depth + 1]].sum() == pytest.approx(1)


def test_rows_met() -> None:
    tables = make_tables(instance("heart-1", "round-robin"), "round-robin")
    rng = np.random.default_rng(7)
    rows = tables.rows
    for _ in range(300):
        t, rounds = int(rng.integers(0, 1500)), int(rng.integers(0, 1500))
        met = np.bincount(
            [rows[(t + step) % len(rows)] for step in range(rounds)], minlength=len(tables.outputs)
        )
        for k in range(len(tables.outputs)):
            assert stream.rows_met(tables, k, t, rounds) == met[k]


def _tolerance(draws: int, p: np.ndarray, comparisons: int) -> np.ndarray:
    """Bernstein: a count of `draws` strays further with chance FALSE_ALARM_RATE / comparisons."""
    logarithm = math.log(2 * comparisons / FALSE_ALARM_RATE)
    variance = draws * p * (1 - p)
    return np.asarray(logarithm / 3 + np.sqrt((logarithm / 3) ** 2 + 2 * variance * logarithm))


@njit(cache=True)
def many_waits(state, p, most, out):  # type: ignore[no-untyped-def]
    words = random.words_of(state)
    for k in range(len(out)):
        words, out[k], _ = random.skip(words, p, most)
    random.keep_words(state, words)


@pytest.mark.parametrize("p", [0.0, 1e-12, 0.003, 0.1499, 0.5, 0.6, 0.99, 1.0])
def test_skip_is_geometric(p: float) -> None:
    state = np.random.SeedSequence(11).generate_state(4, np.uint64)
    out = np.empty(200_000, dtype=np.int64)
    many_waits(state, p, 40, out)
    law = np.append(p * (1 - p) ** np.arange(40), (1 - p) ** 40)
    counts = np.bincount(out, minlength=41)
    assert (np.abs(counts - len(out) * law) <= _tolerance(len(out), law, 8 * 41)).all()


def test_split() -> None:
    """Multinomial: each share binomial, and the sum exact."""
    rng = np.random.default_rng(12)
    weights = np.array([0.0, 0.2, 0.05, 0.4])
    out, sums, pairs_met = np.empty(4, dtype=np.int64), np.zeros(4), 0
    for _ in range(20_000):
        random.split(rng, 7, weights, out)
        assert out.sum() == 7
        sums += out
        pairs_met += int(out[1] == 2 and out[3] == 5)
    law = weights / weights.sum()
    assert (np.abs(sums - 140_000 * law) <= _tolerance(140_000, law, 5)).all()
    both = np.array([21 * law[1] ** 2 * law[3] ** 5])
    assert abs(pairs_met - 20_000 * both[0]) <= _tolerance(20_000, both, 5)[0]
    random.split(rng, 5, np.array([0.0, 3.0]), out[:2])
    assert out[:2].tolist() == [0, 5]


def test_uniform_is_uniform() -> None:
    """By the bound of Dvoretzky, Kiefer, Wolfowitz and Massart on the distance to its law."""
    state = np.random.SeedSequence(13).generate_state(4, np.uint64)
    values = np.sort(many_uniforms(state, 200_000))
    assert 0 < values[0] < values[-1] < 1
    steps = np.arange(1, len(values) + 1) / len(values)
    distance = max((steps - values).max(), (values - steps).max() + 1 / len(values))
    assert distance < math.sqrt(math.log(2 / FALSE_ALARM_RATE) / (2 * len(values)))


@njit(cache=True)
def many_uniforms(state, number):  # type: ignore[no-untyped-def]
    out = np.empty(number)
    for k in range(number):
        out[k] = random.uniform(state)
    return out


def test_skip_leaves_a_uniform_number() -> None:
    """What `skip` returns beside the wait is uniform up to p, also where thinning rejects most."""
    state = np.random.SeedSequence(14).generate_state(4, np.uint64)
    rejecting = np.nextafter(0.5, 1.0)  # just above a value of the table
    for p in (rejecting, np.nextafter(0.5, 0.0), 1.0, 3e-19):
        left = np.empty(20_000)
        many_lefts(state, p, left)
        assert left.min() > 0
        assert left.max() < p
        assert_law(left / p, np.linspace(0, 1, 1001), np.linspace(0, 1, 1001))


@njit(cache=True)
def many_lefts(state, p, out):  # type: ignore[no-untyped-def]
    words = random.words_of(state)
    for k in range(len(out)):
        passed = most = 2**53  # the longest horizon
        while passed == most:  # without a success there is no such number
            words, passed, out[k] = random.skip(words, p, most)
    random.keep_words(state, words)


def test_exponential_numbers() -> None:
    """The whole law, the tail beyond the ziggurat's layers among it; and the layers close."""
    state = np.random.SeedSequence(15).generate_state(4, np.uint64)
    values = np.empty(2_000_000)
    many_exponentials(state, values)
    points = np.concatenate([[1e-6, 1e-3], np.linspace(0.01, 12.0, 600)])
    assert_law(values, points, -np.expm1(-points))
    # The tail by itself, given that it is reached: its share of all is too small to show above.
    tail = values[values > random._TAIL] - random._TAIL
    share = np.array([math.exp(-random._TAIL)])
    assert abs(len(tail) - len(values) * share) <= _tolerance(len(values), share, 1)
    assert len(tail) > 700
    assert_law(tail, points, -np.expm1(-points))
    top = random._ENDS[-2]
    area = (random._TAIL + 1) * math.exp(-random._TAIL)
    assert top * -math.expm1(-top) == pytest.approx(area, rel=1e-12)


def assert_law(values: np.ndarray, points: np.ndarray, law: np.ndarray) -> None:
    """The distance of distribution functions at the points, bounded as for uniform numbers."""
    found = np.searchsorted(np.sort(values), points, side="right") / len(values)
    limit = math.sqrt(math.log(2 / FALSE_ALARM_RATE) / (2 * len(values)))
    assert np.abs(found - law).max() < limit


@njit(cache=True)
def many_exponentials(state, out):  # type: ignore[no-untyped-def]
    words = random.words_of(state)
    for k in range(len(out)):
        words, out[k] = random.next_exponential(words)
    random.keep_words(state, words)
