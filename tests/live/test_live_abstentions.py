"""What it means live that a stage gives no answer: the definition of logs, in every room."""

from __future__ import annotations

import asyncio

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise.abstentions import ABSTENTIONS, Abstentions, calling_rates
from stopwise.checks import StopwiseError
from stopwise.evidence import Evidence
from stopwise.live import Cascade, Learner, Reported, RoundLog, SqliteStore, Stage
from stopwise.live.comparing import by_key, letter
from stopwise.live.record import RoundRecord
from stopwise.live.stores.stored import open_stored
from stopwise.logs.judging.judge_counts import judge_counts
from stopwise.logs.reading.counting import count
from stopwise.logs.reading.layouts.opening import open_log
from stopwise.logs.reading.live import completed
from stopwise.logs.settings import LogSettings

ROWS = st.lists(
    st.tuples(*[st.sampled_from([None, "a", "b"])] * 4), min_size=1, max_size=30
)  # fmt: skip


def cascade_of(rows, meaning: Abstentions, policy="uss-ts", **options):
    stages = [Stage(f"s{at}", lambda row, at=at: row[at], at) for at in range(4)]
    return Cascade(stages, policy, mistake_cost=6, abstentions=meaning, **options)


def opened(path, settings):
    chosen = completed(path, settings)
    return open_log(path, chosen), chosen


@pytest.mark.parametrize("meaning", ABSTENTIONS)
@pytest.mark.parametrize("kind", [RoundLog, SqliteStore])
def test_a_live_log_analyzed_has_the_evidence_of_its_learner(tmp_path, meaning, kind):
    rng = np.random.default_rng(7)
    rows = [[[None, "a", "b"][code] for code in rng.integers(3, size=4)] for _ in range(150)]
    options = {"keep_rounds": True} if kind is SqliteStore else {}
    store = kind(tmp_path / "rounds", durability="behind", **options)
    with cascade_of(rows, meaning, store=store, full_run_rate=0.2) as cascade:
        for row in rows:
            cascade.answer(row)
        cascade.learner.flush()
        evidence, costs = cascade.learner.evidence(), cascade.learner.costs
        best = cascade.learner.best_stage()
    # With the setting of the store, and with the same one given.
    for said in (None, meaning):
        log, chosen = opened(tmp_path / "rounds", LogSettings(abstentions=said))
        counts = count(log)
        assert counts.evidence(chosen.no_answer) == evidence
        verdict = judge_counts(counts, chosen, 1)
        assert verdict.costs.cumulative == pytest.approx(costs.cumulative, rel=1e-12)
        assert verdict.recommended == best
    stored = open_stored(tmp_path / "rounds")
    assert stored is not None
    assert stored.abstentions == meaning
    assert stored.read_evidence()[""] == evidence


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, meaning=st.sampled_from(ABSTENTIONS), seed=st.integers(0, 5))
def test_counting_is_that_of_logs_whatever_the_rounds(rows, meaning, seed):
    records: list[RoundRecord] = []
    cascade = cascade_of(rows, meaning, "fixed:stage=3", seed=seed, on_round=records.append)
    quiet = cascade_of(rows, meaning, "fixed:stage=3", seed=seed)  # counts the short way
    for row in rows:
        cascade.answer(row)
        quiet.answer(row)
    frame = {f"s{at}": [row[at] for row in rows] for at in range(4)}
    told = polars.DataFrame(frame, schema=dict.fromkeys(frame, polars.String))
    chosen = LogSettings(stages=tuple(frame), costs=(0, 1, 2, 3), trailing_blanks="abstained")
    counts = count(open_log(told, chosen), compare_labels=False)
    expected = counts.evidence(meaning)
    assert cascade.learner.evidence() == expected == quiet.learner.evidence()


def test_a_round_goes_on_to_the_next_stage_that_answers():
    rows = [(None, None, "a", "b"), ("a", None, "b", "b"), (None,) * 4]
    answers = [cascade_of(rows, "go on", "fixed:stage=0").answer(row) for row in rows]
    assert [(one.answer, one.stage, one.cost) for one in answers] == [
        ("a", "s2", 3.0),
        ("a", "s0", 0.0),
        (None, None, 6.0),
    ]
    assert answers[0].depth == "s0"  # what was drawn, with its probability
    kept = [cascade_of(rows, "leave out", "fixed:stage=0").answer(row) for row in rows]
    assert [one.answer for one in kept] == [None, "a", None]


def test_an_earlier_answer_is_handed_back_where_no_deeper_stage_answers():
    answer = cascade_of([], "go on", "fixed:stage=1").answer(("a", None, None, None))
    assert (answer.answer, answer.stage, answer.cost) == ("a", "s0", 6.0)


@pytest.mark.parametrize("way", ["async", "batch", "async batch", "at once"])
def test_every_way_of_calling_goes_on_alike(way):
    rows = [(None, None, "a", "b"), ("a", None, "b", "b"), (None, "b", None, "a"), (None,) * 4] * 3

    def fresh(**options):
        return cascade_of(rows, "go on", "uss-ts", seed=3, **options)

    one = fresh()
    expected = [one.answer(row).answer for row in rows]
    other = fresh(at_once=way == "at once")
    if way == "async":

        async def run():
            return [(await other.answer_async(row)).answer for row in rows]

        found = asyncio.run(run())
    elif way == "at once":
        found = [other.answer(row).answer for row in rows]
    elif way == "batch":
        found = [one.answer for one in other.answer_many(rows, batch_size=1)]
    else:

        async def collect():
            return [one.answer async for one in other.answer_many_async(rows, batch_size=1)]

        found = asyncio.run(collect())
    assert found == expected
    assert other.learner.evidence() == one.learner.evidence()
    assert other.learner.report().to_dict() == one.learner.report().to_dict()


def test_batched_stages_go_on_too():
    stages = [
        Stage(
            "cheap", lambda texts: [None if "?" in text else "a" for text in texts], 0, batch=True
        ),
        Stage("good", lambda texts: ["b"] * len(texts), 1, batch=True),
    ]
    cascade = Cascade(stages, "fixed:stage=0", mistake_cost=9, abstentions="go on")
    found = cascade.answer_many(["x", "y?", "z"]).collect()
    assert list(found.answers) == ["a", "b", "a"]
    assert cascade.learner.report().calls == (3, 1)


@pytest.mark.parametrize("slow", [False, True])
def test_what_the_comparator_cannot_read_is_no_answer(slow):
    said = iter(["it depends", "B", "Answer: C"])
    comparator = by_key(lambda text: None if "depends" in text else text) if slow else letter()
    stages = [Stage(name, lambda item: next(said), 1) for name in ("one", "two", "three")]
    cascade = Cascade(
        stages, "fixed:stage=0", mistake_cost=9, abstentions="go on", comparator=comparator
    )
    answer = asyncio.run(cascade.answer_async("?")) if slow else cascade.answer("?")
    assert (answer.answer, answer.stage) == ("B", "two")
    assert cascade.learner.report().abstentions == (1, 0, 0)


def test_what_going_on_shows_does_not_bias_the_evidence():
    """Rounds drawn to stop at the first stage tell nothing of the pair: only some could."""
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(-1, 2, 4000), rng.integers(0, 2, 4000)], axis=1)
    names = {-1: None, 0: "a", 1: "b"}
    stages = [Stage(f"s{at}", lambda row, at=at: names[row[at]], at) for at in range(2)]
    cascade = Cascade(
        stages, "fixed:stage=0", mistake_cost=3, abstentions="go on", full_run_rate=0.25, seed=2
    )
    for row in codes.tolist():
        cascade.answer(row)
    evidence = cascade.learner.evidence()
    # One of three abstains, and the others differ in half of the items: 1/3. About 1,000 full runs:
    # six standard errors, a false alarm in 1e-8 (the seeds are fixed).
    assert evidence.seen[0, 1] < 1200
    assert abs(evidence.disagreement[0, 1] - 1 / 3) < 6 * (2 / 9 / evidence.seen[0, 1]) ** 0.5
    rate = calling_rates(codes, np.ones(4000), "go on")[0, 1]
    assert cascade.learner.costs.cumulative[0] == pytest.approx(rate, rel=1e-12)


def test_measured_costs_and_going_on_go_together():
    def cheap(row):
        return Reported(row[0], cost=0.5)

    stages = [Stage("cheap", cheap, 1), Stage("good", lambda row: Reported(row[1], cost=3), 5)]
    cascade = Cascade(
        stages, "fixed:stage=1", mistake_cost=20, abstentions="go on", costs="reported"
    )
    for row in [(None, "a"), ("a", "a"), ("b", "a"), (None, "b")]:
        cascade.answer(row)
    own = [(1 + 4 * 0.5) / 5, (5 + 4 * 3) / 5]
    assert cascade.learner.costs.cumulative == pytest.approx([own[0] + own[1] / 2, sum(own)])


def test_budgets_hold_while_rounds_go_on():
    rows = [(None, "a", "a", "a")] * 10
    cascade = cascade_of(rows, "go on", "fixed:stage=0", item_budget=0.5)
    answers = [cascade.answer(row) for row in rows]
    assert {one.answer for one in answers} == {None}
    assert cascade.learner.report().spent == 0
    limited = cascade_of(rows, "go on", "fixed:stage=0", run_budget=3)
    assert [limited.answer(row).answer for row in rows[:4]] == ["a", "a", "a", None]
    assert limited.learner.report().spent == 3


def test_advice_goes_on_too():
    rows = [(None, "a", "a", "b"), ("b", "a", "a", "b")]
    cascade = cascade_of(rows, "go on", "fixed:stage=0", mode="advise")
    advice = [cascade.answer(row).advice for row in rows]
    assert [(one.stage, one.answer, one.cost) for one in advice if one] == [
        (0, "a", 1),
        (0, "b", 0),
    ]
    report = cascade.learner.report()
    assert report.advised_cost == 1
    assert report.advised_agreement == 0.5


def test_hanawals_way_of_counting_sees_answers():
    rows = [(None, "a", "b", "a"), ("a", None, "a", "a"), (None,) * 4]
    cascade = cascade_of(rows, "go on", "hanawal-2")
    for row in rows:
        cascade.answer(row)
    assert cascade.learner.report().rounds == 3


def test_snapshots_and_stores_of_another_meaning_are_refused(tmp_path):
    learner = Learner([0, 1], abstentions="go on")
    learner.save(tmp_path / "one.json")
    with pytest.raises(StopwiseError, match="abstentions is 'go on' there, but 'leave out' here"):
        Learner([0, 1]).load(tmp_path / "one.json")
    again = Learner([0, 1], abstentions="go-on")  # however it is written
    again.load(tmp_path / "one.json")
    assert again.settings.abstentions == "go on"
    old = Learner([0, 1]).to_form()
    assert "abstentions" not in old["settings"]  # read by releases that do not know it


def test_restored_learners_go_on_as_before(tmp_path):
    rows = [(None, "a", "b", "a"), ("a", None, "a", "a"), ("b", "a", "a", "a")] * 20
    one = cascade_of(rows, "go on", seed=4)
    for row in rows[:30]:
        one.answer(row)
    one.save(tmp_path / "one.json")
    two = cascade_of(rows, "go on", seed=9)
    two.load(tmp_path / "one.json")
    assert [two.answer(row) for row in rows[30:]] == [one.answer(row) for row in rows[30:]]
    assert two.learner.costs == one.learner.costs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"abstentions": "skip"}, "'go on', 'mistake' or 'leave out'"),
        ({"abstentions": "go on", "policy": "per-item"}, "decides per item"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(StopwiseError, match=words):
        Learner([0, 1], **options)


def test_an_async_key_is_refused_where_it_would_have_to_be_known_at_once():
    async def key(text):
        return text

    with pytest.raises(StopwiseError, match="whose key is async"):
        Learner([0, 1], comparator=by_key(key), abstentions="go on")


def test_evidence_of_leave_out_is_unchanged():
    cascade = cascade_of([], "leave out", "fixed:stage=3")
    cascade.answer(("a", None, "b", "a"))
    expected = Evidence(4)
    expected.add(["a", None, "b", "a"])
    assert cascade.learner.evidence() == expected
