"""Both tails of a Beta distribution by mpmath, sharing nothing with stopwise.

Arithmetic has 50 digits (the integral 25); the result is good to at least 15.
"""

from __future__ import annotations

from mpmath import exp, log, log1p, loggamma, mp, mpf, quad, sqrt


def both_tails(a: float, b: float, x: float) -> tuple[mpf, mpf]:
    """(I, J) at x, each with full relative accuracy: the smaller is computed, directly."""
    mp.dps = 50
    a, b, x = mpf(a), mpf(b), mpf(x)
    swap = x * (a + b) > a
    if swap:
        a, b, x = b, a, 1 - x
    log_w = loggamma(a + b) - loggamma(a) - loggamma(b) + a * log(x) + b * log1p(-x)
    if a + b < 20_000:
        small = exp(log_w) / a / _fraction(a, b, x)
    else:
        small = exp(log_w) / (x * (1 - x)) * _integral(a, b, x)
    return (1 - small, small) if swap else (small, 1 - small)


def _fraction(a: mpf, b: mpf, x: mpf) -> mpf:
    """The continued fraction 1 + d1/(1 + d2/(1 + ...)), evaluated from the end."""

    def step(k: int) -> mpf:
        m = k // 2
        if k % 2:
            return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))

    def value(depth: int) -> mpf:
        tail = mpf(1)
        for k in range(depth, 0, -1):
            tail = 1 + step(k) / tail
        return tail

    depth = 60
    one = value(depth)
    while True:
        depth *= 2
        two = value(depth)
        if abs(one / two - 1) < mpf(10) ** -20:
            return two
        one = two


def _integral(a: mpf, b: mpf, x: mpf) -> mpf:
    """Density integrated from 0 to x over density at x, panel by panel; x at most the mean.

    A panel is as long as the integrand needs to change by a factor of a few e-folds.
    """
    mp.dps = 25

    def ratio(u: mpf) -> mpf:
        return exp((a - 1) * log1p(-u / x) + (b - 1) * log1p(u / (1 - x)))

    slope = abs((a - 1) / x - (b - 1) / (1 - x))
    curvature = (a - 1) / x**2 + (b - 1) / (1 - x) ** 2
    panel = 4 / (slope + sqrt(curvature))
    total, start = mpf(0), mpf(0)
    while start < x:
        end = min(start + panel, x)
        part = quad(ratio, [start, end], maxdegree=5)
        total += part
        start = end
        if part < total * mpf(10) ** -16:
            break
    mp.dps = 50
    return total
