"""Live cascades that are decided per item: sync, async, in batches, and what they leave behind."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.live import Cascade, Learner, Reported, Stage
from stopwise.policies.per_item.learning import learn_over
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.observations import Observations

NAMES = ("small", "medium", "large")
PER_STAGE = [0.1, 1.0, 4.0]
MISTAKE = 8.0


def rows_of(number: int, seed: int = 3) -> tuple[Observations, np.ndarray]:
    return made_up(number, (0.2, 1.0, 2.0), seed=seed)


def stages_of(rows: Observations, calls: list[tuple[int, int]] | None = None) -> list[Stage]:
    """Stages that give what the rows say, with their confidences."""
    assert rows.confidences is not None

    def make(at: int) -> Stage:
        def call(item: int) -> Reported:
            if calls is not None:
                calls.append((at, item))
            assert rows.confidences is not None
            label = rows.labels[rows.codes[item, at]]
            return Reported(label, confidence=float(rows.confidences[item, at]))

        return Stage(NAMES[at], call, cost=PER_STAGE[at])

    return [make(at) for at in range(3)]


def fitted(rows: Observations) -> Rule:
    return Rule.fit(NAMES, rows, Costs.from_stages(PER_STAGE, MISTAKE), reference="last")


def test_a_rule_decides_live_as_it_decides_on_a_log() -> None:
    rows, _ = rows_of(1300)
    rule = fitted(rows.where(np.arange(1000)))
    policy = PerItem(kappa=0, reference="last")
    cascade = Cascade(stages_of(rows), policy, rule=rule, mistake_cost=MISTAKE)
    later = rows.where(np.arange(1000, 1200))
    depths = rule.depths(later)
    answers = [cascade.answer(1000 + at) for at in range(200)]
    assert [NAMES.index(answer.depth or "") for answer in answers] == depths.tolist()
    assert len(set(depths.tolist())) > 1
    assert all(answer.stage == answer.depth for answer in answers)


def test_sync_async_and_batches_decide_alike() -> None:
    rows, _ = rows_of(1300)
    rule = fitted(rows.where(np.arange(1000)))
    items = list(range(1000, 1300))

    def cascade() -> Cascade:
        return Cascade(stages_of(rows), rule=rule, mistake_cost=MISTAKE, seed=5)

    one = [answer.depth for answer in map(cascade().answer, items[:1])]
    sync = cascade()
    plain = [sync.answer(item) for item in items]
    many = cascade().answer_many(items, batch_size=300).collect()

    async def run() -> list[str | None]:
        made = cascade()
        return [(await made.answer_async(item)).depth for item in items]

    assert asyncio.run(run()) == [answer.depth for answer in plain]
    same = sum(a.depth == b.depth for a, b in zip(plain, many, strict=True))
    assert same >= 295  # a batch does not see its own rounds, and its clock stands still
    assert one[0] == plain[0].depth


def test_only_the_stages_that_are_needed_are_called() -> None:
    rows, _ = rows_of(1200)
    calls: list[tuple[int, int]] = []
    rule = fitted(rows.where(np.arange(1000)))
    stages = stages_of(rows, calls)
    cascade = Cascade(stages, PerItem(kappa=0), rule=rule, mistake_cost=MISTAKE)
    for item in range(1000, 1200):
        before = len(calls)
        answer = cascade.answer(item)
        assert len(calls) - before == NAMES.index(answer.depth or "") + 1


def test_it_learns_from_nothing_and_its_propensities_are_exact() -> None:
    rows, _ = rows_of(3000)
    cascade = Cascade(stages_of(rows), policy="per-item", mistake_cost=MISTAKE, seed=2)
    answers = [cascade.answer(item) for item in range(3000)]
    assert all(answer.depth == "large" for answer in answers[:32])
    late = [NAMES.index(answer.depth or "") for answer in answers[1000:]]
    assert 0 < np.mean(np.asarray(late) < 2) < 1
    policy, costs = PerItem(), Costs.from_stages(PER_STAGE, MISTAKE)
    for at, answer in enumerate(answers):
        q = policy.full_run_probability(at + 1, costs)
        assert any(answer.probability == pytest.approx(p) for p in (q, 1 - q, 1.0))
        if answer.depth != "large":
            assert answer.probability == pytest.approx(1 - q)
    counts = cascade.learner.transitions
    assert counts is not None
    assert counts.rounds == 3000
    assert 32 <= sum(counts.full.values()) < 500


def test_live_counts_are_those_of_a_replay_with_the_same_depths() -> None:
    rows, _ = rows_of(2500)
    cascade = Cascade(stages_of(rows), policy="per-item", mistake_cost=MISTAKE, seed=2)
    depths = [NAMES.index(cascade.answer(item).depth or "") for item in range(2500)]
    counts = cascade.learner.transitions
    assert counts is not None
    assert counts.reached.tolist() == [sum(d >= stage for d in depths) for stage in range(3)]
    costs = Costs.from_stages(PER_STAGE, MISTAKE)
    replayed = learn_over(PerItem(), NAMES, rows, costs, np.random.default_rng(1))[0]
    assert np.mean(depths) == pytest.approx(replayed.mean(), abs=0.15)


def test_pair_counters_are_fed_by_full_runs_alone() -> None:
    rows, _ = rows_of(3000)
    cascade = Cascade(stages_of(rows), policy=PerItem(kappa=1.0), mistake_cost=MISTAKE, seed=2)
    for item in range(3000):
        cascade.answer(item)
    evidence, counts = cascade.learner.evidence(), cascade.learner.transitions
    assert counts is not None
    assert evidence.seen[0, 2] == sum(counts.full.values())
    true = (rows.codes[:, 0] != rows.codes[:, 2]).mean()
    seen = evidence.disagreed[0, 2] / evidence.seen[0, 2]
    assert abs(seen - true) < 6 * np.sqrt(0.25 / evidence.seen[0, 2])


def test_shadow_mode_runs_to_the_end_and_notes_what_it_would_have_done() -> None:
    rows, _ = rows_of(1300)
    rule = fitted(rows.where(np.arange(1000)))
    cascade = Cascade(stages_of(rows), rule=rule, mistake_cost=MISTAKE, mode="advise")
    answers = [cascade.answer(item) for item in range(1000, 1300)]
    assert {answer.stage for answer in answers} == {"large"}
    advised = [answer.advice.stage for answer in answers if answer.advice is not None]
    depths = rule.depths(rows.where(np.arange(1000, 1300)))
    # The rule is made again once there are many more rounds than it was fitted on.
    assert advised[:250] == depths[:250].tolist()
    counts = cascade.learner.transitions
    assert counts is not None
    assert sum(counts.full.values()) == 1300


def test_a_decision_explains_itself() -> None:
    rows, _ = rows_of(1000)
    rule = fitted(rows)
    learner = Learner(dict(zip(NAMES, PER_STAGE, strict=True)), rule=rule, mistake_cost=MISTAKE)
    round = learner.begin()
    round.observe("a", confidence=0.99)
    learner.stops(round)
    (decision,) = learner.explain(round)
    assert decision.stop == (decision.here <= decision.deeper + 1e-9)
    assert len(decision.losses) == 3
    round.abandon()


def test_a_snapshot_brings_the_transitions_back(tmp_path) -> None:
    rows, _ = rows_of(400)
    cascade = Cascade(stages_of(rows), policy="per-item", mistake_cost=MISTAKE, seed=2)
    for item in range(400):
        cascade.answer(item)
    cascade.save(tmp_path / "state.json")
    again = Cascade(stages_of(rows), policy="per-item", mistake_cost=MISTAKE, seed=2)
    again.load(tmp_path / "state.json")
    assert again.learner.transitions == cascade.learner.transitions
    assert again.learner.transitions.rounds == 400
    again.answer(3)
    assert again.learner.transitions.rounds == 401


def test_failures_and_abstentions_go_on_and_nothing_is_lost() -> None:
    def small(item: int) -> str | None:
        if item % 5 == 0:
            raise RuntimeError("down")
        return None if item % 7 == 0 else "yes"

    stages = [Stage("small", small, cost=1), Stage("large", lambda item: "yes", cost=2)]
    cascade = Cascade(stages, policy="per-item", mistake_cost=20, on_failure="skip", seed=1)
    answers = [cascade.answer(item) for item in range(1, 600)]
    assert all(answer.answer == "yes" for answer in answers)
    late = answers[300:]
    assert any(answer.depth == "small" for answer in late)
    assert all(answer.stage == "large" for answer in late if answer.failures)


def test_what_does_not_fit_is_refused(tmp_path) -> None:
    rows, _ = rows_of(100)
    rule = fitted(rows)
    with pytest.raises(StopwiseError, match="rule"):
        Learner({"a": 1, "b": 2, "c": 3}, rule=rule)
    with pytest.raises(StopwiseError, match="policy"):
        Learner(dict(zip(NAMES, PER_STAGE, strict=True)), "uss-ucb", rule=rule)
    with pytest.raises(StopwiseError, match="no such file"):
        Learner([1, 2], rule=tmp_path / "none.json")


@pytest.mark.parametrize("policy", ["per-item-logistic", "uss-pd"])
def test_policies_that_learn_from_rows_are_refused_by_name(policy):
    with pytest.raises(StopwiseError, match=policy):
        Learner([0.1, 1.0, 4.0], policy, mistake_cost=8)


def test_a_half_life_is_refused_where_it_would_do_nothing():
    with pytest.raises(StopwiseError, match="half_life: got 100, but need None"):
        Learner([0.1, 1.0, 4.0], "per-item", mistake_cost=8, half_life=100)


@pytest.mark.parametrize("policy", ["per-item-logistic", "uss-pd"])
def test_policies_that_keep_whole_rounds_say_what_is_taken_live(policy: str) -> None:
    with pytest.raises(StopwiseError, match=f"policy: got '{policy}'.* rule=\"rule.json\""):
        Learner({"small": 1, "large": 5}, policy)


def test_a_confidence_that_is_none_is_refused_and_costs_no_answer() -> None:
    round = Learner({"small": 1, "large": 5}, "per-item", mistake_cost=40).begin()
    for wrong in (float("nan"), float("inf"), "sure", True):
        with pytest.raises(StopwiseError, match="confidence: got"):
            round.observe("yes", confidence=wrong)  # type: ignore[arg-type]
    assert round.outputs == []
    small = Stage("small", lambda item: Reported("yes", confidence=float("nan")), cost=1)
    cascade = Cascade([small, Stage("large", lambda item: "yes", 5)], "per-item", mistake_cost=40)
    with pytest.warns(RuntimeWarning, match="confidence: got nan"):
        assert cascade.answer(1).answer == "yes"
