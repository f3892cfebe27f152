"""Replay where stages are called alone: what is paid, what is learned, what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.replaying.alone import _per_item, run_alone
from stopwise.logs.replaying.replay import replay
from stopwise.logs.settings import LogSettings
from stopwise.policies.fixed import FixedStage
from stopwise.policies.per_item.alone.full_runs import full_run_probability
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.registry import make_policy

OWN = (1.0, 4.0, 10.0)


def noisy_log(rows=3000, seed=0):
    """The second stage is nearly as good as the last, and the first says when it is sure."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows)
    sure = rng.random(rows)
    wrong = [
        rng.random(rows) < 0.6 * (1 - sure) ** 3,
        rng.random(rows) < 0.04,
        rng.random(rows) < 0.02,
    ]
    outputs = [np.where(w, 1 - truth, truth) for w in wrong]
    return pl.DataFrame(
        {"a": outputs[0], "a:confidence": sure, "b": outputs[1], "c": outputs[2], "truth": truth}
    )


def settings(**more):
    return LogSettings.of(
        stages=("a", "b", "c"), costs=OWN, mistake_cost=40, calls="alone", truth="truth", **more
    )


def test_every_round_is_paid_for_by_hand():
    """A fixed stage pays its own cost, and the sum of all in a full run; nothing else."""
    rows = read_rows(noisy_log(500), settings())
    run = run_alone(rows, FixedStage(1), np.arange(500), np.random.default_rng(3))
    assert (run.answered_by == np.where(run.full, 2, 1)).all()
    assert run.full[:32].all()
    spent = rows.spent[np.arange(500), run.answered_by] + run.more
    assert spent[run.full] == pytest.approx(sum(OWN))
    assert spent[~run.full] == pytest.approx(OWN[1])


def test_full_runs_come_at_their_known_rate():
    """3,000 rounds: the number of full runs lies within five standard deviations (below 1e-6)."""
    rows = read_rows(noisy_log(), settings())
    own = Costs.from_stages(OWN, 40)
    chance = np.array([full_run_probability(t + 1, own) for t in range(3000)])
    number = run_alone(rows, FixedStage(0), np.arange(3000), np.random.default_rng(0)).full.sum()
    assert abs(number - chance.sum()) < 5 * np.sqrt((chance * (1 - chance)).sum())


@pytest.mark.parametrize("policy", ["uss-ts", "uss-ucb", "uss-ts-jump", "per-item"])
def test_what_is_learned_comes_from_full_runs_only(policy):
    """Outputs of rounds that are no full runs may be anything: the choices stay the same."""
    rows = read_rows(noisy_log(800), settings())
    chosen = make_policy(policy)
    first = run_alone(rows, chosen, np.arange(800), np.random.default_rng(1))
    other = rows.codes.copy()
    later = np.flatnonzero(~first.full)
    other[later] = 1 - other[later]
    changed = rows.where(np.arange(800))
    object.__setattr__(changed, "codes", other)
    object.__setattr__(changed, "answers", other)
    second = run_alone(changed, chosen, np.arange(800), np.random.default_rng(1))
    kept = first.full if policy == "per-item" else slice(None)
    assert (first.answered_by[kept] == second.answered_by[kept]).all()


def test_rules_may_be_made_again_with_no_full_run_between():
    """Where stages rarely differ, full runs are rare: many rules see none before the next."""
    rows = read_rows(noisy_log(4000), settings())
    own = Costs.from_stages(OWN, 40)
    full = np.zeros(4000, dtype=bool)
    full[:32] = full[3000:3019] = True  # the second rule is made after the last of all
    answered, spent = _per_item(rows, PerItem(), own, np.arange(4000), full)
    assert len(answered) == len(spent) == 4000


def test_regret_is_against_the_best_stage_called_alone():
    """b alone is the best: c costs 6 more and fixes 2 %. Through a cascade a would be paid too."""
    result = replay(noisy_log(), "uss-ts", settings(), replications=3)
    assert result.stages[result.optimal_stage] == "b"
    names = [outcome.name for outcome in result.outcomes]
    assert names[1:4] == [
        "always a alone", "always c alone", "best fixed stage in hindsight (b)",
    ]  # fmt: skip
    last = result.outcomes[2]
    assert last.cost == 10.0
    assert last.regret == pytest.approx(
        (10 - 4) / 40 + last.error_rate - result.outcomes[3].error_rate
    )
    policy = result.outcomes[0]
    best = result.outcomes[3]
    assert policy.regret == pytest.approx(
        policy.error_rate + policy.cost / 40 - best.error_rate - best.cost / 40
    )


def test_the_last_stage_alone_stands_beside_a_cascade():
    chosen = LogSettings(stages=("a", "b", "c"), costs=OWN, mistake_cost=40)
    names = {o.name: o.cost for o in replay(noisy_log(200), "uss-ts", chosen).outcomes}
    assert names["c called alone"] == 10.0
    assert names["always last"] == 15.0
    said = LogSettings(stages=("a", "b", "c"), costs=OWN, mistake_cost=40, calls="cascade")
    assert "c called alone" not in {o.name for o in replay(noisy_log(200), "uss-ts", said).outcomes}


def test_policies_that_need_the_stages_before_are_refused():
    with pytest.raises(StopwiseError, match="agree-in-a-row: looks at the outputs"):
        replay(noisy_log(200), "agree-in-a-row", settings())


def test_nothing_is_looked_at_where_no_mistake_could_pay():
    assert full_run_probability(1, Costs.from_stages((50.0, 1.0), 40)) == 0.0
    assert full_run_probability(40, Costs.from_stages((1.0, 1.0, 1.0), 1e9)) == 1.0
    assert PerItem().kappa == 0.25
