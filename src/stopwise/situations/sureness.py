"""Who is less sure than usual where a stage is outvoted: a hint at who is wrong, without a label.

Agreement cannot tell three tools that err together from three that are right against a bad last
stage. Confidences sometimes can: a stage that says how sure it is, is mostly less sure where it
errs. So where the last stage is outvoted, the side whose confidence falls further below its own
usual is the likelier one to be wrong. Confidences of two stages are not on one scale, so each is
taken by its rank among all of its own: a mean rank of 0.5 is as sure as usual.

The two sides are not alike: stages agree on what is easy, so that a majority is surer than its
opponent by nature. So three explanations of the gap between the ranks are weighed against each
other: the last stage is right (it is nevertheless the surer one), confidences tell nothing, or the
majority is right. Weighed, and not tested one by one, because a rule that learns as it goes has a
few dozen such items, which no test calls beyond chance though they tell two of the three apart.
"""

from __future__ import annotations

import math
from itertools import chain

import numpy as np

from stopwise.arrays import FloatArray, IntArray
from stopwise.situations.binning import MISSING_BIN
from stopwise.situations.keys import confidences_of, groups_of
from stopwise.situations.transitions import Transitions

LAST_RIGHT, NO_HINT, MAJORITY_RIGHT = (0.1, 0.03), (-0.01, 0.04), (-0.16, 0.06)
"""The gap in rank (the last stage's less the majority's) that each explanation makes one expect,
and how far it may be from that; a gap beyond the outer two fits them as well."""

DOUBTED = (0.5, 0.9)
"""Between these the weight of the majority comes to count: a stage is not doubted for less."""

FEWEST_DIFFERENCES = 10


def last_is_surer(counts: Transitions, stage: int) -> float:
    """Whether the last stage is the surer one where this stage outvotes it, from -1 to 1.

    Only full runs are looked at, for they are an unbiased sample. 0 where nothing tells: too few
    such items, or a stage that gives no confidence.

    >>> from stopwise.situations.binning import Binning
    >>> from stopwise.situations.observations import Observations
    >>> codes = np.array([[0, 0, 0]] * 300 + [[1, 1, 0]] * 100)
    >>> sure = np.full(codes.shape, 0.8) + 0.001 * np.arange(400)[:, None] % 0.1
    >>> sure[300:, :2] -= 0.5                      # the first two are unsure where they differ
    >>> rows = Observations(("no", "yes"), codes, sure)
    >>> round(last_is_surer(Transitions.of(rows, Binning.fit(rows)), 1), 2)
    1.0
    >>> rows = Observations(("no", "yes"), codes)
    >>> last_is_surer(Transitions.of(rows, Binning.fit(rows)), 1)
    0.0
    """
    if stage >= len(counts.ends):
        return 0.0
    ends = counts.ends[stage]
    pairs = np.fromiter(chain.from_iterable(ends), dtype=np.int64, count=2 * len(ends))
    before, end = pairs[::2], pairs[1::2]
    own, last = confidences_of(before), confidences_of(end)
    groups = np.stack([groups_of(end, at) for at in range(counts.stage_count)], axis=1)
    group, of_last = groups[:, stage], groups[:, -1]
    known = (group >= 0) & (of_last >= 0) & (own != MISSING_BIN) & (last != MISSING_BIN)
    voters, opponents = ((groups == one[:, None]).sum(axis=1) for one in (group, of_last))
    number = np.fromiter(ends.values(), dtype=np.float64, count=len(ends))[known]
    outvoted = number * ((group != of_last) & (voters > opponents))[known]
    if outvoted.sum() < FEWEST_DIFFERENCES:
        return 0.0
    own_ranks, own_variance = _ranks(own[known], number)
    last_ranks, last_variance = _ranks(last[known], number)
    gap = float(outvoted @ (last_ranks - own_ranks) / outvoted.sum())
    error = math.sqrt((own_variance + last_variance) / outvoted.sum())
    if error == 0:
        return 0.0
    for_last = _density(min(gap, LAST_RIGHT[0]), LAST_RIGHT, error)
    for_neither = _density(gap, NO_HINT, error)
    for_majority = _density(max(gap, MAJORITY_RIGHT[0]), MAJORITY_RIGHT, error)
    weight = (for_last - for_majority) / (for_last + for_neither + for_majority)
    if weight > 0:
        return weight
    return -float(np.clip((-weight - DOUBTED[0]) / (DOUBTED[1] - DOUBTED[0]), 0.0, 1.0))


def _density(gap: float, expected: tuple[float, float], error: float) -> float:
    """How well a gap that was seen with this standard error fits what was expected."""
    variance = expected[1] ** 2 + error**2
    return math.exp(-0.5 * (gap - expected[0]) ** 2 / variance) / math.sqrt(variance)


def _ranks(bins: IntArray, number: FloatArray) -> tuple[FloatArray, float]:
    """The rank of each bin among all, from 0 to 1, and the variance of the ranks."""
    share = np.bincount(bins, weights=number) / number.sum()
    ranks = (np.cumsum(share) - share / 2)[bins]
    return ranks, float(number @ (ranks - 0.5) ** 2 / number.sum())
