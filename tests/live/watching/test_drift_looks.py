"""Bets that are not evaluated because they cannot have reached their level."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given as on_any
from hypothesis import strategies as st

from stopwise.checks import StopwiseError
from stopwise.live import Learner
from stopwise.live.pairs import added_by, pair_count
from stopwise.live.watching.bets import PairWatch
from stopwise.live.watching.drift import Drift, DriftAlarm, DriftWatch, _level


def test_no_alarm_comes_later_than_where_every_bet_is_evaluated() -> None:
    """Rates that stay, and rates that change a little or much, against bets of all windows."""
    numbers = random.Random(5)
    evaluated = 0
    for before, after in ((0.3, 0.3), (0.02, 0.1), (0.4, 0.5), (0.1, 0.9), (0.0, 1.0)):
        watch, plain = DriftWatch(2, Drift(window=10)), PairWatch()
        for at in range(1500):
            differs = numbers.random() < (before if at < 800 else after)
            alarms = watch.observe("", [(0, differs)])
            expected = False
            if plain.count(differs, 10):
                bet, _ = plain.bet()
                expected = bet >= _level(0.01, 1, plain.alarms)
                if expected:
                    again = PairWatch()
                    again.alarms, plain = plain.alarms + 1, again
                else:
                    plain.add_step(10)
                evaluated += expected
            assert bool(alarms) == expected, (before, after, at)
    assert evaluated >= 3


def test_a_restart_between_two_looks_changes_no_alarm() -> None:
    numbers = random.Random(6)
    one, two = DriftWatch(3, Drift(window=7)), DriftWatch(3, Drift(window=7))
    alarms = 0
    for at in range(900):
        rate = 0.1 if at < 500 else 0.6
        pairs = [(pair, numbers.random() < rate) for pair in range(3) if numbers.random() < 0.8]
        if numbers.random() < 0.1:
            form = json.loads(json.dumps(two.form_of("x")))
            two = DriftWatch(3, Drift(window=7))
            if form is not None:
                two.restore("x", form)
        found = list(one.observe("x", pairs))
        assert found == list(two.observe("x", pairs))
        alarms += len(found)
    assert alarms >= 3
    assert one.form_of("x") == two.form_of("x")


@on_any(st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 40]), st.integers(2, 9))
def test_rounds_counted_together_are_as_counted_one_by_one(
    seed: int, window: int, stages: int
) -> None:
    """With nine stages there are too many pairs for one number."""
    numbers = random.Random(seed)
    one, many = DriftWatch(stages, Drift(window=window)), DriftWatch(stages, Drift(window=window))
    rate = 0.05
    found: list[DriftAlarm] = []
    expected: list[DriftAlarm] = []
    for _ in range(60):
        rate = numbers.choice([rate, rate, 0.05, 0.9])
        ended = []
        for _ in range(numbers.randrange(12)):
            seen = (1 << numbers.randint(2, stages)) - 1
            pairs = (pair for pair in range(pair_count(stages)) if numbers.random() < rate)
            ended.append(added_by(seen, sum(1 << pair for pair in pairs)))
        found += many.observe_added("x", ended)
        for added in ended:
            expected += one.observe("x", added.pairs)
        assert many.room("x") >= 1
    assert many.form_of("x") == one.form_of("x")
    assert found == expected


@pytest.mark.parametrize("given", [True, 20, {"window": 20}])
def test_what_is_no_drift_is_refused_before_the_first_round(given: object) -> None:
    with pytest.raises(StopwiseError, match=r"drift: got .*, but need Drift\(\)"):
        Learner({"small": 1, "large": 5}, "per-item", mistake_cost=40, drift=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["on_round", "on_drift"])
def test_what_cannot_be_called_is_refused_before_the_first_round(name: str) -> None:
    with pytest.raises(StopwiseError, match=f"{name}: got 3, but need a function"):
        Learner({"small": 1, "large": 5}, mistake_cost=40, **{name: 3})  # type: ignore[arg-type]
