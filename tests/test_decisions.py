"""Ties: what is equal on paper is equal here, whatever rounding does."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise import Costs, Evidence, Problem
from stopwise.decisions import (
    TIE,
    first_choice,
    first_choices,
    first_passing_stage,
    minimax_stage,
    optimal_stage,
    optimal_stages,
    passes,
    stopping_is_best,
    stopping_stages,
)

# Costs with two decimals and shares of small whole numbers: ties on paper are frequent.
hundredths = st.integers(0, 150).map(lambda n: Fraction(n, 100))


@st.composite
def cascades(draw):
    """Cumulative costs and a table of shares, as fractions."""
    stages = draw(st.integers(2, 5))
    own = draw(st.lists(hundredths, min_size=stages, max_size=stages))
    cumulative = [sum(own[: at + 1], Fraction(0)) for at in range(stages)]
    seen = [[draw(st.integers(1, 20)) for _ in range(stages)] for _ in range(stages)]
    shares = [[Fraction(draw(st.integers(0, n)), n) for n in row] for row in seen]
    return cumulative, shares


@given(cascades())
def test_stopping_stages_agree_with_exact_fractions(cascade):
    cumulative, shares = cascade
    last = len(cumulative) - 1
    exact = tuple(
        i
        for i in range(last + 1)
        if all(cumulative[j] - cumulative[i] > shares[i][j] for j in range(i + 1, last + 1))
    )
    thresholds = Costs.from_cumulative([float(c) for c in cumulative]).thresholds
    disagreements = [[float(share) for share in row] for row in shares]
    assert stopping_stages(thresholds, disagreements) == exact
    assert first_passing_stage(thresholds, disagreements) == exact[0]
    for i in range(last + 1):
        for j in range(i + 1, last + 1):
            assert passes(thresholds[i][j], disagreements[i][j]) == (
                cumulative[j] - cumulative[i] > shares[i][j]
            )


@given(st.lists(st.tuples(hundredths, hundredths), min_size=2, max_size=8))
def test_optimal_stage_agrees_with_exact_fractions(parts):
    # Sums of floats, so that equal totals differ by rounding.
    totals = [float(error) + float(cost) for error, cost in parts]
    exact = [error + cost for error, cost in parts]
    assert optimal_stage(totals) == max(i for i, total in enumerate(exact) if total == min(exact))


def test_unseen_pairs_never_pass():
    assert stopping_stages([[0, 5.0], [0, 0]], [[0, float("nan")], [0, 0]]) == (1,)


def test_counts_and_a_problem_agree_on_a_tie():
    # 10 seen, 1 disagreed: a share of exactly 0.4 - 0.3 on paper, so the first stage must not stop.
    evidence = Evidence.from_counts([[0, 10], [0, 0]], [[0, 1], [0, 0]])
    costs = Costs.from_cumulative((0.3, 0.4))
    assert first_passing_stage(costs.thresholds, evidence.disagreement) == 1
    problem = Problem.from_patterns([(0, [0, 0], 0.9), (0, [1, 0], 0.1)], costs)
    assert problem.optimal_stage == 1


def test_the_slack_is_far_below_any_price():
    assert 0 < TIE <= 1e-12
    assert passes(0.1 + 1e-9, 0.1)
    assert not passes(0.1 + TIE / 2, 0.1)
    assert optimal_stage([0.5, 0.5 + 1e-9]) == 0


@pytest.mark.parametrize("totals", [[0.0, 0.0, 0.0], [3.0, 3.0, 3.0]])
def test_of_equal_stages_the_last_is_optimal(totals):
    assert optimal_stage(totals) == 2


# Sums of tenths, at sizes that rounding treats differently; the exact sums beside them.
@st.composite
def tables(draw):
    """A table of totals as floats, each the sum of two numbers, and the same as fractions."""
    size = draw(st.sampled_from([Fraction(1), Fraction(1, 3 * 10**6), Fraction(10**6, 3)]))
    width = draw(st.integers(2, 5))
    pair = st.tuples(st.integers(0, 9), st.integers(0, 9))
    rows = draw(st.lists(st.lists(pair, min_size=width, max_size=width), min_size=1, max_size=5))
    exact = [[size * Fraction(a + b, 10) for a, b in row] for row in rows]
    rounded = [
        [float(size * Fraction(a, 10)) + float(size * Fraction(b, 10)) for a, b in row]
        for row in rows
    ]
    return rounded, exact


@given(tables())
def test_tables_are_read_row_by_row_and_as_exact_fractions_are(both):
    rounded, exact = both
    least = [[i for i, total in enumerate(row) if total == min(row)] for row in exact]
    assert optimal_stages(rounded).tolist() == [row[-1] for row in least]
    assert first_choices(rounded).tolist() == [row[0] for row in least]
    assert [optimal_stage(row) for row in rounded] == [row[-1] for row in least]
    assert [first_choice(row) for row in rounded] == [row[0] for row in least]


def test_stopping_is_best_where_both_cost_the_same():
    assert stopping_is_best([0.3, 0.1 + 0.2, 0.3 + 1e-9], [0.1 + 0.2, 0.3, 0.3]).tolist() == [
        True,
        True,
        False,
    ]


@given(cascades(), st.integers(-60, 60))
def test_other_units_of_costs_change_no_decision(cascade, power):
    """Costs and mistake cost in another unit, exactly so: by a power of two."""
    cumulative, shares = cascade
    unit = 2.0**power
    own = Costs.from_cumulative([float(c) for c in cumulative])
    other = Costs.from_cumulative([float(c) * unit for c in cumulative], mistake_cost=unit)
    disagreements = [[float(share) for share in row] for row in shares]
    for decide in (stopping_stages, first_passing_stage):
        assert decide(own.thresholds, disagreements) == decide(other.thresholds, disagreements)
    errors = [row[0] for row in disagreements]
    assert optimal_stage(errors + own.in_mistakes) == optimal_stage(errors + other.in_mistakes)
    assert minimax_stage(disagreements, own.in_mistakes) == minimax_stage(
        disagreements, other.in_mistakes
    )
