"""Counts that are carried along give the very distribution of counts that are added up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moments import interrupted
from stopwise.live import Learner, RoundLog, SqliteStore

KINDS: list[dict[str, Any]] = [
    {"half_life": 30.0},
    {"half_life": 30.0, "segment_strength": 0.0},
    {},
    {"segment_strength": 5.0, "full_run_rate": 0.1},
    {"measured": True},
    {"measured": True, "half_life": 30.0},
    {"measured": True, "run_budget": 1000.0},
    {"policy": "uss-ts-tempered"},
    {"abstentions": "go on"},
]


@pytest.mark.parametrize("settings", KINDS, ids=str)
@pytest.mark.parametrize("segments", ["a", "abcd"])
def test_a_learner_that_is_asked_after_every_round_draws_the_same(
    settings: dict[str, Any], segments: str
) -> None:
    def learner() -> Learner:
        return Learner([0.0, 0.1, 0.1], seed=4, **settings)

    untouched, asked = learner(), learner()
    rng = np.random.default_rng(2)
    for turn in range(330):  # more than wait to be added up
        segment = segments[int(rng.integers(len(segments)))]
        outputs = [int(rng.random() < 0.2) for _ in range(3)]
        if settings.get("abstentions"):
            outputs = [None if rng.random() < 0.1 else one for one in outputs]  # type: ignore[misc]
        price = float(rng.random() * 0.2) if settings.get("measured") else None
        asked.report()  # adds all up
        expected = asked.probabilities(segment)
        rounds = [one.begin(segment) for one in (untouched, asked)]
        assert rounds[0].depth == rounds[1].depth
        assert rounds[0].probability == pytest.approx(expected[rounds[0].depth], rel=1e-12)
        for round in rounds:
            for stage in range(round.depth + 1):
                round.observe(outputs[stage], price)
            round.end()
        if turn % 97 == 0:
            untouched.add_evidence(asked.evidence(segment), "b")
            asked.add_evidence(asked.evidence(segment), "b")
    assert untouched.report().spent == pytest.approx(asked.report().spent)
    for segment in segments:
        assert untouched.probabilities(segment) == asked.probabilities(segment)


@pytest.mark.parametrize("interrupts", [False, True])
def test_what_lending_segments_keep_is_what_they_would_make_again(*, interrupts: bool) -> None:
    """Pairs that always disagree, and then always agree: settled, near a threshold, settled."""
    learner = Learner([0.0, 0.4, 0.0], seed=4, full_run_rate=0.5, segment_strength=200.0)
    counters = learner._books.counters
    kept = between = turn = 0

    def begin() -> Any:
        # The others begin as often, so that the rounds of one change what all may read.
        return learner.begin("abcb"[turn % 4])

    def run() -> None:
        round = begin()
        for stage in range(round.depth + 1):
            round.observe(stage if turn < 1000 else 0)
        round.end()

    for turn in range(4500):
        if interrupts and turn % 9 == 0:
            interrupted(run, turn % 67)  # cut at a moment, which differs
        else:
            run()
        fast = [tally.fast.current for tally in counters.tallies.values() if tally.fast is not None]
        kept += any(fast)
        if turn % 7 == 0:
            drawn = begin()
            expected = learner.probabilities(drawn.segment)  # adds all up, and makes it again
            assert drawn.probability == expected[drawn.depth]
            between += 0.001 < expected[0] < 0.499
            drawn.abandon()
    assert kept > 100
    assert between > 10


def test_a_snapshot_goes_on_with_the_same_bits(tmp_path: Any) -> None:
    for settings in KINDS[:4]:
        first = Learner([0.0, 0.1, 0.1], seed=4, **settings)
        second = Learner([0.0, 0.1, 0.1], seed=4, **settings)
        rng = np.random.default_rng(3)
        for turn in range(200):
            if turn == 100:
                first.save(tmp_path / "saved.json")
                second.load(tmp_path / "saved.json")
            outputs = [int(rng.random() < 0.15) for _ in range(3)]
            learners = [first] if turn < 100 else [first, second]
            drawn = []
            for learner in learners:
                with learner.begin("ab"[turn % 2]) as round:
                    for stage in range(round.depth + 1):
                        round.observe(outputs[stage])
                drawn.append((round.number, round.depth, round.probability))
            assert len(set(drawn)) == 1


def test_an_interrupt_after_a_round_was_queued_counts_it_once(tmp_path: Any) -> None:
    """A signal handler may raise between the two lists that a round is put into."""
    learner = Learner([0.0, 0.1], seed=4, store=SqliteStore(tmp_path / "db", durability="behind"))

    class Interrupted(list[Any]):
        def append(self, one: Any) -> None:
            raise KeyboardInterrupt

    ended = 0
    for turn in range(60):
        round = learner.begin()
        for stage in range(round.depth + 1):
            round.observe("xy"[(turn * stage) % 2])
        counters = learner._books.counters
        if turn % 7 == 3:
            pending, quiet = counters.pending, counters.quiet
            counters.pending, counters.quiet = Interrupted(pending), Interrupted(quiet)
            with pytest.raises(KeyboardInterrupt):
                round.end()
            counters.pending, counters.quiet = pending, quiet
        else:
            round.end()
        ended += 1
    assert learner.rounds == ended
    memory = learner.evidence().to_json()
    learner.close()
    again = Learner([0.0, 0.1], seed=4, store=SqliteStore(tmp_path / "db"))
    assert again.rounds == ended
    assert again.evidence().to_json() == memory
    again.close()


MANY = {"costs": [0.0, *[0.1] * 9]}


@pytest.mark.parametrize("settings", [*KINDS, MANY], ids=str)
def test_carried_counts_are_those_added_up_wherever_a_round_is_interrupted(
    settings: dict[str, Any],
) -> None:
    options = {**settings}
    costs = options.pop("costs", [0.0, 0.1, 0.1])
    learner = Learner(costs, seed=4, **options)
    counters = learner._books.counters
    turn = 0

    def run() -> None:
        nonlocal turn
        turn += 1
        round = learner.begin("ab"[turn % 2])
        for stage in range(round.depth + 1):
            round.observe("xy"[(turn * stage) % 5 == 0])
        round.end()

    for _ in range(30):
        run()
    moment = 0
    while interrupted(run, moment):
        run()  # the short way, on what the interrupt has left
        learner.report()  # adds all up
        for segment, tally in counters.tallies.items():
            if tally.fast is not None:
                found = learner.probabilities(segment)
                tally.renew_fast()
                counters.pool.renew_fast()
                assert found == pytest.approx(learner.probabilities(segment), rel=1e-9, abs=1e-15)
        at = counters.pool.layout
        for place in (at.rounds, at.seen, at.disagreed, at.spent):
            both = sum(tally.values[place] for tally in counters.tallies.values())
            assert counters.pool.values[place] == pytest.approx(both)
        moment += 1
    assert moment > 25


@pytest.mark.parametrize(
    "settings", [{"abstentions": "mistake"}, {"comparator": "folded"}], ids=str
)
def test_no_round_is_drawn_from_what_an_interrupt_has_left(
    settings: dict[str, Any], tmp_path: Any
) -> None:
    """The rounds of this learner are counted one by one, from their records."""
    learner = Learner(
        [0.0, 0.1, 0.1], "uss-ts", seed=4, store=RoundLog(tmp_path / "log"), **settings
    )
    turn = 0

    def run() -> Any:
        nonlocal turn
        turn += 1
        round = learner.begin()
        for stage in range(round.depth + 1):
            round.observe("12"[(turn * stage) % 7 == 1])
        round.end()
        return round

    for _ in range(10):
        run()
    moment = 0
    while interrupted(run, moment):
        moment += 1
        for _ in range(2):
            expected = learner.policy.probabilities(learner.evidence(), 1, learner.costs)
            round = run()
            assert round.probability == pytest.approx(expected[round.depth], rel=1e-9)
    learner.close()
