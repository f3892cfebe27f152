"""In which order a simulation meets the patterns of a problem. Only streams know the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np

from stopwise.checks import StopwiseError, one_of
from stopwise.problem import Problem

Stream = Literal["independent", "round-robin"]


def check_stream(problem: Problem, stream: str) -> Stream:
    """Refuse an unknown stream, and round-robin over a problem that has no rows.

    >>> from stopwise import Costs
    >>> problem = Problem.from_predictions([[0, 1], [1, 1]], [1, 1], Costs.from_cumulative((0, 1)))
    >>> check_stream(problem, "round-robin")
    'round-robin'
    """
    one_of("stream", stream, get_args(Stream))
    if stream == "round-robin" and problem.rows is None:
        raise StopwiseError(
            "stream: round-robin follows the rows of a data set, and this problem has none;"
            " build it with Problem.from_predictions or give it rows"
        )
    return stream  # type: ignore[return-value]


def pattern_indices(problem: Problem, stream: Stream, rng: np.random.Generator) -> Iterator[int]:
    """The endless sequence of patterns that the rounds meet.

    Independent draws follow the probabilities; round-robin takes the rows in order, over and over,
    as the paper does ("we select a sample ... in a round-robin fashion").

    >>> from itertools import islice
    >>> from stopwise import Costs
    >>> problem = Problem.from_predictions([[0, 1], [1, 1]], [1, 1], Costs.from_cumulative((0, 1)))
    >>> list(islice(pattern_indices(problem, "round-robin", np.random.default_rng(0)), 5))
    [0, 1, 0, 1, 0]
    """
    if stream == "round-robin" and problem.rows is not None:
        rows = problem.rows.tolist()
        while True:
            yield from rows
    cumulative = np.cumsum(problem.p)
    while True:
        batch = np.searchsorted(cumulative, rng.random(256) * cumulative[-1], side="right")
        yield from np.minimum(batch, len(cumulative) - 1).tolist()
