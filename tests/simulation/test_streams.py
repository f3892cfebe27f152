"""In which order a simulation meets the patterns of a problem."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.stats

from stopwise import Costs, Problem, StopwiseError
from stopwise.simulation.streams import check_stream, pattern_indices

COSTS = Costs.from_cumulative((0.0, 0.1))
ROWS = Problem.from_predictions([[0, 1], [1, 1], [0, 1], [1, 0]], [1, 1, 1, 1], COSTS)
RATES = Problem.from_rates([0.3, 0.1], [[0, 0.25], [0.25, 0]], COSTS)


def test_round_robin_follows_the_rows_over_and_over():
    assert ROWS.rows is not None
    rows = ROWS.rows.tolist()
    met = list(islice(pattern_indices(ROWS, "round-robin", np.random.default_rng(0)), 10))
    assert met == (rows * 3)[:10]


def test_independent_draws_have_the_probabilities():
    """Chi-square on 40,000 draws; a false alarm has probability 1e-6."""
    number = 40_000
    drawn = islice(pattern_indices(RATES, "independent", np.random.default_rng(5)), number)
    counts = np.bincount(list(drawn), minlength=len(RATES.p))
    possible = RATES.p > 0
    assert counts[~possible].sum() == 0
    found = scipy.stats.chisquare(counts[possible], RATES.p[possible] * number)
    assert found.pvalue > 1e-6


def test_refused_streams():
    with pytest.raises(StopwiseError, match=r"stream: got 'rows'.*'independent' or 'round-robin'"):
        check_stream(ROWS, "rows")
    with pytest.raises(StopwiseError, match="this problem has none"):
        check_stream(RATES, "round-robin")
