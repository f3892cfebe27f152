"""The Beta distribution function and its complement, accurate at both ends and for huge counts.

With w = x^a (1-x)^b / B(a, b), one more observation changes one parameter by one and

    I_x(a+1, b) = I_x(a, b) - w/a,      I_x(a, b+1) = I_x(a, b) + w/b,

so a walk over counts needs no special function, only an exact value now and then (`tails`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)

# Beyond this many observations the continued fraction is slow near the mean, and the integrand so
# close to a Gaussian that fixed quadrature is exact to rounding.
_LARGE = 3000.0
# Fewer than this count as few: the density is skew there.
_FEW = 50.0

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NODES = (_NODES + 1) / 2
_WEIGHTS = _WEIGHTS / 2


@njit(cache=True, nogil=True, error_model="numpy")
def _stirling_error(a: float) -> float:
    """Ln Gamma(a) - [(a - 1/2) ln a - a + ln(2 pi)/2]."""
    if a < 10.0:
        return math.lgamma(a) - (a - 0.5) * math.log(a) + a - _HALF_LOG_TWO_PI
    r = 1.0 / a
    s = r * r
    return r * (
        1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _deviance(u: float) -> float:
    """(1+u) ln(1+u) - u, by its series where the difference would cancel."""
    if abs(u) > 0.1:
        if u <= -1.0:
            return 1.0
        return (1.0 + u) * math.log1p(u) - u
    power = u * u
    total = 0.0
    sign = 1.0
    for k in range(2, 20):
        total += sign * power / (k * (k - 1))
        power *= u
        sign = -sign
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _less_product(a: float, n: float, x: float) -> float:
    """A - n x with the rounding error of the product taken back (Dekker's splitting).

    For counts of 10^9 that rounding alone would cost the tails their tenth digit.
    """
    product = n * x
    high_n = n * 134217729.0
    high_n -= high_n - n
    high_x = x * 134217729.0
    high_x -= high_x - x
    low_n, low_x = n - high_n, x - high_x
    error = ((high_n * high_x - product) + high_n * low_x + low_n * high_x) + low_n * low_x
    return (a - product) - error


@njit(cache=True, nogil=True, error_model="numpy")
def log_weight(a: float, b: float, x: float) -> float:
    """Ln w, with w = x^a (1-x)^b / B(a, b), by Loader's saddle-point form.

    Both deviances are written with the one difference a - n x, so that the rounding of 1 - x is not
    multiplied by b.
    """
    n = a + b
    delta = _less_product(a, n, x)
    mean_a, mean_b = n * x, n * (1.0 - x)
    deviance = mean_a * _deviance(delta / mean_a) + mean_b * _deviance(-delta / mean_b)
    corrections = _stirling_error(n) - _stirling_error(a) - _stirling_error(b)
    return corrections - deviance + 0.5 * math.log(a / n * b) - _HALF_LOG_TWO_PI


@njit(cache=True, nogil=True, error_model="numpy")
def _continued_fraction(a: float, b: float, x: float) -> float:
    """A I_x(a, b) / w, by Lentz's method; made for x below the mean."""
    tiny = 1e-300
    n, above, below = a + b, a + 1.0, a - 1.0
    c = 1.0
    d = 1.0 - n * x / above
    if abs(d) < tiny:
        d = tiny
    d = 1.0 / d
    h = d
    for m in range(1, 200_000):
        m2 = 2 * m
        step = m * (b - m) * x / ((below + m2) * (a + m2))
        d = 1.0 + step * d
        if abs(d) < tiny:
            d = tiny
        c = 1.0 + step / c
        if abs(c) < tiny:
            c = tiny
        d = 1.0 / d
        h *= d * c
        step = -(a + m) * (n + m) * x / ((a + m2) * (above + m2))
        d = 1.0 + step * d
        if abs(d) < tiny:
            d = tiny
        c = 1.0 + step / c
        if abs(c) < tiny:
            c = tiny
        d = 1.0 / d
        change = d * c
        h *= change
        if abs(change - 1.0) < 1e-15:
            break
    return h


@njit(cache=True, nogil=True, error_model="numpy")
def _tail_integral(a: float, b: float, x: float, y: float) -> float:
    """Integral of the density over (x, 1) divided by the density at x; x at or above the mean.

    The integrand falls from 1, is log-concave, and is resolved by panels of 16 nodes up to where it
    is e^-40: four of them, or more where a is so small that (1 + u/x)^(a-1) bends sharply near 0.
    `y` is 1 - x, given apart because it may be known to more digits.
    """
    slope = (b - 1.0) / y - (a - 1.0) / x
    curvature = (a - 1.0) / (x * x) + (b - 1.0) / (y * y)
    reach = min(80.0 / (slope + math.sqrt(slope * slope + 80.0 * curvature)), y)
    for _ in range(60):
        if (
            reach >= y
            or (a - 1.0) * math.log1p(reach / x) + (b - 1.0) * math.log1p(-reach / y) < -40.0
        ):
            break
        reach = min(reach * 1.25, y)
    panels = 4 if a > _FEW else 16
    panel = reach / panels
    total = 0.0
    for part in range(panels):
        for k in range(16):
            u = (part + _NODES[k]) * panel
            total += _WEIGHTS[k] * math.exp(
                (a - 1.0) * math.log1p(u / x) + (b - 1.0) * math.log1p(-u / y)
            )
    return total * panel


@njit(cache=True, nogil=True, error_model="numpy")
def tails(a: float, b: float, x: float) -> tuple[float, float, float]:
    """(I, J, w): the distribution function at x, its complement, and w = x^a (1-x)^b / B(a, b).

    The tail on the far side of the mean is computed directly and has full relative accuracy. By the
    symmetry I_x(a, b) = J_{1-x}(b, a) it is always written as an upper tail.
    """
    if x <= 0.0:
        return 0.0, 1.0, 0.0
    if x >= 1.0:
        return 1.0, 0.0, 0.0
    w = math.exp(log_weight(a, b, x))
    n = a + b
    upper = x * n >= a
    y = 1.0 - x
    if not upper:
        a, b, x, y = b, a, y, x
    if n > _LARGE and a >= 1.0 and b > _FEW:
        tail = w / (x * y) * _tail_integral(a, b, x, y)
    else:
        tail = w / b * _continued_fraction(b, a, y)
    if upper:
        return 1.0 - tail, tail, w
    return tail, 1.0 - tail, w


@njit(cache=True, nogil=True, error_model="numpy")
def upper_tail_bound(a: float, b: float, x: float) -> float:
    """A bound from above on J_x(a, b) for a, b >= 1; cheap, and tight enough far from the mean.

    For whole numbers J is the chance that Binomial(a+b-1, x) is at most a-1 (Beta-binomial
    equality), and Chernoff's bound applies; between them J is monotone, hence the rounding.
    """
    a, b = math.ceil(a), math.floor(b)
    n = a + b - 1.0
    p = (a - 1.0) / n
    if b < 1.0 or p >= x:
        return 1.0
    exponent = (1.0 - p) * math.log((1.0 - p) / (1.0 - x))
    if p > 0.0:
        exponent += p * math.log(p / x)
    return math.exp(-n * exponent)
