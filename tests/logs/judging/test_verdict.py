from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stopwise import Costs, Evidence, Problem
from stopwise.decisions import worst_cases
from stopwise.logs import analyze
from stopwise.logs.judging.intervals import rows_needed
from stopwise.logs.judging.mistake_costs import mistake_cost_ranges
from stopwise.logs.judging.verdict import doubt_of, judge, rule_choice
from stopwise.theory import share_bounds


def random_patterns(rng, count, labels=3, patterns=6):
    codes = np.unique(rng.integers(0, labels, size=(patterns, count)), axis=0)
    return codes, rng.dirichlet(np.ones(len(codes)))


def disagreements(codes, p):
    return (codes[:, :, None] != codes[:, None, :]).transpose(1, 2, 0) @ p


# ---- the mathematics, against enumeration of every truth --------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_worst_case_is_sharp_over_all_truths(seed):
    """Every deterministic truth over the patterns is tried; mixtures cannot do more (linear)."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    codes, p = random_patterns(rng, count)
    costs = np.cumsum(rng.random(count) * 0.3)
    worst = np.zeros(count)
    for truth in itertools.product(range(4), repeat=len(codes)):  # label 3 is nobody's
        errors = p @ (codes != np.array(truth)[:, None])
        totals = errors + costs
        worst = np.maximum(worst, totals - totals.min())
    assert worst_cases(disagreements(codes, p), costs) == pytest.approx(worst, abs=1e-12)


def test_worst_case_by_hand():
    # Stage 0 free, stage 1 costs 0.1; they differ on 0.3: worst of 0 is 0.2, worst of 1 is 0.4.
    assert worst_cases(np.array([[0, 0.3], [0, 0]]), np.array([0, 0.1])) == pytest.approx(
        [0.2, 0.4]
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=1, max_size=12),
       st.lists(st.integers(0, 2), min_size=12, max_size=12))  # fmt: skip
def test_may_differ_bounds_both_ways_to_count_abstentions(rows, truth):
    """An abstention is a mistake, or is left out: errors differ by no more than the bound."""
    codes, truth = np.array(rows), np.array(truth)[: len(rows)]
    answered = codes >= 0
    if not answered.any(axis=0).all():
        return
    doubt = doubt_of(codes, np.ones(len(codes), dtype=np.int64))
    bound = doubt.differ[0, 1] / doubt.seen[0, 1] if doubt.seen[0, 1] else 0.0
    wrong = answered & (codes != truth[:, None])
    left_out = wrong.sum(axis=0) / answered.sum(axis=0)
    mistakes = (wrong | ~answered).mean(axis=0)
    assert abs(left_out[0] - left_out[1]) <= bound + 1e-12
    assert abs(mistakes[0] - mistakes[1]) <= bound + 1e-12


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 2.0))
def test_rule_and_sweep_agree_with_the_problem(seed, mistake_cost):
    """The rule's choice is min B of Lemma 1, as `Problem` computes it, at every mistake cost."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 6))
    codes = rng.integers(0, 2, size=(200, count))
    own = np.round(rng.random(count) * 0.4, 3)
    costs = Costs.from_stages(own.tolist(), mistake_cost)
    evidence = Evidence.from_prefixes(count, codes.tolist())
    verdict = judge(tuple(f"s{i}" for i in range(count)), evidence, costs)
    problem = Problem.from_predictions(codes, codes[:, 0], costs)
    assert verdict.recommended == problem.stopping_stage
    window = next(w for w in mistake_cost_ranges(verdict) if w.start <= mistake_cost < w.end)
    near = min(
        abs(mistake_cost - edge) for w in mistake_cost_ranges(verdict) for edge in (w.start, w.end)
    )
    if near > 1e-9:
        assert window.stage == verdict.recommended
        sure = mistake_cost < window.nothing_deeper_pays_below
        assert sure == verdict.nothing_deeper_pays
        assert window.certain == (sure and window.stage == 0)


@pytest.mark.parametrize("seed", range(10))
def test_sweep_windows_against_a_scan(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 6))
    codes = rng.integers(0, 3, size=(400, count))
    own = rng.random(count)
    names = tuple(f"s{i}" for i in range(count))
    evidence = Evidence.from_prefixes(count, codes.tolist())
    windows = mistake_cost_ranges(judge(names, evidence, Costs.from_stages(own.tolist())))
    assert windows[0].start == 0
    assert math.isinf(windows[-1].end)
    assert all(a.end == b.start for a, b in itertools.pairwise(windows))
    assert not any(a.stage == b.stage and a.certain == b.certain
                   for a, b in itertools.pairwise(windows))  # fmt: skip
    spent = np.cumsum(own)
    for mistake_cost in np.geomspace(0.01, 100, 100):
        # An independent reading of the rule, straight from the shares.
        stage = next(
            i for i in range(count)
            if all(spent[j] - spent[i] > mistake_cost * np.mean(codes[:, i] != codes[:, j])
                   for j in range(i + 1, count))
        )  # fmt: skip
        here = next(w for w in windows if w.start <= mistake_cost < w.end)
        assert here.stage == stage
        again = judge(names, evidence, Costs.from_stages(own.tolist(), float(mistake_cost)))
        sure = mistake_cost < here.nothing_deeper_pays_below
        assert again.nothing_deeper_pays == sure
        assert here.certain == (sure and stage == 0)


def test_a_step_without_cost_is_never_too_dear():
    evidence = Evidence.from_counts([[0, 100], [0, 0]], [[0, 0], [0, 0]])
    verdict = judge(("a", "b"), evidence, Costs.from_cumulative((1.0, 1.0)))
    assert verdict.recommended == 1
    assert [(w.stage, w.certain) for w in mistake_cost_ranges(verdict)] == [(1, False)]


# ---- bounds and levels -----------------------------------------------------------------------


def test_bounds_against_scipy():
    for s, n in ((0, 10), (3, 10), (10, 10), (200, 5000)):
        low, high = share_bounds(s, n, 0.005)
        wanted = stats.binomtest(s, n).proportion_ci(0.99, method="exact")
        assert (float(low), float(high)) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
        # And outside the credible interval of the uniform prior.
        posterior = stats.beta(s + 1, n - s + 1)
        assert low <= posterior.ppf(0.005)
        assert high >= posterior.ppf(0.995)


def test_credible_level_is_that_of_the_uniform_prior():
    evidence = Evidence.from_counts([[0, 200], [0, 0]], [[0, 12], [0, 0]])
    pair = judge(("a", "b"), evidence, Costs.from_cumulative((0.0, 0.08))).pairs[0]
    assert pair.credible_level == pytest.approx(stats.beta(13, 189).cdf(0.08))
    # What is certain is credible at the level, too: its bound lies outside.
    for cost in (0.08, 0.1, 0.12, 0.15):
        pair = judge(("a", "b"), evidence, Costs.from_cumulative((0.0, cost)), level=0.99).pairs[0]
        assert not pair.certain or pair.credible_level >= 0.99


def test_rows_needed_is_enough_and_hardly_more():
    for share, threshold in ((0.0, 0.05), (0.1, 0.13), (0.3, 0.31)):
        rows = rows_needed(share, threshold, 0.01)
        assert rows is not None
        assert share_bounds(share * rows, rows, 0.01)[1] < threshold
        assert share_bounds(share * rows * 0.97, rows * 0.97, 0.01)[1] >= threshold


@pytest.mark.parametrize("seed", range(3))
def test_certain_is_wrong_at_most_as_often_as_stated(seed):
    """Thresholds sit exactly on the true disagreements, where a wrong "certain" is likeliest.

    Of 250 logs at a joint level of 90 %, at most 10 % may have any wrong verdict; the test
    fails by chance with a probability below 1e-6 (binomial tail).
    """
    rng = np.random.default_rng(seed)
    codes, p = random_patterns(rng, 3)
    shares = disagreements(codes, p)
    runs, level = 250, 0.9
    wrong = 0
    for _ in range(runs):
        number = rng.multinomial(int(rng.integers(50, 2000)), p)
        seen = np.triu(np.full((3, 3), number.sum()), 1)
        differ = (codes[:, :, None] != codes[:, None, :]).transpose(1, 2, 0) @ number
        evidence = Evidence.from_counts(seen, np.triu(differ, 1))
        any_wrong = False
        for i, j in ((0, 1), (0, 2), (1, 2)):
            own = [0.0, 0.0, 0.0]
            own[j] = shares[i, j]
            verdict = judge(("a", "b", "c"), evidence, Costs.from_stages(own), level=level)
            any_wrong |= verdict.pair(i, j).certain
        wrong += any_wrong
    assert wrong <= stats.binom.ppf(1 - 1e-6, runs, 1 - level)


def test_probabilities_are_those_of_sampled_pairs():
    """Against 40,000 joint draws; a chance difference of 6 standard errors has odds below 1e-8."""
    evidence = Evidence.from_counts(
        [[0, 60, 60], [0, 0, 60], [0, 0, 0]], [[0, 12, 15], [0, 0, 6], [0, 0, 0]]
    )
    costs = Costs.from_cumulative((0.0, 0.2, 0.35))
    verdict = judge(("a", "b", "c"), evidence, costs)
    rng = np.random.default_rng(0)
    draws = 40_000
    p = rng.beta(evidence.disagreed + 1, evidence.seen - evidence.disagreed + 1, (draws, 3, 3))
    chosen = np.array([rule_choice(table, costs.thresholds) for table in p])
    found = np.bincount(chosen, minlength=3) / draws
    error = np.sqrt(verdict.probability_by_stage * (1 - verdict.probability_by_stage) / draws)
    assert (np.abs(found - verdict.probability_by_stage) <= 6 * error + 1e-12).all()


@pytest.mark.parametrize("abstentions", ["go on", "mistake", "leave out"])
@pytest.mark.parametrize("seed", range(6))
def test_certain_is_never_wrong_on_unseen_random_logs(seed, abstentions):
    """On the log's own rows a certain verdict cannot be wrong, whatever the truth: no chance."""
    rng = np.random.default_rng(1000 + seed)
    count, rows = int(rng.integers(2, 6)), int(rng.integers(100, 3000))
    truth = rng.integers(0, 4, rows)
    frame: dict[str, Any] = {"truth": truth}
    for at in range(count):
        error = rng.uniform(0.0, 0.4)
        outputs = np.where(rng.random(rows) < error, rng.integers(0, 4, rows), truth)
        silent = rng.random(rows) < rng.choice([0.0, 0.1])
        frame[f"s{at}"] = [None if s else int(v) for s, v in zip(silent, outputs, strict=True)]
    own = (rng.random(count) * rng.choice([0.02, 0.2])).tolist()
    analysis = analyze(
        pl.DataFrame(frame), stages=[f"s{at}" for at in range(count)], costs=own, mistake_cost=1,
        truth="truth", trailing_blanks="abstained", abstentions=abstentions,
    )  # fmt: skip
    assert analysis.truth is not None
    assert analysis.truth.certain_but_wrong == ()
    wrong_if_silent = analysis.truth.error_rates_if_abstaining_is_wrong
    for pair in analysis.verdict.pairs:
        if pair.certain and abstentions == "leave out":
            gain = wrong_if_silent[pair.shallow] - wrong_if_silent[pair.deep]
            assert gain <= pair.threshold
    regret = analysis.truth.regret_by_stage
    assert (regret <= analysis.verdict.worst_case_regret_high + 1e-12).all()


def test_measured_costs_widen_the_threshold():
    rng = np.random.default_rng(0)
    rows = 400
    frame = pl.DataFrame(
        {
            "a": np.zeros(rows, int), "a:cost": rng.exponential(0.01, rows),
            "b": (rng.random(rows) < 0.02).astype(int), "b:cost": rng.exponential(0.2, rows),
        }
    )  # fmt: skip
    analysis = analyze(frame, mistake_cost=1)
    pair = analysis.verdict.pairs[0]
    assert analysis.verdict.cost_bounds.measured
    low, high = analysis.verdict.cost_bounds.low[1], analysis.verdict.cost_bounds.high[1]
    by_t, _ = stats.t.interval(1 - 0.01 / 4, rows - 1, frame["b:cost"].mean(),
                               frame["b:cost"].std() / np.sqrt(rows))  # fmt: skip
    assert 0.8 * by_t < low < by_t < frame["b:cost"].mean() < high
    assert pair.threshold_low == pytest.approx(low)
    assert pair.threshold_low < pair.threshold
    assert pair.certain == (pair.threshold_low > pair.may_differ_high)
