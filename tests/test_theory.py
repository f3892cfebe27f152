"""The bounds and facts: by hand, against SciPy and mpmath, and by brute force."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import rel_entr

from stopwise import Costs, Problem, StopwiseError
from stopwise.theory import (
    ALPHA,
    beta_cdf,
    kl,
    kl_step,
    kl_step_bound,
    pinsker,
    theorem1_bound,
    theorem2_bound,
    uss_ucb_bound,
)

inner = st.floats(1e-6, 1 - 1e-6)


def cascade(costs=(0.0, 0.1, 0.5)):
    """Three stages, the second optimal: gaps .1, 0, .3 and margins .2, -, .2."""
    rates = [[0, 0.3, 0.4], [0.3, 0, 0.2], [0.4, 0.2, 0]]
    return Problem.from_rates([0.4, 0.2, 0.1], rates, Costs.from_cumulative(costs))


def test_kl_by_hand():
    assert float(kl(0.5, 0.25)) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert float(kl(0, 0.25)) == pytest.approx(-math.log(0.75))
    assert float(kl(1, 0.25)) == pytest.approx(math.log(4))
    assert float(kl(0, 0)) == float(kl(1, 1)) == 0
    assert math.isinf(float(kl(0.1, 0)))
    # The smallest number there is: a quotient by it would overflow.
    assert float(kl(1, 5e-324)) == pytest.approx(1074 * math.log(2))
    assert math.isinf(float(kl(0.9, 1)))


@given(inner, inner)
def test_kl_equals_scipy_and_mpmath(p, q):
    ours = float(kl(p, q))
    assert ours == pytest.approx(float(rel_entr(p, q) + rel_entr(1 - p, 1 - q)), abs=1e-12)
    with mpmath.workdps(50):
        a, b = mpmath.mpf(p), mpmath.mpf(q)
        exact = a * mpmath.log(a / b) + (1 - a) * mpmath.log((1 - a) / (1 - b))
    assert ours == pytest.approx(float(exact), abs=1e-14, rel=1e-9)


@given(st.floats(0, 1), st.floats(0, 1))
def test_pinsker_bounds_kl_from_below(p, q):
    assert float(pinsker(p, q)) <= float(kl(p, q)) + 1e-15


@given(st.floats(0.01, 0.98), st.floats(0.01, 1), st.floats(0.01, 0.99))
def test_kl_step_and_fact_5(x, share, epsilon):
    z = x + share * (0.99 - x)
    if z - x < 1e-3:
        return
    y = kl_step(x, z, epsilon)
    assert x < y < z
    assert float(kl(y, z)) * (1 + epsilon) == pytest.approx(float(kl(x, z)), rel=1e-6)
    assert y - x >= kl_step_bound(x, z, epsilon) * (1 - 1e-9) > 0


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0, 1))
@example(52, 22, 1e-6)  # SciPy's betainc is off by 1e-6 of the value here: 1e-294
def test_beta_binomial_equality(a, b, x):
    with mpmath.workdps(40):
        exact = float(mpmath.betainc(a, b, 0, x, regularized=True))
    assert beta_cdf(a, b, x) == pytest.approx(exact, rel=1e-9, abs=1e-300)


def test_theorem_1_by_hand():
    problem = cascade()
    assert problem.optimal_stage == 1
    d = 0.2 * math.log(0.2 / 0.4) + 0.8 * math.log(0.8 / 0.6)
    expected = 1.5 * math.log(5000) / d * 0.3
    assert float(theorem1_bound(problem, 5000, epsilon=0.5)) == pytest.approx(expected)
    # Nothing to lose beyond the last stage, and nothing where a threshold cannot be reached.
    assert float(theorem1_bound(cascade((0.0, 0.01, 0.02)), 5000)) == 0
    assert float(theorem1_bound(cascade((0.0, 0.1, 1.2)), 5000)) == 0


def test_theorem_1_is_logarithmic_and_needs_weak_dominance():
    curve = theorem1_bound(cascade(), [10, 100, 1000])
    assert np.allclose(np.diff(curve), curve[0])
    with pytest.raises(StopwiseError, match="weak dominance"):
        theorem1_bound(cascade((0.0, 0.1, 0.25)), 100)


def test_theorem_2_is_the_proof_at_its_best_split():
    """The two bounds close the minimum of T x + alpha K ln T (...) over x, up to their slack."""
    k, t = 4, 50_000
    load = ALPHA * k * math.log(t)
    x = np.linspace(1e-4, 1, 200_000)
    strong = (t * x + load / x).min()
    assert float(theorem2_bound(k, t, dominance="strong")) == pytest.approx(strong, rel=1e-6)
    weak = (t * x + 3 * load / x**2).min()
    # The paper rounds the factor 3/2 up to 2.
    assert float(theorem2_bound(k, t, dominance="weak")) == pytest.approx(weak * 4 / 3, rel=1e-6)


def test_uss_ucb_bound_by_brute_force():
    problem = cascade()
    t, alpha = 1000, 0.75
    series = sum(s ** (-2 * alpha) for s in range(1, t + 1))
    log = math.log(t)
    beyond = 1 + (alpha * log + math.sqrt(math.pi * alpha * log / 2) + 0.5) / 0.2**2
    expected = 0.1 * series / (2 * 0.2**2) + 0.3 * beyond
    assert float(uss_ucb_bound(problem, t, alpha=alpha)) == pytest.approx(expected)
    harmonic = sum(1 / s for s in range(1, t + 1))
    half = float(uss_ucb_bound(problem, t, alpha=0.5))
    beyond = 1 + (0.5 * log + math.sqrt(math.pi * 0.5 * log / 2) + 0.5) / 0.2**2
    assert half == pytest.approx(0.1 * harmonic / (2 * 0.2**2) + 0.3 * beyond)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: kl(1.1, 0.5), "p"),
        (lambda: kl(0.5, float("nan")), "q"),
        (lambda: kl_step(0.5, 0.4, 0.1), "x, z"),
        (lambda: kl_step(0.3, 0.4, 1), "epsilon"),
        (lambda: beta_cdf(0, 1, 0.5), "a"),
        (lambda: theorem1_bound(cascade(), 0), "rounds"),
        (lambda: theorem1_bound(cascade(), 10, epsilon=0), "epsilon"),
        (lambda: theorem2_bound(1, 10, dominance="weak"), "stages"),
        (lambda: theorem2_bound(2, 10, dominance="some"), "dominance"),
        (lambda: uss_ucb_bound(cascade(), 10, alpha=0.4), "alpha"),
    ],
)
def test_refusals_name_the_field(call, field):
    with pytest.raises(StopwiseError, match=f"^{field}: got"):
        call()
