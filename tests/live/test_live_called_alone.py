"""Live stages that are called alone: what is called, paid, counted, kept; equal to a replay."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import stopwise as sw
from cascade_stages import stages_by_item
from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.live import Learner, read_evidence
from stopwise.live.choosing.chooser import pick
from stopwise.live.choosing.draws import RoundDraws
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.replaying.alone import run_alone
from stopwise.logs.settings import LogSettings
from stopwise.policies.per_item.alone.full_runs import full_run_probability
from stopwise.policies.registry import make_policy

NAMES, OWN = ("small", "middle", "large"), (1.0, 3.0, 20.0)
COSTS = dict(zip(NAMES, OWN, strict=True))
ITEMS = 1500


def outputs(rows=ITEMS, seed=5):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows)
    wrong = [rng.random(rows) < share for share in (0.3, 0.05, 0.04)]
    return np.stack([np.where(one, 1 - truth, truth) for one in wrong], axis=1)


TABLE = outputs()


def cascade(called=None, table=TABLE, **settings):
    def stage(at):
        def function(item):
            if called is not None:
                called.append((item, at))
            return int(table[item, at])

        return sw.Stage(NAMES[at], function, OWN[at])

    given = {"mistake_cost": 50, "calls": "alone", "seed": 3, **settings}
    return sw.Cascade([stage(at) for at in range(3)], **given)


def counted(learner):
    evidence, report = learner.evidence(), learner.report()
    return evidence.seen.tolist(), evidence.disagreed.tolist(), report.to_dict()


def drawn_learner(learner, table=TABLE, rows=ITEMS):
    for item in range(rows):
        round = learner.begin()
        while (stage := round.next_stage) is not None:
            round.observe(int(table[item, stage]))
        round.end()
    return learner


def test_a_round_calls_one_stage_or_all_and_pays_what_it_calls():
    called: list[tuple[int, int]] = []
    live = cascade(called)
    answers = [live.answer(item) for item in range(ITEMS)]
    by_item = stages_by_item(called)
    for item, answer in enumerate(answers):
        stages = by_item[item]
        assert stages == [0, 1, 2] or len(stages) == 1
        assert answer.cost == sum(OWN[stage] for stage in stages)
        assert answer.stage == NAMES[stages[-1]]
        assert answer.answer == TABLE[item, stages[-1]]
    full = sum(len(stages) == 3 for stages in by_item.values())
    report = live.learner.report()
    assert report.calls == tuple(sum(at == stage for _, at in called) for stage in range(3))
    assert report.spent == sum(answer.cost for answer in answers)
    assert live.learner.evidence().seen[0, 1] == full
    assert report.abstentions == (0, 0, 0)
    assert report.saved_alone == pytest.approx(ITEMS * 20 - report.spent)
    assert str(report).endswith(f"saved {report.saved_alone:g} against large alone")


def test_learner_cascade_async_and_batches_count_the_same():
    """Batches draw from what was known before them, so these are of one item."""
    one = cascade()
    for item in range(300):
        one.answer(item)
    many = cascade()
    many.answer_many(range(300), batch_size=1).collect()
    drawn = drawn_learner(Learner(COSTS, mistake_cost=50, calls="alone", seed=3), rows=300)
    assert counted(one.learner) == counted(many.learner) == counted(drawn)

    async def together():
        live = cascade(at_once=True)
        for item in range(300):
            await live.answer_async(item)
        return counted(live.learner)

    assert asyncio.run(together()) == counted(one.learner)


def test_a_batch_calls_each_stage_once_on_the_items_that_want_it():
    calls: list[tuple[int, int]] = []

    def stage(at):
        def function(items):
            calls.append((at, len(items)))
            return [int(TABLE[item, at]) for item in items]

        return sw.Stage(NAMES[at], function, OWN[at], batch=True)

    live = sw.Cascade([stage(at) for at in range(3)], mistake_cost=50, calls="alone", seed=3)
    found = live.answer_many(range(1000), batch_size=500).collect()
    assert len(calls) <= 6
    assert sum(number for _, number in calls) == sum(live.learner.report().calls)
    assert sum(answer.cost for answer in found) == live.learner.report().spent


def test_evidence_is_that_of_full_runs_and_unbiased():
    """Of 200 streams each, the mean rate of every pair lies within six standard errors of the true
    one (false alarm below 1e-6 for three pairs)."""
    rates = []
    for seed in range(200):
        learner = Learner(COSTS, mistake_cost=50, calls="alone", seed=seed)
        drawn_learner(learner, outputs(120, seed + 1000), 120)
        evidence = learner.evidence()
        rates.append([evidence.disagreed[i, j] / evidence.seen[i, j] for i, j in PAIRS])
    true = [0.3 * 0.95 + 0.7 * 0.05, 0.3 * 0.96 + 0.7 * 0.04, 0.05 * 0.96 + 0.95 * 0.04]
    mean, error = np.mean(rates, axis=0), np.std(rates, axis=0) / np.sqrt(200)
    assert (np.abs(mean - true) < 6 * error).all()


PAIRS = ((0, 1), (0, 2), (1, 2))


def test_propensities_are_exact():
    """What is logged is the chance of the coin, or what is left of it times the policy's own."""
    records: list[Any] = []
    learner = Learner(COSTS, mistake_cost=50, calls="alone", seed=3, on_round=records.append)
    policy, own = make_policy("uss-ts-jump"), Costs.from_stages(OWN, 50)
    rule = Costs.from_cumulative(OWN, 50)
    for item in range(400):
        p = policy.probabilities(learner.evidence(), item + 1, rule)
        chance = full_run_probability(item + 1, own)
        mixed = learner.probabilities()
        assert mixed == pytest.approx([*(1 - chance) * p[:2], (1 - chance) * p[2] + chance])
        round = learner.begin()
        while (stage := round.next_stage) is not None:
            round.observe(int(TABLE[item, stage]))
        round.end()
        record = records[-1]
        full = record.called == 3 and not record.skipped
        assert record.probability == pytest.approx(
            chance if full else (1 - chance) * p[record.depth], abs=1e-9
        )


class SameDraws:
    """Gives a replay the random numbers of a live learner."""

    def __init__(self, seed, own):
        self._u = RoundDraws(seed).uniforms(1, ITEMS)
        self._chance = np.array([full_run_probability(at + 1, own) for at in range(ITEMS)])
        self._at = 0

    def random(self, size):
        return self._u[:size]

    def choice(self, count, size, p):
        start, self._at = self._at, self._at + size
        u, chance = self._u[start : self._at], self._chance[start : self._at]
        rest = np.where(u < chance, 0.0, (u - chance) / np.maximum(1 - chance, 1e-12))
        return [pick(p.tolist(), one) for one in rest]


@pytest.mark.parametrize("policy", ["uss-ts-jump", "uss-ts", "fixed:stage=1"])
def test_a_replay_of_the_same_rows_is_the_same(policy):
    import polars as pl

    own = Costs.from_stages(OWN, 50)
    frame = pl.DataFrame({name: TABLE[:, at] for at, name in enumerate(NAMES)})
    settings = LogSettings.of(stages=NAMES, costs=OWN, mistake_cost=50, calls="alone")
    rows = read_rows(frame, settings)
    run = run_alone(rows, make_policy(policy), np.arange(ITEMS), SameDraws(3, own))
    spent = rows.spent[np.arange(ITEMS), run.answered_by] + run.more
    live = cascade(policy=policy)
    answers = [live.answer(item) for item in range(ITEMS)]
    assert [NAMES.index(answer.stage) for answer in answers] == run.answered_by.tolist()
    assert [answer.cost for answer in answers] == pytest.approx(spent.tolist())


def test_a_snapshot_goes_on_exactly_and_only_the_same_way(tmp_path):
    live = cascade()
    for item in range(300):
        live.answer(item)
    live.save(tmp_path / "live.json")
    other = cascade()
    other.load(tmp_path / "live.json")
    assert counted(other.learner) == counted(live.learner)
    assert [other.answer(item) for item in range(300, 400)] == [
        live.answer(item) for item in range(300, 400)
    ]
    through = cascade(calls="cascade")
    with pytest.raises(StopwiseError, match="calls is alone there, but cascade here"):
        through.load(tmp_path / "live.json")
    through.load(tmp_path / "live.json", fork=9)
    kept = read_evidence(tmp_path / "live.json")[""]
    assert through.learner.evidence().seen.tolist() == kept.seen.tolist()


def test_every_store_keeps_what_was_called(kind):
    first = kind.learner(
        "uss-ts-jump", stages=COSTS, learner={"mistake_cost": 50, "calls": "alone"}
    )
    drawn_learner(first, rows=200)
    first.flush()
    before = counted(first)
    first.close()
    again = kind.learner(
        "uss-ts-jump", stages=COSTS, learner={"mistake_cost": 50, "calls": "alone"}
    )
    assert counted(again) == before
    again.close()


@pytest.mark.parametrize("policy", ["fixed:stage=2", "per-item"])
def test_a_round_given_up_right_after_its_jump_can_be_read_again(kind, policy):
    settings = {"mistake_cost": 2, "calls": "alone"}
    first = kind.learner(policy, stages=COSTS, learner=settings, keep_outputs=True)
    for _ in range(3):
        round = first.begin()
        round.skip_to(2)
        first.stops(round)
        assert round.called == 0
        round.abandon()
    before = counted(first)
    first.close()
    again = kind.learner(policy, stages=COSTS, learner=settings, keep_outputs=True)
    assert counted(again) == before
    store = again._books.queue.store
    assert [(one.cost, one.skipped) for one in store.read_rounds()] == [(0.0, 3)] * 3
    again.close()


def test_a_stage_that_fails_is_stood_in_for_by_the_next():
    def broken(item):
        raise RuntimeError("down")

    stages = [sw.Stage("a", broken, 1), sw.Stage("b", lambda item: item, 2)]
    live = sw.Cascade(
        stages, "fixed:stage=0", mistake_cost=0.5, calls="alone", on_failure="skip"
    )  # nothing to learn: no full runs
    answer = live.answer(7)
    assert (answer.answer, answer.stage, answer.cost) == (7, "b", 3)
    report = live.learner.report()
    assert (report.calls, report.failures) == ((1, 1), (1, 0))
    late = sw.Cascade(
        [sw.Stage("a", lambda item: item, 1), sw.Stage("b", broken, 2)],
        "fixed:stage=1", mistake_cost=0.5, calls="alone",
    )  # fmt: skip
    with pytest.raises(sw.live.NoAnswerError):
        late.answer(7)
    assert late.learner.report().calls == (0, 1)


def test_budgets_pay_for_the_stage_that_is_called():
    live = cascade(item_budget=3.5)
    for item in range(100):
        assert live.answer(item).cost <= 3.5
    assert live.learner.report().calls[2] == 0
    short = cascade(run_budget=24 * 2 + 3.5)
    spent = [short.answer(item).cost for item in range(3)]
    assert spent[:2] == [24, 24]
    assert spent[2] <= 3.5


def test_shadow_states_savings_against_the_last_stage_alone():
    live = cascade(mode="shadow")
    for item in range(400):
        live.answer(item)
    report, records = live.learner.report(), cascade()
    for item in range(400):
        records.answer(item)
    assert report.spent == 400 * 24
    assert report.advised_cost == pytest.approx(records.learner.report().spent, rel=0.2)
    assert report.saved == pytest.approx(400 * 20 - report.advised_cost)
    assert "against large alone" in str(report)


def test_measured_costs_are_each_stage_s_own():
    def stage(at, cost):
        return sw.Stage(
            NAMES[at], lambda item: sw.Reported(int(TABLE[item, at]), cost=cost), OWN[at]
        )

    stages = [stage(0, 1.0), stage(1, 25.0), stage(2, 22.0)]
    live = sw.Cascade(stages, mistake_cost=50, calls="alone", costs="reported", seed=3)
    for item in range(200):
        live.answer(item)
    assert live.learner.costs.cumulative[1] > 24
    assert live.learner.costs.cumulative[2] == live.learner.costs.cumulative[1]
    assert live.learner.report().calls[1] < 60  # it has become the most expensive


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"calls": "together"}, "calls: got 'together', but need 'cascade' or 'alone'"),
        ({"combine": max}, "combine: got .*one output to answer with"),
        ({"agree": 0.9}, "agree: got 0.9"),
    ],
)
def test_what_has_no_meaning_is_refused(settings, message):
    with pytest.raises(StopwiseError, match=message):
        cascade(**settings)


def test_stages_are_given_cheapest_first():
    with pytest.raises(StopwiseError, match=r"rising costs.*: b, a"):
        Learner({"a": 2, "b": 1}, calls="alone")


def test_a_record_with_a_gap_that_cannot_be_is_refused():
    form = {
        "round": 1, "depth": 1, "probability": 0.5, "stage": 1, "called": 2, "answered": [1],
        "disagreed": [], "cost": 3.0, "skipped": [0],
    }  # fmt: skip
    record = sw.live.RoundRecord.from_form(form)
    assert record.to_form() == form
    for wrong in ({"answered": [0, 1]}, {"skipped": [1]}, {"costs": [1.0]}):
        with pytest.raises(StopwiseError, match="skipped"):
            sw.live.RoundRecord.from_form({**form, **wrong})


def test_evidence_of_two_machines_adds_up_to_that_of_one():
    one = drawn_learner(Learner(COSTS, mistake_cost=50, calls="alone", seed=1), rows=200)
    two = drawn_learner(Learner(COSTS, mistake_cost=50, calls="alone", seed=2), rows=200)
    both = Evidence(3)
    both.seen[:] = one.evidence().seen + two.evidence().seen
    both.disagreed[:] = one.evidence().disagreed + two.evidence().disagreed
    merged = Learner(COSTS, mistake_cost=50, calls="alone", seed=1)
    merged.add_evidence(one.evidence())
    merged.add_evidence(two.evidence())
    assert merged.evidence().seen.tolist() == both.seen.tolist()
    assert merged.evidence().disagreed.tolist() == both.disagreed.tolist()
