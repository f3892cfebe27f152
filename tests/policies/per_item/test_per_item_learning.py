from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.logs.replaying.outcomes import two_in_a_row
from stopwise.policies.conformance import check_policy
from stopwise.policies.per_item.agree_in_a_row import AgreeInARow
from stopwise.policies.per_item.learning import (
    EPOCHS,
    Learned,
    called,
    learn_over,
    rounds_until_next,
    run_over,
)
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.situation import SituationPolicy
from stopwise.policies.registry import make_policy
from stopwise.situations.keys import situations
from stopwise.situations.observations import Observations

STAGES = ("small", "medium", "large")
COSTS = Costs.from_stages([0.1, 1, 4], 25.0)


def run(
    rows: Observations, seed: int = 0, policy: SituationPolicy | None = None, costs: Costs = COSTS
):
    stages = tuple(f"stage {at}" for at in range(rows.stage_count))
    return learn_over(policy or PerItem(), stages, rows, costs, np.random.default_rng(seed))


def test_it_keeps_the_rules_of_the_frame() -> None:
    check_policy(PerItem())
    check_policy(PerItem(reference="last", trust=0.5, kappa=1.0, always_full=4))


def test_two_in_a_row_is_the_baseline_of_replay() -> None:
    check_policy(AgreeInARow())
    rows, _ = made_up(500, (0.2, 0.8, 1.0, 2.0), seed=2)
    codes = rows.codes.copy()
    codes[::7, 1] = -1
    rows = Observations(rows.labels, codes, rows.confidences)
    depths, full, _ = run(rows, policy=AgreeInARow(), costs=Costs.from_stages([1, 1, 1, 1]))
    assert (depths == two_in_a_row(codes)).all()
    assert not full.any()


def test_it_is_in_the_registry_with_its_settings() -> None:
    policy = make_policy("per-item:trust=.5,reference=last")
    assert policy == PerItem(trust=0.5, reference="last")


@pytest.mark.parametrize(
    "given",
    [{"reference": "x"}, {"reference": True}, {"trust": 0}, {"kappa": -1}, {"always_full": 0}],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(StopwiseError, match=next(iter(given))):
        PerItem(**given)  # type: ignore[arg-type]


def test_learning_as_it_goes_pays_less_than_the_best_fixed_stage() -> None:
    rows, truth = made_up(10_000, (0.2, 1.0, 2.0), labels=4, seed=3)
    sure = Observations(
        rows.labels, rows.codes, np.where(rows.codes == truth[:, None], 1, 0) + rows.confidences
    )
    depths, _, _ = run(sure)
    wrong = rows.codes != truth[:, None]
    cumulative = np.asarray(COSTS.cumulative)
    own = cumulative[depths].mean() + 25 * wrong[np.arange(len(depths)), depths].mean()
    best = (cumulative + 25 * wrong.mean(axis=0)).min()
    assert own < 0.9 * best


def test_nothing_is_known_of_stages_that_were_not_called() -> None:
    """Outputs and confidences beyond the depth are scrambled; not one decision changes."""
    rows, _ = made_up(3000, (0.2, 1.0, 2.0), seed=5)
    depths, full, _ = run(rows)
    beyond = np.arange(3)[None] > depths[:, None]
    assert beyond.any()
    assert rows.confidences is not None
    scrambled = Observations(
        rows.labels,
        np.where(beyond, (rows.codes + 1) % len(rows.labels), rows.codes),
        np.where(beyond, 99.0, rows.confidences),
    )
    again, full_again, _ = run(scrambled)
    assert (again == depths).all()
    assert (full == full_again).all()


def test_full_runs_have_the_probability_that_is_stated() -> None:
    """Six standard deviations of a sum of independent draws: a false alarm below 1e-8."""
    policy = PerItem()
    rows, _ = made_up(20_000, (0.2, 1.0), seed=1)
    costs = Costs.from_stages([1, 4], 20.0)
    depths, full, learned = run(rows, 4, policy, costs)
    chance = np.asarray([policy.full_run_probability(at + 1, costs) for at in range(20_000)])
    assert (chance[:32] == 1).all()
    assert full[:32].all()
    assert (np.diff(chance) <= 0).all()
    spread = np.sqrt((chance * (1 - chance)).sum())
    assert abs(full.sum() - chance.sum()) < 6 * spread
    assert (depths[full] == 1).all()
    assert learned.counts is not None
    assert sum(learned.counts.full.values()) == full.sum()


def test_full_runs_give_unbiased_figures_by_inverse_propensity() -> None:
    """Agreement with the last stage, estimated from full runs alone; 5 standard errors."""
    rows, _ = made_up(20_000, (0.2, 1.0, 2.0), seed=2)
    policy = PerItem(kappa=2.0)
    _, full, _ = run(rows, 1, policy)
    chance = np.asarray([policy.full_run_probability(at + 1, COSTS) for at in range(20_000)])
    differs = (rows.codes[:, 0] != rows.codes[:, 2]).astype(float)
    estimate = (differs * full / chance).mean()
    error = np.sqrt((differs * (1 - chance) / chance).sum()) / 20_000
    assert abs(estimate - differs.mean()) < 5 * error


def test_where_the_second_stage_can_never_pay_nothing_is_looked_at() -> None:
    rows, _ = made_up(200, (0.2, 1.0), seed=1)
    depths, full, _ = run(rows, costs=Costs.from_stages([1, 30], 40.0))
    assert (depths == 0).all()
    assert not full.any()


def test_counts_of_all_rounds_survive_new_bins_and_memory_is_bounded() -> None:
    rows, _ = made_up(5000, (0.2, 1.0, 2.0), seed=1)
    policy = PerItem(always_full=16)
    _, full, learned = run(rows, policy=policy)
    assert learned.counts is not None
    assert learned.counts.rounds == learned.round == 5000
    assert sum(learned.counts.full.values()) == full.sum()
    assert learned.history == []
    assert 16 * EPOCHS[-1] < 5000


def test_the_same_seed_gives_the_same_run() -> None:
    rows, _ = made_up(2000, (0.2, 1.0, 2.0), seed=1)
    assert (run(rows, 3)[0] == run(rows, 3)[0]).all()
    assert (run(rows, 3)[1] != run(rows, 4)[1]).any()


def test_two_machines_learn_what_one_would() -> None:
    rows, _ = made_up(6000, (0.2, 1.0, 2.0), seed=1)
    from stopwise.policies.per_item.learning import called
    from stopwise.situations.binning import Binning
    from stopwise.situations.transitions import Transitions

    depths, full, _ = run(rows)
    left, binning = called(rows, depths), Binning.fit(rows)
    whole = Transitions.of(left, binning, full=full)
    half = np.arange(6000) % 2 == 0
    one = Transitions.of(left.where(half), binning, full=full[half])
    one.merge(Transitions.of(left.where(~half), binning, full=full[~half]))
    assert one == whole
    rule = PerItem().rule(STAGES, whole, COSTS)
    assert (PerItem().rule(STAGES, one, COSTS).depths(rows) == rule.depths(rows)).all()


def plain_loop(
    rows: Observations, policy: PerItem, costs: Costs, rng: np.random.Generator
) -> list[int]:
    """Round by round, stage by stage, one situation at a time: what the fast way must equal."""
    stages = tuple(f"stage {at}" for at in range(rows.stage_count))
    learned = Learned(policy, stages, costs)
    last = rows.stage_count - 1
    draws = rng.random(len(rows))
    depths: list[int] = []
    wait = learned.until_next()
    for at in range(len(rows)):
        row = rows.where(np.array([at]))
        full = bool(draws[at] < policy.full_run_probability(at + 1, costs))
        depth = last if full else 0
        if not full and learned.rule is not None and learned.counts is not None:
            keys = situations(row, learned.counts.binning)[0].tolist()
            while depth < last and not learned.rule.stops(depth, keys[depth]):
                depth += 1
        depths.append(depth)
        learned.record(called(row, np.array([depth])), np.array([full]))
        wait -= 1
        if wait == 0:
            learned.refresh()
            wait = learned.until_next()
    return depths


@pytest.mark.parametrize(("skills", "labels"), [((0.2, 1.0, 2.0), 4), ((0.5, 1.5), 10)])
def test_a_run_over_a_log_is_the_plain_loop(skills: tuple[float, ...], labels: int) -> None:
    rows, _ = made_up(4200, skills, labels=labels, seed=labels)
    codes = rows.codes.copy()
    codes[::11, -1] = -1
    assert rows.confidences is not None
    silent = np.random.default_rng(labels).random(codes.shape) < 0.05
    sure = np.where(silent, np.nan, rows.confidences)
    kind = np.array(["a", "b", "c"] * 1400)
    rows = Observations(rows.labels, codes, sure, {"kind": kind})
    costs = Costs.from_stages([1.0, 1.0, 1.0][: len(skills)], 4.0)
    fast = run(rows, labels, costs=costs)[0]
    assert fast.tolist() == plain_loop(rows, PerItem(), costs, np.random.default_rng(labels))
    assert np.bincount(fast).min() > 50


def test_a_full_run_answers_with_what_is_likeliest_right() -> None:
    """The last of four stages is bad: full runs see it, and do not answer by it."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 6000)
    off = rng.random((6000, 4)) < [0.3, 0.1, 0.1, 0.7]
    codes = np.where(off, (truth[:, None] + rng.integers(1, 5, (6000, 4))) % 5, truth[:, None])
    rows = Observations(tuple("abcde"), codes)
    costs = Costs.from_stages([1, 2, 4, 8], 400)
    found = run_over(PerItem(), ("p", "q", "r", "s"), rows, costs, rng)
    late = found.full & (np.arange(6000) > 1000)
    at = np.flatnonzero(late)
    assert len(at) > 50
    assert (codes[at, 3] != truth[at]).mean() > 0.6
    assert (codes[at, found.answering[at]] != truth[at]).mean() < 0.15
    early = ~found.full
    assert (
        found.answering[early & (found.depths < 3)] == found.depths[early & (found.depths < 3)]
    ).all()
    assert (found.answering <= found.depths).all()


def test_chances_of_full_runs_at_once_are_those_one_by_one() -> None:
    rounds = np.arange(1, 3000)
    for mistake_cost in (0.5, 3.0, 25.0, 1e6):
        costs = Costs.from_stages([0.1, 1, 4], mistake_cost)
        for policy in (PerItem(), PerItem(kappa=2.0, always_full=100, trust=0.4)):
            one_by_one = [policy.full_run_probability(at, costs) for at in rounds.tolist()]
            assert policy.full_run_probabilities(rounds, costs).tolist() == one_by_one


def test_a_rule_is_of_the_counts_at_its_refresh_and_made_when_first_asked_for() -> None:
    rows, _ = made_up(4000, (0.2, 1.0, 2.0), seed=1)
    _, _, learned = run(rows)
    assert isinstance(learned, Learned)
    assert learned.counts is not None
    everyone = np.ones(1000, dtype=np.bool_)
    learned.ahead = None  # there are no more rows of that log
    again = deepcopy(learned)
    at_once = again.rule
    assert at_once is not None
    again.record(rows.where(slice(0, 1000)), everyone)
    learned.record(rows.where(slice(0, 1000)), everyone)  # counts on before anybody asked
    keys = situations(rows, learned.counts.binning)
    assert learned.rule is not None
    assert (learned.rule.depths_of(keys) == at_once.depths_of(keys)).all()


def test_rules_are_made_seldom_at_the_start_and_as_often_as_ever_later() -> None:
    """Ten times within 10,000 rounds, where three fifths from the start would be 13 times."""
    made = [0]
    while made[-1] < 10_000:
        made.append(made[-1] + rounds_until_next(made[-1], 32, settled=made[-1] >= 2048))
    assert made[1:-1] == [32, 128, 256, 512, 819, 1310, 2048, 3276, 5241, 8385]
