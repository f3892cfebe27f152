"""The promise of agreement, live: kept at every moment, by threads, batches, restarts, budgets."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.live import Cascade, Learner, Reported, RoundLog, SqliteStore, Stage
from stopwise.live.items.path import Deciding, ItemPath
from stopwise.live.items.promise import LiveGuard
from stopwise.policies.per_item.agreeing import agree_over
from stopwise.policies.per_item.agreement_guard import AgreementGuard, most_missed
from stopwise.policies.per_item.rule import Rule

STAGES = {"small": 0.1, "medium": 1.0, "large": 4.0}
NAMES = tuple(STAGES)
ROWS = made_up(6000, (0.6, 1.5, 2.5), seed=3)[0]
EASY = {"agree": 0.7, "level": 0.7, "look_rate": 0.3, "seed": 4}


def play(learner: Learner, item: int, segment: str = "") -> tuple[int, Any]:
    """One round on a row; where it stopped, and what it answered."""
    assert ROWS.confidences is not None
    round = learner.begin(segment)
    for stage in range(3):
        label = ROWS.labels[ROWS.codes[item, stage]]
        round.observe(label, confidence=float(ROWS.confidences[item, stage]))
        if stage == round.depth or (round.per_item and learner.stops(round)):
            break
    return len(round.outputs) - 1, round.end().answer


def stage_of(at: int, fail_at: int = -1) -> Stage:
    def call(item: int) -> Reported:
        if at == fail_at:
            raise ValueError("no")
        assert ROWS.confidences is not None
        label = ROWS.labels[ROWS.codes[item, at]]
        return Reported(label, confidence=float(ROWS.confidences[item, at]))

    return Stage(NAMES[at], call, cost=list(STAGES.values())[at])


def test_the_first_open_round_by_hand() -> None:
    """The bound by numerical integration of the mixture that the docstring names."""
    rate, alpha, agree = 0.3, 0.3, 0.7
    law = beta(2, 2 * (1 - rate) / rate)

    def ratio(missed: int) -> float:
        top = quad(lambda p: law.pdf(p) * (1 - p) ** missed, 0, rate)[0]
        return float(top / law.cdf(rate) / (1 - rate) ** missed)

    missed = next(u for u in range(100) if ratio(u + 1) >= 1 / alpha)
    assert most_missed(0, rate, alpha) == missed
    opens = int(np.ceil(missed / (1 - agree)))
    guard = LiveGuard(AgreementGuard(agree, 1 - alpha, rate))
    for rounds, opened in ((0, False), (opens - 2, False), (opens - 1, True), (opens, True)):
        guard.read = lambda rounds=rounds: (rounds, 0, 0, 0, 0)  # type: ignore[misc]
        assert guard.may_stop() is opened
    guard.read = lambda: (opens - 1, 0, 0, 0, 1)  # one round is known to differ
    assert not guard.may_stop()


@pytest.mark.parametrize("delay", [0, 12])
def test_a_thousand_streams_keep_it_at_every_moment(delay: int) -> None:
    """Items that nearly all differ as soon as they may stop early, and looks that end late.

    More broken ones than binom.ppf(1 - 1e-6) are a false alarm with a chance below 1e-6.
    """
    promise = AgreementGuard(agree=0.8, level=0.8, look_rate=0.25)
    runs, count, broken, stopped, by = 1000, 600, 0, 0, Deciding()
    random = np.random.default_rng(delay)
    for _ in range(runs):
        guard = LiveGuard(promise)
        counters = [0, 0, 0, 0, 0]
        guard.read = lambda counters=counters: counters  # type: ignore[misc]
        late: deque[tuple[int, bool, ItemPath]] = deque()
        coins, differ = (random.random((2, count)) < [[0.25], [0.9]]).tolist()
        missed = 0
        for at, (look, other) in enumerate(zip(coins, differ, strict=True)):
            while late and late[0][0] <= at:
                _, found, path = late.popleft()
                counters[3] += found
                guard.ended(path)
            opened = guard.may_stop()
            counters[0] += 1
            if not opened:
                continue
            path = ItemPath(by)
            path.looked = look
            guard.begun(path)
            if look:
                late.append((at + 1 + delay, other, path))
            else:
                guard.ended(path)
                stopped += 1
                missed += other
                if missed > 0.2 * (at + 1) + 1e-9:
                    broken += 1
                    break
    assert broken <= binom.ppf(1 - 1e-6, runs, 0.2)
    assert stopped > runs * 10  # and it does let items stop early


def test_live_is_the_replay_round_by_round() -> None:
    """The same rule, the same price, the same coin: every round stops where the replay stops it."""
    count = 2500
    learner = Learner(STAGES, **EASY)

    class Coins:
        """The random numbers of the live rounds, in the order in which the replay asks."""

        done = 0

        def random(self, size: int) -> np.ndarray:
            draws = learner._books.ledger.chooser.draws
            found = [draws.uniform(self.done + 1 + at) for at in range(size)]
            self.done += size
            return np.asarray(found)

    guard = AgreementGuard(EASY["agree"], EASY["level"], EASY["look_rate"])
    rows = ROWS.where(np.arange(count))
    costs = Costs.from_stages(list(STAGES.values()))
    coins: Any = Coins()
    stream = agree_over(NAMES, rows, costs, guard, coins)
    depths = [play(learner, item)[0] for item in range(count)]
    assert depths == stream.depths.tolist()
    assert len(set(depths)) == 3
    promise = learner.report().promise
    assert promise is not None
    assert (promise.rounds, promise.found, promise.cut) == (guard.rounds, guard.found, 0)
    assert promise.least_agreement >= guard.least_agreement
    assert promise.least_agreement >= 0.7
    assert "promise: at least 70.0% agree" in str(learner.report())
    differs = rows.codes[np.arange(count), depths] != rows.codes[:, 2]
    assert differs.mean() <= 0.3
    assert np.mean(np.asarray(depths) < 2) > 0.3


def kinds(folder: Any) -> dict[str, Any]:
    return {
        "log": lambda: RoundLog(folder / "rounds.jsonl"),
        "sqlite": lambda: SqliteStore(folder / "rounds.db", writer="one"),
    }


@pytest.mark.parametrize("name", ["log", "sqlite", "snapshot"])
def test_a_restart_goes_on_with_the_promise(name: str, tmp_path: Any) -> None:
    count = 700

    def learner(**more: Any) -> Learner:
        return Learner(STAGES, **EASY, **more)  # type: ignore[arg-type]

    if name == "sqlite":  # a writer draws numbers of its own
        with learner(store=SqliteStore(tmp_path / "twin.db", writer="one")) as twin:
            expected = [play(twin, item) for item in range(count)]
    else:
        twin = learner()
        expected = [play(twin, item) for item in range(count)]
    wanted = twin.report().promise
    found, start, at = [], 0, None
    for stop in (40, 150, 330, 555, count):
        store = None if name == "snapshot" else kinds(tmp_path)[name]()
        with learner(store=store) as made:
            if name == "snapshot" and start:
                made.load(tmp_path / "state.json")
            found += [play(made, item) for item in range(start, stop)]
            if name == "snapshot":
                made.save(tmp_path / "state.json")
            start, at = stop, made.report().promise
    assert at is not None
    assert wanted is not None
    if name == "sqlite":  # a database makes its rule again from how the promise stands at the start
        assert (at.rounds, at.cut) == (wanted.rounds, wanted.cut)
        assert at.least_agreement > 0.7
    else:
        assert found == expected
        assert at == wanted
    assert any(depth < 2 for depth, _ in found)


def test_processes_that_share_a_store_keep_one_promise(tmp_path: Any) -> None:
    learners = [
        Learner(STAGES, **EASY, store=SqliteStore(tmp_path / "rounds.db", writer=f"writer {at}"))  # type: ignore[arg-type]
        for at in range(2)
    ]
    rounds = 0
    for item in range(300):
        for at, learner in enumerate(learners):
            play(learner, 2 * item + at, segment="ab"[at])
            rounds += 1
        if item % 20 == 0:
            for learner in learners:
                learner.refresh()
    for learner in learners:
        learner.refresh()
    reports = [learner.report() for learner in learners]
    assert reports[0].promise == reports[1].promise
    promise = reports[0].promise
    assert promise is not None
    assert promise.rounds == rounds == 600
    assert promise.open > 0
    parts = [learners[0].report(segment).promise for segment in "ab"]
    for name in ("rounds", "open", "looks", "found", "cut"):
        assert sum(getattr(part, name) for part in parts) == getattr(promise, name)
    for learner in learners:
        learner.close()
    with pytest.raises(StopwiseError, match=r"look_rate are .* a promise goes on only as it was"):
        Learner(STAGES, agree=0.7, look_rate=0.2, store=SqliteStore(tmp_path / "rounds.db"))


def test_threads_and_batches_count_open_looks() -> None:
    cascade = Cascade([stage_of(at) for at in range(3)], **EASY)  # type: ignore[arg-type]
    items = list(range(1500))

    def work(part: list[int]) -> None:
        for item in part:
            cascade.answer(item)

    threads = [threading.Thread(target=work, args=(items[at:750:5],)) for at in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    guard = cascade.learner._books.items.guard  # type: ignore[union-attr]
    assert guard is not None
    assert (guard._open, guard._looks) == (0, 0)
    many = cascade.answer_many(items[750:], batch_size=64).collect()
    assert (guard._open, guard._looks) == (0, 0)
    early = [answer for answer in many if answer.depth != "large"]
    assert len(early) > 100
    # One batch of all at once: no more may stop than may differ, were all of them to.
    promise = cascade.learner.report().promise
    assert promise is not None
    room = 0.3 * (promise.rounds + 1) - most_missed(promise.found, 0.3, 0.3)
    whole = cascade.answer_many(range(3000, 6000), batch_size=3000).collect()
    assert sum(answer.depth != "large" for answer in whole) <= room
    assert promise.rounds == 1500


def test_what_keeps_a_round_from_the_end_counts_as_different() -> None:
    learner = Learner(STAGES, **EASY, item_budget=1.5)  # type: ignore[arg-type]
    for item in range(50):
        assert play(learner, item)[0] == 1
    promise = learner.report().promise
    assert promise is not None
    assert (promise.rounds, promise.cut, promise.open) == (50, 50, 0)
    assert promise.least_agreement == 0.0


def test_a_failure_is_what_a_full_run_would_have_met() -> None:
    stages = [stage_of(at, fail_at=2) for at in range(3)]
    cascade = Cascade(stages, **EASY)  # type: ignore[arg-type]
    for item in range(400):
        cascade.answer(item)
    promise = cascade.learner.report().promise
    assert promise is not None
    assert promise.cut == 0
    assert promise.rounds == 400
    broken = Cascade(stages, on_failure="raise", **EASY)  # type: ignore[arg-type]
    for item in range(10):
        with pytest.raises(ValueError, match="no"):
            broken.answer(item)


def test_shadow_prepares_the_promise_and_changes_nothing(tmp_path: Any) -> None:
    learner = Learner(STAGES, mode="shadow", store=RoundLog(tmp_path / "rounds.jsonl"), **EASY)  # type: ignore[arg-type]
    answers = [play(learner, item) for item in range(800)]
    assert {depth for depth, _ in answers} == {2}
    assert [answer for _, answer in answers] == [ROWS.labels[code] for code in ROWS.codes[:800, 2]]
    report = learner.report()
    assert report.promise is not None
    assert report.promise.open > 0
    assert sum(report.advised[:2]) > 100  # advised only while the promise is open
    assert report.advised[2] > 30
    learner.close()
    with pytest.raises(StopwiseError, match="run_to: got 'medium', but need the last stage"):
        Learner(STAGES, mode="shadow", run_to="medium", **EASY)  # type: ignore[arg-type]


def test_a_fitted_rule_and_rules_that_do_not_learn_keep_it_too() -> None:
    rule = Rule.fit(NAMES, ROWS.where(np.arange(2000)), Costs.from_stages([0.1, 1, 4], 8))
    for more in ({"rule": rule}, {"policy": "agree-in-a-row"}):
        learner = Learner(STAGES, **{**EASY, **more})  # type: ignore[arg-type]
        depths = [play(learner, item)[0] for item in range(2000, 3500)]
        differs = ROWS.codes[np.arange(2000, 3500), depths] != ROWS.codes[2000:3500, 2]
        assert np.mean(np.asarray(depths) < 2) > 0.3
        assert np.mean(np.asarray(depths[:400]) < 2) > 0.1  # a large log does not hold it up
        assert differs.mean() <= 0.3
        promise = learner.report().promise
        assert promise is not None
        assert promise.rounds == 1500


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"agree": 1.0}, "agree: got 1.0, but need a number above 0 and below 1"),
        ({"agree": 0.9, "level": 0}, "level: got 0"),
        ({"agree": 0.9, "look_rate": "x"}, "look_rate: got 'x'"),
        ({"agree": 0.9, "policy": "uss-ts"}, "policy: got 'uss-ts', but need one that decides per"),
    ],
)
def test_promises_that_make_no_sense_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(StopwiseError, match=message):
        Learner(STAGES, **given)
