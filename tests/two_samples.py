"""Two-sample tests whose false-alarm rate is a theorem, whatever the law and however many ties.

- Kolmogorov-Smirnov: for two samples of the same size n >= 458 of one law,
  P(D >= d) <= 2 exp(-n d^2) (Wei and Dudley 2012, Theorem 1a; ties only make D smaller).
- Means: pair the samples. Under one law every difference is as likely to have either sign, so by
  Hoeffding's inequality P(|sum d| >= z sqrt(sum d^2)) <= 2 exp(-z^2 / 2).

With N comparisons in a family each gets the share rate / N (Bonferroni).
"""

from __future__ import annotations

import math

import numpy as np


def distance(one: np.ndarray, two: np.ndarray) -> float:
    """The Kolmogorov-Smirnov distance."""
    points = np.unique(np.concatenate([one, two]))
    below_one = np.searchsorted(np.sort(one), points, side="right") / len(one)
    below_two = np.searchsorted(np.sort(two), points, side="right") / len(two)
    return float(np.abs(below_one - below_two).max())


def shift(one: np.ndarray, two: np.ndarray) -> float:
    """The sum of paired differences over the root of the sum of their squares."""
    d = one.astype(float) - two
    return float(abs(d.sum()) / math.sqrt((d**2).sum())) if d.any() else 0.0


def assert_same_law(
    one: np.ndarray, two: np.ndarray, *, rate: float, comparisons: int, what: str
) -> None:
    """Both tests at rate / comparisons each, so `comparisons` must count two for every call."""
    n = len(one)
    assert n == len(two) >= 458
    logarithm = math.log(2 * comparisons / rate)
    d, z = distance(one, two), shift(one, two)
    assert d < math.sqrt(logarithm / n), f"{what}: distance {d:.4f}"
    assert z < math.sqrt(2 * logarithm), f"{what}: means {one.mean()}, {two.mean()}, z = {z:.2f}"
