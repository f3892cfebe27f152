"""Stages that can be called alone: the verdict against enumeration, by hand, and its words."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest

from stopwise import Costs, Evidence
from stopwise.checks import StopwiseError
from stopwise.logs import analyze
from stopwise.logs.analysis import analyze_evidence
from stopwise.logs.auditing.audit import plan_audit
from stopwise.logs.judging.alone import in_order
from stopwise.logs.judging.verdict import judge
from stopwise.logs.reading.call_order import in_call_order
from stopwise.logs.reading.costs import CostBounds
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.settings import LogSettings

NAMES = ("a", "b", "c", "d")


def small_log(seed):
    """Few patterns, counted so often that shares are exact, and costs in no order."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    codes = np.unique(rng.integers(0, 3, size=(5, count)), axis=0)
    number = rng.integers(1, 60, size=len(codes))
    own = rng.integers(0, 30, size=count).astype(float)
    rows = np.repeat(codes, number, axis=0)
    frame = pl.DataFrame({NAMES[at]: rows[:, at] for at in range(count)})
    return frame, codes, number / number.sum(), own, count


def true_totals(codes, share, own, mistake_cost):
    """Total cost of every stage called alone, under every truth over the patterns."""
    for truth in itertools.product(range(4), repeat=len(codes)):  # label 3 is nobody's
        errors = share @ (codes != np.array(truth)[:, None])
        yield own / mistake_cost + errors


@pytest.mark.parametrize("seed", range(25))
def test_readings_against_every_truth(seed):
    """Certain is never wrong, minimax is sharp, weak dominance finds the best stage."""
    frame, codes, share, own, count = small_log(seed)
    mistake_cost = 20.0
    names = NAMES[:count]
    found = analyze(
        frame, stages=names, costs=own, mistake_cost=mistake_cost, calls="alone", level=0.5
    )
    verdict = found.verdict
    place = [names.index(name) for name in verdict.stages]  # as shown -> as named
    assert sorted(own[place]) == own[place].tolist() == list(verdict.costs.cumulative)
    worst = np.zeros(count)
    for totals in true_totals(codes, share, own, mistake_cost):
        best = totals.min()
        worst = np.maximum(worst, totals - best)
        # Weak dominance, written down on its own: whoever costs more than the best stage differs
        # from it too rarely to pay even if it were always right there.
        optimal = min(range(count), key=lambda s: (round(totals[s], 12), -own[s], -s))
        differ = share @ (codes != codes[:, [optimal]])
        dominant = all(
            (own[j] - own[optimal]) / mistake_cost > differ[j] + 1e-12
            for j in range(count)
            if j != optimal and (own[j], j) > (own[optimal], optimal)
        )
        if dominant:
            assert totals[place[verdict.recommended]] == pytest.approx(best, abs=1e-12)
        for pair in verdict.pairs:
            if pair.certain:
                assert totals[place[pair.deep]] >= totals[place[pair.shallow]] - 1e-12
    assert verdict.worst_case_regret == pytest.approx(worst[place], abs=1e-9)
    assert verdict.worst_case_regret[verdict.minimax_stage] == pytest.approx(worst.min(), abs=1e-9)


def test_a_cheaper_stage_named_later_is_fine_and_the_baseline_stays():
    """c costs less than b: it stands before it, and savings are still stated against c."""
    rows = [["x", "x", "x"]] * 950 + [["x", "y", "x"]] * 50
    frame = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    found = analyze(frame, stages=["a", "b", "c"], costs=[1, 9, 4], mistake_cost=10, calls="alone")
    verdict = found.verdict
    assert verdict.stages == ("a", "c", "b")
    assert verdict.stages[verdict.recommended] == "a"
    assert verdict.savings == 3.0
    assert verdict.answers_changed == 0.0
    assert verdict.pair(0, 2).threshold == pytest.approx(0.8)  # (9 - 1) / 10, nothing in between
    assert found.sentence.startswith("Call a alone: whatever the truth, no more expensive stage")
    assert "saves 3 per item against calling c alone (75.0 % of that cost)" in found.sentence
    assert "deeper" not in found.sentence
    assert found.what_ifs == ()


def test_the_best_stage_differs_between_cascade_and_alone():
    """The middle one costs much on the way to the last: worth it in a cascade, not alone."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 4000)
    noisy = [np.where(rng.random(4000) < p, 1 - truth, truth) for p in (0.3, 0.12, 0.02)]
    frame = pl.DataFrame(dict(zip("abc", noisy, strict=True)))
    frame = frame.with_columns(truth=pl.Series(truth))
    settings = {"stages": ["a", "b", "c"], "costs": [1, 8, 10], "mistake_cost": 50}
    both = analyze(frame, truth="truth", **settings)
    assert both.verdict.stages[both.truth.optimal_stage] == "b"
    alone = analyze(frame, truth="truth", calls="alone", **settings)
    assert alone.verdict.stages[alone.truth.optimal_stage] == "c"
    assert alone.truth.expected_total_costs[2] == pytest.approx(0.2 + alone.truth.error_rates[2])
    assert alone.verdict.stages[alone.readings.estimated] == "c"


def test_both_are_shown_where_nobody_says(tmp_path):
    frame = pl.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 495 + [1, 0] * 5})
    settings = {"stages": ["a", "b"], "costs": [1, 4], "mistake_cost": 20}
    both = analyze(frame, **settings)
    assert both.alone is not None
    assert both.to_dict()["alone"]["calls"] == "alone"
    assert "against calling it alone" in both.sentence
    page = tmp_path / "report.html"
    both.write_report(page)
    assert "called alone: the same stage, for the same reasons" in page.read_text()
    cascade = analyze(frame, calls="cascade", **settings)
    assert cascade.alone is None
    assert "alone" not in cascade.sentence
    alone = analyze(frame, calls="alone", **settings)
    assert alone.alone is None
    assert alone.to_dict()["costs"] == [1.0, 4.0] == alone.to_dict()["cumulative_costs"]
    assert alone.verdict.pairs == both.alone.verdict.pairs


def test_pair_counters_say_the_same_as_the_log():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2, size=(600, 3))
    frame = pl.DataFrame(codes, schema=["a", "b", "c"])
    settings = LogSettings(stages=("a", "b", "c"), costs=(3, 1, 2), mistake_cost=5, calls="alone")
    from_log = analyze(frame, settings).verdict
    counted = analyze_evidence(Evidence.from_codes(codes), settings)
    assert counted.alone is None
    assert counted.verdict.stages == from_log.stages == ("b", "c", "a")
    assert counted.verdict.pairs == from_log.pairs
    assert counted.verdict.baseline == from_log.baseline == 1  # c was named last
    nobody = analyze_evidence(Evidence.from_codes(codes), LogSettings(costs=(3, 1, 2)))
    assert nobody.alone.verdict.stages == ("stage 2", "stage 3", "stage 1")


def test_order_of_pair_counters_is_only_an_order():
    codes = np.random.default_rng(0).integers(0, 3, size=(200, 4))
    order = [2, 0, 3, 1]
    moved = in_order(Evidence.from_codes(codes), order)
    direct = Evidence.from_codes(codes[:, order])
    assert np.array_equal(moved.seen, direct.seen)
    assert np.array_equal(moved.disagreed, direct.disagreed)


def test_measured_costs_leave_room_both_ways():
    """The cheaper stage may cost more than seen, the other less: both bounds count."""
    evidence = Evidence.from_counts([[0, 1000], [0, 0]], [[0, 10], [0, 0]])
    costs = Costs.from_cumulative((1.0, 1.5), mistake_cost=10)
    sure = CostBounds((0.9, 1.4), (1.1, 1.6), measured=True, own=(1.0, 1.5), calls="alone")
    pair = judge(("a", "b"), evidence, costs, cost_bounds=sure).pairs[0]
    assert pair.threshold_low == pytest.approx((1.4 - 1.1) / 10)
    wide = CostBounds((0.6, 1.1), (1.4, 1.9), measured=True, own=(1.0, 1.5), calls="alone")
    assert not judge(("a", "b"), evidence, costs, cost_bounds=wide).pairs[0].certain


def test_billed_costs_are_sorted_by_their_means():
    frame = pl.DataFrame(
        {
            "a": [0, 1] * 200, "b": [0, 1] * 200,
            "a:cost": [5.0, 7.0] * 200, "b:cost": [2.0, 1.0] * 200,
        }
    )  # fmt: skip
    ordered = in_call_order(frame, LogSettings(stages=("a", "b"), calls="alone"))
    assert ordered.stages == ("b", "a")
    assert ordered.costs is None
    assert ordered.baseline == "b"
    found = analyze(frame, stages=["a", "b"], mistake_cost=2, calls="alone")
    assert found.verdict.costs.cumulative == (1.5, 6.0)
    assert found.verdict.pairs[0].certain
    with pytest.raises(StopwiseError, match=r"standard input can be read once only.*b,a"):
        raise_for_standard_input(frame)


def raise_for_standard_input(frame):
    """Standard input is named "-"; what it holds is read here from a frame of the same kind."""
    import stopwise.logs.reading.call_order

    module: Any = stopwise.logs.reading.call_order
    opened = module.open_log
    module.open_log = lambda log, settings: opened(frame, settings)
    try:
        in_call_order("-", LogSettings(stages=("a", "b"), calls="alone"))
    finally:
        module.open_log = opened


def test_a_stage_without_an_answer_pays_for_the_next_one():
    """Item by item: called alone, then on until one answers."""
    frame = pl.DataFrame({"a": ["x", None, None], "b": ["x", "y", None], "c": ["x", "y", "z"]})
    settings = LogSettings(
        stages=("a", "b", "c"), costs=(1, 2, 4), calls="alone", trailing_blanks="abstained"
    )
    rows = read_rows(frame, settings)
    assert rows.spent.tolist() == [[1, 2, 4], [3, 2, 4], [7, 6, 4]]
    assert rows.costs.cumulative == pytest.approx((11 / 3, 11 / 3, 4.0))  # b is raised to a
    assert rows.alone
    assert rows.baseline == 2


def test_an_audit_of_stages_called_alone_counts_own_costs():
    """c differs from a on 45 of 100 items and costs 8 more: enough alone, not through b."""
    frame = pl.DataFrame({"a": [0] * 100, "b": [0] * 60 + [1] * 40, "c": [0] * 55 + [1] * 45})
    settings = {"stages": ["a", "b", "c"], "costs": [1, 7, 9], "mistake_cost": 20}
    assert 2 in plan_audit(frame, calls="alone", **settings | {"costs": [1, 8.5, 9]}).candidates
    alone = plan_audit(frame, calls="alone", **settings)
    assert alone.rows.costs.thresholds[0].tolist() == pytest.approx([0, 0.3, 0.4])
    assert alone.candidates == (0, 1)  # 5 items tell b and c apart, and c would have to fix 10
    assert plan_audit(frame, **settings).rows.costs.thresholds[0, 2] == pytest.approx(0.8)


def test_settings_say_what_is_accepted():
    with pytest.raises(StopwiseError, match="calls: got 'solo', but need 'cascade' or 'alone'"):
        LogSettings.of(calls="solo")
    with pytest.raises(StopwiseError, match="baseline: got 'z', but need 'a' or 'b'"):
        LogSettings(stages=("a", "b"), baseline="z")
