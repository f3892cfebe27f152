"""A problem as the compiled loops read it: what matters is which outputs agree, and how often."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stopwise.agreement import partitions
from stopwise.problem import Problem
from stopwise.simulation.streams import Stream


class Tables(NamedTuple):
    """Classes of patterns with the same agreements, and how the stream meets them.

    Attributes:
        outputs: one row per class; two stages agree where their numbers are equal.
        float_outputs: the same as floats; comparing these gives a mask, where whole numbers give a
            branch that cannot be predicted.
        cumulative: cumulative probabilities of the classes, without the last (which is 1).
        rows: the class of every row of a round-robin stream; empty for independent draws.
        row_counts: `[n]`: how often each class occurs in the first n rows.
        prefix_start: classes that differ within the first k+1 outputs stand from
            `prefix_start[k]` to `prefix_start[k+1]` in the two arrays below.
        prefix_class: a class that stands for them.
        prefix_p: their probability.
    """

    outputs: NDArray[np.int32]
    float_outputs: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    rows: NDArray[np.int64]
    row_counts: NDArray[np.int64]
    prefix_start: NDArray[np.int64]
    prefix_class: NDArray[np.int64]
    prefix_p: NDArray[np.float64]


def make_tables(problem: Problem, stream: Stream) -> Tables:
    """Merge patterns that no rule could tell apart and lay them out for the loops.

    >>> from stopwise import Costs
    >>> costs = Costs.from_cumulative((0, 1))
    >>> problem = Problem.from_predictions([[0, 1], [1, 0], [1, 1]], [1, 1, 1], costs)
    >>> make_tables(problem, "round-robin").rows
    array([0, 0, 1])
    """
    agreements = partitions(problem.outputs)
    outputs, first, of_pattern = _unique_rows(agreements)
    del first
    p = np.bincount(of_pattern, weights=problem.p, minlength=len(outputs))
    rows = np.empty(0, dtype=np.int64)
    row_counts = np.zeros((1, len(outputs)), dtype=np.int64)
    if stream == "round-robin" and problem.rows is not None:
        rows = of_pattern[problem.rows]
        steps = np.eye(len(outputs), dtype=np.int64)[rows]
        row_counts = np.vstack([row_counts, np.cumsum(steps, axis=0)])
    start, classes, shares = [0], [], []
    for depth in range(problem.stage_count):
        _, first, of_class = _unique_rows(outputs[:, : depth + 1])
        classes.append(first)
        shares.append(np.bincount(of_class, weights=p, minlength=len(first)))
        start.append(start[-1] + len(first))
    return Tables(
        outputs=np.ascontiguousarray(outputs, dtype=np.int32),
        float_outputs=np.ascontiguousarray(outputs, dtype=np.float64),
        cumulative=np.cumsum(p)[:-1] / p.sum(),
        rows=rows,
        row_counts=np.ascontiguousarray(row_counts),
        prefix_start=np.array(start, dtype=np.int64),
        prefix_class=np.concatenate(classes).astype(np.int64),
        prefix_p=np.concatenate(shares),
    )


def _unique_rows(
    table: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct rows in order of first appearance, where each first stands, and who is which."""
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first = first[order]
    return table[first], first, rank[inverse.ravel()]
