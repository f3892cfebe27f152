"""The bet against a pair that does not change: its value, its memory, and when it gives alarm."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence

import pytest
from scipy.special import betaln

from stopwise import StopwiseError
from stopwise.live.watching.bets import PairWatch, part_of
from stopwise.live.watching.drift import Drift, DriftAlarm, DriftWatch


def watched(sequence: list[bool], window: int) -> PairWatch:
    watch = PairWatch()
    for differs in sequence:
        if watch.count(differs, window):
            watch.add_step(window)
    return watch


def mixture(part: list[bool]) -> float:
    """The logarithm of a sequence's probability under a rate drawn from Beta(1/2, 1/2)."""
    n, k = len(part), sum(part)
    return float(betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5))


def best_rate(part: list[bool]) -> float:
    n, k = len(part), sum(part)
    return sum(count * math.log(count / n) for count in (k, n - k) if count)


@pytest.mark.parametrize("window", [1, 3])
def test_the_bet_is_the_sum_over_moments_of_change(window: int) -> None:
    """All sequences of 9 observations, against the definition, summed here."""
    for bits in itertools.product([False, True], repeat=9):
        sequence = list(bits)
        terms = [
            math.log(part_of(n // window)) + mixture(sequence[:n]) + mixture(sequence[n:])
            for n in range(window, 10, window)
        ]
        top = max(terms)
        expected = top + math.log(sum(math.exp(term - top) for term in terms))
        found, _ = watched(sequence, window).bet()
        assert found == pytest.approx(expected - best_rate(sequence), abs=1e-9)


def test_the_parts_of_the_segments_sum_to_less_than_one() -> None:
    assert sum(map(part_of, range(1, 200_000))) + 1 / (2.11 * math.log(200_000)) < 1.0 + 1e-4
    assert all(one > two for one, two in itertools.pairwise(map(part_of, range(1, 100))))


def test_memory_grows_with_the_logarithm_of_the_observations() -> None:
    numbers = random.Random(3)
    kept = {}
    watch = PairWatch()
    for at in range(1, 40_001):
        if watch.count(numbers.random() < 0.1, 20):
            watch.add_step(20)
        if at in (10_000, 20_000, 40_000):
            kept[at] = len(watch.steps)
    assert kept[40_000] < 120
    assert kept[40_000] - kept[20_000] <= kept[20_000] - kept[10_000] + 8


def test_an_alarm_says_before_after_and_when_and_begins_again() -> None:
    watch = DriftWatch(2, Drift(window=20))
    for at in range(600):
        assert not watch.observe("de", [(0, at % 10 == 0)])
    alarms: Sequence[DriftAlarm] = []
    while not alarms:
        alarms = watch.observe("de", [(0, True)])
    (alarm,) = alarms
    assert alarm.segment == "de"
    assert alarm.stages == (0, 1)
    assert alarm.before == pytest.approx(0.1, abs=0.02)
    assert alarm.after > 0.5
    assert alarm.p_value < 0.01
    (number, (pair,)) = watch.segments["de"]
    assert (number, pair.alarms, pair.seen) == (1, 1, 0)


def test_no_alarm_without_a_change() -> None:
    """300 pairs of 2,000 observations each.

    At the level 1e-8 the chance of any alarm, ever, in any of them is at most 3e-6 by the bound of
    the bet, and the seed is fixed.
    """
    numbers = random.Random(7)
    for at in range(300):
        watch = DriftWatch(2, Drift(window=50, false_alarm=1e-8))
        rate = (at % 10) / 10
        for _ in range(2_000):
            assert not watch.observe("", [(0, numbers.random() < rate)])


def test_a_bet_is_written_and_read_back() -> None:
    watch = DriftWatch(3, Drift(window=5))
    numbers = random.Random(1)
    for _ in range(200):
        watch.observe("x", [(pair, numbers.random() < 0.2) for pair in range(3)])
    again = DriftWatch(3, Drift(window=5))
    again.restore("x", json.loads(json.dumps(watch.form_of("x"))))
    assert again.form_of("x") == watch.form_of("x")
    for one, two in zip(again.segments["x"][1], watch.segments["x"][1], strict=True):
        assert one.bet() == two.bet()


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"number": 1, "pairs": []},
        {"number": 0, "pairs": [[0, 0, 0, []]]},
        {"number": 1, "pairs": [[0, 1, 2, []]]},
        {"number": 1, "pairs": [[0, 5, 1, [[6, 1]]]]},
        {"number": 1, "pairs": [[0, 5, 1, [[2, 1], [2, 1]]]]},
        {"number": 1, "pairs": [[0, 5, 1, [[2, 1, math.inf]]]]},
        {"number": 1, "pairs": [[0, 5, 1]]},
        {"number": 1, "pairs": ["x"]},
    ],
)
def test_what_is_no_bet_is_refused(form: object) -> None:
    with pytest.raises(StopwiseError, match="drift"):
        DriftWatch(2, Drift()).restore("x", form)
