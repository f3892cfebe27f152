"""Draws from a distribution of which only the density is known, up to a factor.

A population of points walks by the differences of others (differential evolution Markov chain, ter
Braak, 2006), so steps fit the shape of the distribution without any setting. Points are moved in
two halves, each by the differences within the other half: then the moves do not depend on what they
move, and every step leaves the distribution as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stopwise.arrays import FloatArray, IntArray

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
    # All random numbers at once: drawn step by step they took longer than the steps.
    turns = []
    for moved, others in (halves, halves[::-1]):
        turns.append((moved, _moves(steps, len(moved), others, size, generator)))
    kept = []
    for step in range(steps):
        for moved, (first, second, factors, noise, limits) in turns:
            shift = points[first[step]] - points[second[step]]
            proposed = points[moved] + factors[step] * shift + noise[step]
            new = log_density(proposed)
            taken = limits[step] < new - heights[moved]
            points[moved[taken]] = proposed[taken]
            heights[moved[taken]] = new[taken]
        if 2 * step >= steps and step % keep_every == 0:
            kept.append(points.copy())
    return np.concatenate(kept)


def _moves(
    steps: int, number: int, others: IntArray, size: int, generator: np.random.Generator
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Of every step: two others for each point, how far to go along each coordinate, and luck.

    The last is the logarithm of a uniform number: a move is taken if the density grows by more.
    """
    first = generator.integers(0, len(others), (steps, number))
    second = (first + generator.integers(1, len(others), (steps, number))) % len(others)
    length = 2.38 / np.sqrt(2 * size) * generator.choice(_SHRINK, (steps, number, 1))
    part = generator.choice(_CHANGED, (steps, number, 1))
    changed = generator.random((steps, number, size)) < part
    noise = changed * (_NOISE * generator.normal(size=(steps, number, size)))
    limits = np.log(generator.random((steps, number)))
    return others[first], others[second], changed * length, noise, limits
