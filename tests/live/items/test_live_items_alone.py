"""Per item, stages called alone: which are called, what is counted and kept; equal to a replay."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import polars as pl
import pytest

import stopwise as sw
from cascade_stages import stages_by_item
from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.live import Learner
from stopwise.live.choosing.draws import RoundDraws
from stopwise.logs.items.fitting import fit
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.replaying.alone import run_alone
from stopwise.logs.settings import LogSettings
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.observations import Observations
from stopwise.situations.transitions import Transitions

NAMES, OWN, ITEMS = ("a", "b", "c"), (1.0, 4.0, 10.0), 1200
COSTS = dict(zip(NAMES, OWN, strict=True))


def made(rows=ITEMS, seed=0):
    """The first stage says when it is sure; the second is nearly as good as the last."""
    rng = np.random.default_rng(seed)
    truth, sure = rng.integers(0, 2, rows), rng.random(rows)
    wrong = [rng.random(rows) < 0.5 * (sure < 0.25), *(rng.random((2, rows)) < [[0.04], [0.02]])]
    return np.stack([np.where(one, 1 - truth, truth) for one in wrong], axis=1), sure


TABLE, SURE = made()


def cascade(called=None, table=TABLE, sure=SURE, **settings):
    def stage(at):
        def function(item):
            if called is not None:
                called.append((item, at))
            confidence = float(sure[item]) if at == 0 else None
            return sw.Reported(int(table[item, at]), confidence=confidence)

        return sw.Stage(NAMES[at], function, OWN[at])

    given = {"policy": "per-item", "mistake_cost": 40, "calls": "alone", "seed": 3, **settings}
    return sw.Cascade([stage(at) for at in range(3)], **given)


def run(learner, start=0, end=ITEMS, table=TABLE, sure=SURE):
    for item in range(start, end):
        round = learner.begin()
        while not learner.stops(round) and (stage := round.next_stage) is not None:
            confidence = float(sure[item]) if stage == 0 else None
            round.observe(int(table[item, stage]), confidence=confidence)
        round.end()
    return learner


def learner(**settings):
    given = {"mistake_cost": 40, "calls": "alone", "seed": 3, **settings}
    return Learner(COSTS, "per-item", **given)


def counted(one):
    return one.transitions.to_dict(), one.report().to_dict()


def test_easy_items_stop_early_and_what_is_called_is_paid():
    called: list[tuple[int, int]] = []
    live = cascade(called)
    answers = [live.answer(item) for item in range(ITEMS)]
    by_item = stages_by_item(called)
    for item, answer in enumerate(answers):
        assert answer.cost == sum(OWN[stage] for stage in by_item[item])
    report = live.learner.report()
    assert report.calls == tuple(sum(at == stage for _, at in called) for stage in range(3))
    assert live.learner.transitions.rounds == report.items.full
    late = [by_item[item] for item in range(800, ITEMS)]
    assert sum(stages in ([0], [0, 1], [1]) for stages in late) > 300
    assert report.spent < ITEMS * 10


def test_learner_cascade_async_and_batches_are_the_same():
    one = cascade()
    answers = [one.answer(item).answer for item in range(400)]
    many = cascade()
    found = many.answer_many(range(400), batch_size=1).collect()
    assert [answer.answer for answer in found] == answers
    drawn = run(learner(), end=400)
    assert counted(one.learner) == counted(many.learner) == counted(drawn)

    async def together():
        live = cascade()
        given = [(await live.answer_async(item)).answer for item in range(400)]
        return given, counted(live.learner)

    assert asyncio.run(together()) == (answers, counted(one.learner))


class SameDraws:
    """Gives a replay the random numbers of a live learner."""

    def random(self, size):
        return RoundDraws(3).uniforms(1, size)


@pytest.mark.parametrize("mistake_cost", [12, 40, 300])
def test_a_replay_of_the_same_rows_is_the_same(mistake_cost):
    frame = pl.DataFrame(
        {"a": TABLE[:, 0], "a:confidence": SURE, "b": TABLE[:, 1], "c": TABLE[:, 2]}
    )
    settings = LogSettings.of(stages=NAMES, costs=OWN, mistake_cost=mistake_cost, calls="alone")
    rows = read_rows(frame, settings)
    found = run_alone(rows, PerItem(), np.arange(ITEMS), SameDraws())
    live = cascade(mistake_cost=mistake_cost)
    answers = [live.answer(item) for item in range(ITEMS)]
    spent = rows.spent[np.arange(ITEMS), found.answered_by] + found.more
    assert [answer.cost for answer in answers] == pytest.approx(spent.tolist())
    assert [NAMES.index(answer.stage) for answer in answers] == found.answered_by.tolist()


def test_what_is_counted_does_not_depend_on_what_the_rule_sends_on():
    """Full runs are drawn before anything is called, so what they show is unbiased: of 40 streams
    the mean rate of differences lies within six standard errors of the true one (below 1e-6)."""
    rates = []
    for seed in range(40):
        table, sure = made(300, seed + 50)
        live = run(learner(seed=seed), end=300, table=table, sure=sure)
        evidence = live.evidence()
        assert evidence.seen[0, 1] == evidence.seen[1, 2] == live.report().items.full
        rates.append(evidence.disagreed[0, 2] / evidence.seen[0, 2])
    true = 0.125 * 0.98 + 0.875 * 0.02
    assert abs(np.mean(rates) - true) < 6 * np.std(rates) / np.sqrt(len(rates))


def test_two_machines_merged_are_one():
    rule = AloneRule.fit(NAMES, Observations(("0", "1"), TABLE[:300]), Costs.from_stages(OWN, 40))
    one, two = learner(rule=rule, seed=1), learner(rule=rule, seed=2)
    run(one, end=300)
    run(two, 300, 600)
    assert one.transitions.binning.whole
    both = Transitions(one.transitions.binning)
    both.merge(one.transitions)
    both.merge(two.transitions)
    merged = learner()
    merged.add_transitions(both)
    again = AloneRule.from_counts(NAMES, both, Costs.from_stages(OWN, 40))
    assert merged.transitions.to_dict() == both.to_dict()
    assert (
        again.tables
        == AloneRule.from_counts(
            NAMES, Transitions.from_dict(both.to_dict()), Costs.from_stages(OWN, 40)
        ).tables
    )
    with pytest.raises(StopwiseError, match=r"other counts|settled binning"):
        run(Learner(COSTS, "per-item", mistake_cost=40), end=40).add_transitions(both)


def test_a_snapshot_goes_on_exactly(tmp_path):
    live = run(learner(), end=500)
    live.save(tmp_path / "live.json")
    other = learner()
    other.load(tmp_path / "live.json")
    assert counted(run(other, 500, 700)) == counted(run(live, 500, 700))
    through = Learner(COSTS, "per-item", mistake_cost=40)
    with pytest.raises(StopwiseError, match="same `calls`"):
        through.load(tmp_path / "live.json", fork=1)


def test_every_store_keeps_what_was_counted(kind):
    settings = {"mistake_cost": 40, "calls": "alone"}
    first = kind.learner("per-item", stages=COSTS, seed=3, learner=settings, durability="round")
    run(first, end=150)
    first.refresh()
    before = counted(first)
    first.close()
    again = kind.learner("per-item", stages=COSTS, seed=3, learner=settings, durability="round")
    assert counted(again) == before
    assert again.transitions.rounds == again.report().items.full >= 32
    run(again, 150, 160)
    again.close()


def test_a_fitted_rule_is_taken_live_and_goes_on_learning(tmp_path):
    log = pl.DataFrame({"a": TABLE[:, 0], "a:confidence": SURE, "b": TABLE[:, 1], "c": TABLE[:, 2]})
    rule = fit(log, stages=NAMES, costs=OWN, mistake_cost=40, calls="alone")
    path = tmp_path / "rule.json"
    path.write_text(json.dumps(rule.to_dict()))
    live = Learner(COSTS, mistake_cost=40, rule=path, seed=3)
    assert (live.settings.calls, live.policy.name) == ("alone", "per-item")
    before = live.transitions.rounds
    run(live, end=200)
    assert live.transitions.rounds == before + live.report().items.full
    with pytest.raises(StopwiseError, match="'alone', as the rule was fitted for"):
        Learner(COSTS, mistake_cost=40, rule=path, calls="cascade")
    form = rule.to_dict()
    del form["counts"]
    path.write_text(json.dumps(form))
    with pytest.raises(StopwiseError, match="fit it again"):
        Learner(COSTS, mistake_cost=40, rule=path)
    through = Rule.fit(NAMES, Observations(("0", "1"), TABLE), Costs.from_stages(OWN, 40))
    with pytest.raises(StopwiseError, match="fitted with --calls alone"):
        learner(rule=through)


def test_decisions_are_explained_along_the_way_that_was_taken():
    live = cascade()
    answers = [live.answer(item) for item in range(ITEMS)]
    early = next(a for a in reversed(answers) if a.cost == 1)
    text = str(early.explain())
    assert text.startswith("stopped after a: it says")
    assert "going on" in text
    two = next(a for a in reversed(answers) if a.cost == 5)
    assert [step.stage for step in two.explain().steps] == ["a", "b"]
    assert two.explain().steps[0].stop is False
    full = answers[3].explain()
    assert full.full_run
    assert full.probability == 1


def test_a_stage_that_fails_is_passed_over():
    def broken(item):
        raise RuntimeError("down")

    stages = [
        sw.Stage("a", broken, 1),
        sw.Stage("b", lambda item: item % 2, 4),
        sw.Stage("c", lambda item: item % 2, 9),
    ]
    live = sw.Cascade(stages, "per-item", mistake_cost=40, calls="alone", on_failure="skip", seed=1)
    assert all(live.answer(item).answer == item % 2 for item in range(120))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "agree-in-a-row"}, "policy: got 'agree-in-a-row.*per-item, or one that"),
        ({"item_budget": 11}, "item_budget: got 11.*at least 15"),
        ({"half_life": 100}, "half_life: got 100"),
    ],
)
def test_what_has_no_meaning_is_refused(settings, message):
    with pytest.raises(StopwiseError, match=message):
        cascade(**settings)


def test_where_nothing_can_pay_the_cheapest_stage_answers():
    live = cascade(mistake_cost=2)
    assert all(live.answer(item).stage == "a" for item in range(50))
    assert live.learner.report().calls == (50, 0, 0)


def test_shadow_calls_all_and_says_what_the_way_would_have_cost():
    live = cascade(mode="shadow")
    for item in range(400):
        live.answer(item)
    report = live.learner.report()
    assert report.calls == (400, 400, 400)
    assert report.saved == pytest.approx(400 * 10 - report.advised_cost)
    assert report.advised_cost < 400 * 10
