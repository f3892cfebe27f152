"""Rounds in memory that are shown to the watch together, not one after another."""

from __future__ import annotations

import random
import threading

import pytest

from stopwise.live import Drift, Learner
from stopwise.live.watching.drift import DriftWatch

STAGES = [0, 1, 1]


def play(learner: Learner, outputs: list[int], segment: str = "") -> list[int]:
    """One round; the outputs that were seen."""
    with learner.begin(segment) as round:
        for output in outputs[: round.depth + 1]:
            round.observe(output)
    return outputs[: round.depth + 1]


def shown(watch: DriftWatch, segment: str, outputs: list[int]) -> list[object]:
    """The same round, shown to a watch by itself."""
    pairs = [
        (number, outputs[i] != outputs[j])
        for number, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)])
        if j < len(outputs)
    ]
    return list(watch.observe(segment, pairs)) if pairs else []


@pytest.mark.parametrize("segments", [1, 3, 12])
@pytest.mark.parametrize("half_life", [None, 200])
def test_alarms_come_in_the_round_in_which_the_bet_is_won(
    segments: int, half_life: float | None
) -> None:
    drift = Drift(window=7, false_alarm=0.2)
    heard: list[object] = []
    learner = Learner(
        STAGES, mistake_cost=4, full_run_rate=0.5, half_life=half_life, drift=drift,
        on_drift=heard.append,
    )  # fmt: skip
    alone, expected, numbers = DriftWatch(3, drift), [], random.Random(4)
    for at in range(segments * 700):
        segment = f"segment {numbers.randrange(segments)}"
        p = 0.1 if at < segments * 350 else 0.8
        outputs = play(learner, [0, *(int(numbers.random() < p) for _ in range(2))], segment)
        expected += shown(alone, segment, outputs)
        assert heard == expected, at
        if at % 97 == 0:
            learner.evidence()  # adds up what waits
    assert len(expected) >= 2
    for name, kept in learner.to_form()["state"]["segments"].items():
        assert kept["drift"] == alone.form_of(name)


def test_rounds_of_many_threads_are_all_shown() -> None:
    learner = Learner(STAGES, "fixed", drift=Drift(window=20))
    threads = [
        threading.Thread(target=lambda: [play(learner, [0, 0, 1]) for _ in range(300)])
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert learner.rounds == 1800
    form = learner.to_form()["state"]["segments"][""]["drift"]
    assert [(seen, differed) for _, seen, differed, _ in form["pairs"]] == [
        (1800, 0), (1800, 1800), (1800, 1800),
    ]  # fmt: skip
