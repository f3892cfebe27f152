"""Draws from a distribution of which only the density is known, up to a factor.

A population of points walks by the differences of others (differential evolution Markov chain, ter
Braak, 2006), so steps fit the shape of the distribution without any setting. Points are moved in
two halves, each by the differences within the other half: then the moves do not depend on what they
move, and every step leaves the distribution as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stopwise.arrays import FloatArray

Density = Callable[[FloatArray], FloatArray]
"""The logarithm of the density, of several points at once."""

_NOISE = 0.02
_SHRINK = np.array([1.0, 1.0, 1.0, 0.5, 0.2])
_CHANGED = np.array([0.2, 0.5, 1.0])
"""Sizes of a step, and shares of the coordinates that it changes, taken with equal chance."""


def walk(
    log_density: Density,
    start: FloatArray,
    *,
    steps: int,
    keep_every: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Walk from a population of points; the first half of the steps is not kept.

    Returns:
        The points kept, one row each.

    >>> rng = np.random.default_rng(0)
    >>> start = rng.normal(size=(20, 2))
    >>> points = walk(lambda x: -0.5 * (x**2).sum(axis=1), start, steps=400, keep_every=10,
    ...               generator=rng)
    >>> points.shape, bool(np.abs(points.mean(axis=0)).max() < 0.3)
    ((400, 2), True)
    """
    points = np.array(start, dtype=np.float64)
    count, size = points.shape
    heights = log_density(points)
    halves = (np.arange(count // 2), np.arange(count // 2, count))
    longest = 2.38 / np.sqrt(2 * size)
    kept = []
    for step in range(steps):
        for moved, others in (halves, halves[::-1]):
            number = len(moved)
            first = generator.integers(0, len(others), number)
            second = (first + generator.integers(1, len(others), number)) % len(others)
            # As `generator.choice` draws, without what it checks each time.
            length = longest * _SHRINK[generator.integers(0, len(_SHRINK), number)]
            drawn = generator.random((number, size))
            changed = drawn < _CHANGED[generator.integers(0, len(_CHANGED), (number, 1))]
            shift = length[:, None] * (points[others[first]] - points[others[second]])
            shift += _NOISE * generator.normal(size=(number, size))
            proposed = points[moved] + changed * shift
            new = log_density(proposed)
            taken = np.log(generator.random(number)) < new - heights[moved]
            points[moved[taken]] = proposed[taken]
            heights[moved[taken]] = new[taken]
        if 2 * step >= steps and step % keep_every == 0:
            kept.append(points.copy())
    return np.concatenate(kept)
