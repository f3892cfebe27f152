"""A per-item rule scored on rows it has not seen: each half of a log by the rule of the other.

Nothing here needs a label, except the error rates of logs that have a truth: which answers changed
and what calls cost is seen on every complete row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.checks import StopwiseError
from stopwise.costs import Costs, FloatArray
from stopwise.decisions import optimal_stage
from stopwise.logs.formatting import amount, counted
from stopwise.logs.reading.bills import spread_of
from stopwise.logs.reading.costs import mean_bounds
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.binning import Binning
from stopwise.situations.keys import situations
from stopwise.situations.observations import MOST_STAGES, Observations
from stopwise.situations.references_base import differs_from
from stopwise.situations.risks import carry_back
from stopwise.situations.transitions import Transitions

CALIBRATION_BINS = 10
FEWEST_ROWS = 40


def errors_of_reference(losses: FloatArray, stage: IntArray, errors: float | None) -> float:
    """How often the reference is wrong, so that a stage has the errors that are stated of it.

    Losses against a reference tell ways to stop apart, but leave out where it is wrong itself.

    Args:
        losses: what each stage's answer is expected to lose against the reference, item by item.
        stage: which stage answers each item when stopping at the one that is stated.
        errors: the share of errors that the report states of it; None: taken to be without.

    >>> errors_of_reference(np.array([[0.7, 0.0], [0.0, 0.0]]), np.array([1, 1]), 0.1)
    0.1
    """
    if errors is None or not math.isfinite(errors):
        return 0.0
    return max(0.0, errors - float(losses[np.arange(len(stage)), stage].mean()))


def check_rows(stages: int, rows: int) -> None:
    """Refuse what cannot be fitted on one half and scored on the other.

    >>> check_rows(3, 12)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: per item: 12 complete rows, but need 40 or more, half to fit ...
    """
    if stages > MOST_STAGES:
        raise StopwiseError(
            f"per item: {stages} stages, but at most {MOST_STAGES} can be told apart"
        )
    if rows < FEWEST_ROWS:
        raise StopwiseError(
            f"per item: {counted(rows, 'complete row')}, but need {FEWEST_ROWS} or more, half to"
            " fit a rule on and half to score it"
        )


@dataclass(frozen=True)
class WayToStop:
    """What one way to stop costs and changes, per item on average, held out.

    Attributes:
        name: of the way.
        cost: of calls.
        changed: share of answers that differ from those of the last stage.
        own_total: calls, and every changed answer as a mistake: at most this much, less what the
            last stage costs, is lost against always-last, whatever the truth.
        expected_total: calls and mistakes: those that the reference is estimated to make, and what
            the answers are expected to lose against it.
        stage_share: share of items that stop at each stage.
        cost_half_width, changed_half_width: of 95 % intervals over items.
        error_rate, total: with truth: share of wrong answers; calls and mistakes.
    """

    name: str
    cost: float
    changed: float
    own_total: float
    expected_total: float
    stage_share: tuple[float, ...]
    cost_half_width: float
    changed_half_width: float
    error_rate: float | None = None
    total: float | None = None


def best_way(ways: Sequence[WayToStop], mistake_cost: float) -> WayToStop:
    """The way that is expected to cost least; of equals the last, as for stages.

    >>> first = WayToStop("always a", 1.0, 0.0, 1.0, 3.0, (1.0, 0.0), 0.0, 0.0)
    >>> second = WayToStop("always b", 2.0, 0.0, 2.0, 2.0, (0.0, 1.0), 0.0, 0.0)
    >>> best_way([first, second], mistake_cost=10).name
    'always b'
    """
    return ways[optimal_stage([way.expected_total / mistake_cost for way in ways])]


def share_saved(way: WayToStop, beside: WayToStop) -> float:
    """What a way is expected to save against another one, as a share of what that one costs.

    >>> one = WayToStop("always a", 1.0, 0.0, 1.0, 3.0, (1.0, 0.0), 0.0, 0.0)
    >>> share_saved(one, WayToStop("always b", 4.0, 0.0, 4.0, 4.0, (0.0, 1.0), 0.0, 0.0))
    0.25
    """
    total = beside.expected_total
    return 1 - way.expected_total / total if total > 0 else 0.0


def expected_savings(way: WayToStop, beside: WayToStop) -> str:
    """What a way saves against another one, in words.

    Only the difference is shown: how often a single stage errs is shown elsewhere, by an estimate
    that needs no reference.

    >>> one = WayToStop("always a", 1.0, 0.0, 1.0, 3.0, (1.0, 0.0), 0.0, 0.0)
    >>> expected_savings(one, WayToStop("always b", 4.0, 0.0, 4.0, 4.0, (0.0, 1.0), 0.0, 0.0))
    'expected to save 1 per item, calls and mistakes, against always b'
    """
    saved = beside.expected_total - way.expected_total
    what = f"save {amount(saved)} per item, calls and mistakes, against"
    if saved < 0:
        what = f"cost {amount(-saved)} more per item, calls and mistakes, than"
    return f"expected to {what} {beside.name}"


@dataclass(frozen=True)
class HeldOut:
    """Depths of all rows, each decided by a rule that was fitted on the other half.

    Attributes:
        depths: where each item stops.
        rules: of the two halves.
        calibration: mean gap between the risks that were stated and the differences that were
            seen, over tenths of the items, after the first stage.
        certified: with probability `level`, per-item stopping saves at least this much per item
            against always-last, calls less mistakes, whatever the truth; may be below 0.
        doubt: how far the consensus took the last stage's place, as a mean of both halves.
    """

    depths: IntArray
    rules: tuple[Rule, Rule]
    calibration: float
    certified: float
    level: float
    doubt: float


def hold_out(
    rows: Observations,
    stages: tuple[str, ...],
    costs: Costs,
    *,
    reference: str | int = "auto",
    trust: float | None = None,
    level: float = 0.99,
    seed: int = 0,
    bills: FloatArray | None = None,
) -> HeldOut:
    """Fit on each half, score on the other.

    Args:
        bills: what each stage cost on each item, where that was measured.

    >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 200))
    >>> held = hold_out(rows, ("small", "large"), Costs.from_stages([1, 4], mistake_cost=20))
    >>> np.bincount(held.depths)           # "no" is never changed, "yes" always
    array([200, 200])
    >>> bool(held.certified < 2.0)         # half of the items save 4: 2 per item is the truth
    True
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    halves = (order[::2], order[1::2])
    depths = np.zeros(len(rows), dtype=np.int64)
    stated, seen = np.zeros(len(rows)), np.zeros(len(rows))
    last = rows.stage_count - 1
    rules = []
    certified = 0.0
    for fitted, scored in (halves, halves[::-1]):
        part = rows.where(fitted)
        rule = Rule(stages, Transitions.of(part, Binning.fit(part)), costs, reference, trust)
        keys = situations(rows.where(scored), rule.counts.binning)
        depths[scored] = rule.depths_of(keys)
        # Risks against the last stage, which every complete row can check.
        plain = carry_back(rule.counts, lambda groups: differs_from(groups, last))
        stated[scored] = plain[0].look_up(keys[:, 0])[:, 0]
        seen[scored] = rows.codes[scored, 0] != rows.codes[scored, last]
        paid = None if bills is None else bills[scored]
        low = _certified(rows.codes[scored], depths[scored], costs, (1 - level) / 2, paid)
        certified += low * len(scored) / len(rows)
        rules.append(rule)
    return HeldOut(
        depths=depths,
        rules=(rules[0], rules[1]),
        calibration=calibration_error(stated, seen),
        certified=certified,
        level=level,
        doubt=(rules[0].held.doubt + rules[1].held.doubt) / 2,
    )


def score_way(
    name: str,
    depths: IntArray,
    codes: IntArray,
    costs: Costs,
    truth: IntArray | None,
    losses: FloatArray,
    *,
    spent: FloatArray | None = None,
    against: IntArray | None = None,
) -> WayToStop:
    """What came of stopping at these depths; `losses` has what each answer is expected to lose.

    Args:
        spent: what calls cost on each item; by default those of a cascade up to the depth.
        against: the outputs that answers are compared with; by default the last stage's.
    """
    at = np.arange(len(depths))
    calls = np.asarray(costs.cumulative)[depths] if spent is None else spent
    answers = codes[at, depths]
    last = codes[:, -1] if against is None else against
    changed = ((answers != last) | (answers < 0)).astype(np.float64)
    error = None
    if truth is not None:
        known = truth >= 0
        error = float((answers[known] != truth[known]).mean())
    share = np.bincount(depths, minlength=codes.shape[1]) / len(depths)
    return WayToStop(
        name=name,
        cost=float(calls.mean()),
        changed=float(changed.mean()),
        own_total=float(calls.mean() + costs.mistake_cost * changed.mean()),
        expected_total=float(calls.mean() + costs.mistake_cost * losses[at, depths].mean()),
        stage_share=tuple(float(value) for value in share),
        cost_half_width=_half_width(calls),
        changed_half_width=_half_width(changed),
        error_rate=error,
        total=None if error is None else float(calls.mean() + costs.mistake_cost * error),
    )


def calibration_error(stated: FloatArray, seen: NDArray[np.float64]) -> float:
    """The mean gap between what was stated and what was seen, over tenths of the items.

    >>> calibration_error(np.repeat([0.1, 0.9], 50), np.repeat([0.0, 1.0], 50)).__round__(3)
    0.1
    """
    order = np.argsort(stated, kind="stable")
    parts = np.array_split(order, min(CALIBRATION_BINS, len(order)))
    gaps = [abs(stated[part].mean() - seen[part].mean()) for part in parts]
    return float(np.average(gaps, weights=[len(part) for part in parts]))


def _certified(
    codes: IntArray, depths: IntArray, costs: Costs, tail: float, bills: FloatArray | None
) -> float:
    """A lower bound on what is saved per item against always-last, whatever the truth.

    Each item saves C_K - C_J, and loses at most M if its answer changed: a mean of bounded numbers,
    bounded below by the empirical Bernstein inequality (Maurer and Pontil 2009), which holds for
    every sample size. Bills have no known bound; but what an item saves, and M where its answer
    is the same, is never below 0, which is all that `mean_bounds` needs.
    """
    cumulative = np.asarray(costs.cumulative)
    at = np.arange(len(depths))
    answers = codes[at, depths]
    changed = (answers != codes[:, -1]) | (answers < 0)
    if bills is not None:
        through = np.cumsum(bills, axis=1)
        worth = through[:, -1] - through[at, depths] + costs.mistake_cost * ~changed
        low, _ = mean_bounds(spread_of(np.maximum(worth, 0.0)), tail)
        return low - costs.mistake_cost
    saved = cumulative[-1] - cumulative[depths] - costs.mistake_cost * changed
    return mean_lower_bound(saved, cumulative[-1] - cumulative[0] + costs.mistake_cost, tail)


def mean_lower_bound(values: FloatArray, width: float, tail: float) -> float:
    """A lower bound on the mean of numbers that lie within an interval of this width.

    >>> mean_lower_bound(np.ones(1000), 1.0, 0.005).__round__(3)
    0.986
    """
    number = len(values)
    if number < 2:
        return -math.inf
    logarithm = math.log(2 / tail)
    spread = math.sqrt(2 * float(values.var(ddof=1)) * logarithm / number)
    return float(values.mean()) - spread - 7 * width * logarithm / (3 * (number - 1))


def _half_width(values: FloatArray) -> float:
    if len(values) < 2 or values.min() == values.max():  # rounding would show as a tiny width
        return 0.0
    return 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
