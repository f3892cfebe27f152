"""Logarithms of probabilities of sequences of agreements and disagreements."""

from __future__ import annotations

import math

_TABLE = 4096
# Most is asked of a few thousand observations at most: looked up, that takes half the time.
_HALVES = [math.lgamma(k + 0.5) for k in range(_TABLE)]
_WHOLES = [math.lgamma(n + 1.0) for n in range(_TABLE)]
_LIKELIHOODS = [0.0, *(n * math.log(n) for n in range(1, _TABLE))]
_LOG_PI = math.log(math.pi)


def log_mixture(n: int, k: int) -> float:
    """That of a sequence with k ones in n, over all rates (Krichevsky-Trofimov).

    >>> round(math.exp(log_mixture(2, 1)), 6)
    0.125
    """
    if n < _TABLE:
        return _HALVES[k] + _HALVES[n - k] - _WHOLES[n] - _LOG_PI
    return math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - math.lgamma(n + 1.0) - _LOG_PI


def log_likelihood(n: int, k: int) -> float:
    """That of the largest probability that any one rate gives the sequence.

    >>> math.exp(log_likelihood(2, 1))
    0.25
    """
    if n < _TABLE:
        return _LIKELIHOODS[k] + _LIKELIHOODS[n - k] - _LIKELIHOODS[n]
    if not 0 < k < n:
        return 0.0
    return k * math.log(k / n) + (n - k) * math.log((n - k) / n)


def log_sum(a: float, b: float) -> float:
    """That of a sum, from those of its parts.

    >>> round(math.exp(log_sum(0.0, 0.0)), 6)
    2.0
    """
    if a < b:
        a, b = b, a
    return a if a == math.inf else a + math.log1p(math.exp(b - a))
