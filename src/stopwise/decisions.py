"""The rules that every room decides by: which stage passes first, which stage is the best.

They stand here once, so that a problem, a log and a live cascade can never differ on a tie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from stopwise.arrays import BoolArray, FloatArray, IntArray

TIE = 1e-12
"""Two sums that are equal on paper differ by rounding; ties are read up to this, in mistakes.

All that is compared is in mistakes, so that costs and mistake cost in other units (cents, tokens)
change no decision. Totals beyond one mistake are rounded more coarsely: there it is relative.
"""


def passes(threshold: float, disagreement: float) -> bool:
    """Whether a deeper stage disagrees too little to be worth its price: a strict comparison.

    >>> passes(0.4 - 0.3, 0.1)   # equal on paper, though 0.4 - 0.3 is 0.10000000000000003
    False
    """
    return threshold > disagreement + TIE


def stopping_stages(thresholds: ArrayLike, disagreements: ArrayLike) -> tuple[int, ...]:
    """The set B of Lemma 1: stages that pass against every deeper one, and the last.

    Args:
        thresholds: `C_j - C_i` in mistakes, a table of stages x stages.
        disagreements: `p_ij`, of which the part above the diagonal is read. A pair that was never
            seen (not a number) does not pass.

    >>> thresholds = [[0, 0.3, 0.5], [0, 0, 0.2], [0, 0, 0]]
    >>> stopping_stages(thresholds, [[0, 0.1, 0.6], [0, 0, 0.1], [0, 0, 0]])
    (1, 2)
    """
    p = np.asarray(disagreements, dtype=np.float64)
    passed = np.asarray(thresholds, dtype=np.float64) > p + TIE
    last = len(p) - 1
    return tuple(i for i in range(last + 1) if i == last or passed[i, i + 1 :].all())


def first_passing_stage(thresholds: ArrayLike, disagreements: ArrayLike) -> int:
    """The first stage that passes against every deeper one, or the last: the paper's choice.

    >>> first_passing_stage([[0, 0.4 - 0.3], [0, 0]], [[0, 0.1], [0, 0]])
    1
    """
    return stopping_stages(thresholds, disagreements)[0]


def optimal_stage(total_costs: ArrayLike) -> int:
    """The largest index among the minimisers (eq. 1 of the paper); infinite: out of the question.

    >>> optimal_stage([0.3, 0.1 + 0.2, 0.5])
    1
    """
    return int(np.flatnonzero(_minimisers(total_costs))[-1])


def optimal_stages(total_costs: ArrayLike) -> IntArray:
    """The optimal stage of each row of a table: rows x stages.

    >>> optimal_stages([[0.3, 0.1 + 0.2, 0.5], [0.1, 0.2, 0.3]])
    array([1, 0])
    """
    least = _minimisers(total_costs)
    return np.asarray(least.shape[1] - 1 - least[:, ::-1].argmax(axis=1))


def first_choice(values: ArrayLike) -> int:
    """The first index among the minimisers: of options that are listed in order of preference.

    >>> first_choice([0.1 + 0.2, 0.3, 0.5])
    0
    """
    return int(_minimisers(values).argmax())


def first_choices(values: ArrayLike) -> IntArray:
    """The first choice of each row of a table: rows x options.

    >>> first_choices([[0.1 + 0.2, 0.3, 0.5], [0.2, 0.1, 0.3]])
    array([0, 1])
    """
    return np.asarray(_minimisers(values).argmax(axis=1))


def stopping_is_best(here: ArrayLike, deeper: ArrayLike) -> BoolArray:
    """Whether stopping is expected to cost no more than going on; of equals, stop.

    >>> stopping_is_best([0.1 + 0.2, 0.4], [0.3, 0.3])
    array([ True, False])
    """
    return np.asarray(np.asarray(here) <= np.asarray(deeper) + TIE)


def same_total(one: float, other: float) -> bool:
    """Whether two total costs are equal but for rounding.

    >>> same_total(0.1 + 0.2, 0.3), same_total(0.3, 0.3001)
    (True, False)
    """
    return abs(one - other) <= TIE * max(1.0, abs(one), abs(other))


def _minimisers(totals: ArrayLike) -> BoolArray:
    """Along the last axis, which are the least, read up to a tie."""
    table = np.asarray(totals, dtype=np.float64)
    least = table.min(axis=-1, keepdims=True)
    return np.asarray(table <= least + TIE * np.maximum(1.0, np.abs(least)))


def worst_cases(disagreements: ArrayLike, in_mistakes: ArrayLike) -> FloatArray:
    """The regret of every stage under the truth that is worst for it: sharp, without assumption.

    Args:
        disagreements: `p_ij`, of which the part above the diagonal is read.
        in_mistakes: `lambda C_i`.

    >>> worst_cases([[0, 0.25], [0, 0]], [0.0, 0.125])
    array([0.125, 0.375])
    """
    p = np.triu(np.asarray(disagreements, dtype=np.float64), 1)
    cost = np.asarray(in_mistakes, dtype=np.float64)
    return np.asarray((cost[:, None] - cost[None, :] + p + p.T).max(axis=1))


def minimax_stage(disagreements: ArrayLike, in_mistakes: ArrayLike) -> int:
    """The first stage with the least worst case.

    >>> minimax_stage([[0, 0.25], [0, 0]], [0.0, 0.125])
    0
    """
    return first_choice(worst_cases(disagreements, in_mistakes))
