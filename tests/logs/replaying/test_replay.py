from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest

from stopwise import Policy
from stopwise.checks import StopwiseError
from stopwise.logs import LogSettings, replay
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.replaying.replay import run_once
from stopwise.policies.registry import make_policy

GIVEN: dict[str, Any] = {
    "stages": ["small", "medium", "large"],
    "costs": [0.01, 0.1, 0.3],
    "mistake_cost": 1,
}


def by_name(result):
    return {outcome.name.split(" (")[0]: outcome for outcome in result.outcomes}


def test_fixed_policies_and_baselines_by_hand(log):
    result = replay(log, "fixed:stage=1", **GIVEN, truth="truth", replications=2)
    found = by_name(result)
    errors = {s: float((log[s] != log["truth"]).mean()) for s in GIVEN["stages"]}
    totals = np.array(list(errors.values())) + np.array([0.01, 0.11, 0.41])
    policy = result.outcomes[0]
    assert policy.cost == pytest.approx(0.11)
    assert policy.differs == pytest.approx(float((log["medium"] != log["large"]).mean()))
    assert policy.error_rate == pytest.approx(errors["medium"])
    assert policy.regret == pytest.approx(totals[1] - totals.min())
    assert found["always first"].regret == pytest.approx(totals[0] - totals.min())
    assert found["always last"].differs == 0
    assert found["best fixed stage in hindsight"].regret == pytest.approx(0)
    # The policy never moves, so random stopping at equal cost does what it does.
    assert found["random stopping at equal cost"].regret == pytest.approx(policy.regret)
    agree = (log["small"] == log["medium"]).to_numpy()
    walk = found["on until two in a row agree"]
    assert walk.stage_share == pytest.approx((0, agree.mean(), 1 - agree.mean()))
    answer = np.where(agree, log["medium"].to_numpy(), log["large"].to_numpy())
    assert walk.error_rate == pytest.approx((answer != log["truth"].to_numpy()).mean())


def test_a_policy_sees_only_the_stages_it_calls(log):
    seen = []

    @dataclass(frozen=True)
    class Watching(Policy):
        name = "watching"

        def _depth_probabilities(self, evidence, round, costs):
            return np.eye(costs.stage_count)[round % costs.stage_count]

        def record(self, evidence, round, prefix):
            seen.append((round, tuple(prefix)))

    replay(log.head(30), Watching(), **GIVEN, truth="truth", replications=1)
    assert [len(prefix) for _, prefix in seen] == [r % 3 + 1 for r in range(1, 31)]
    first = log.row(1, named=True)
    assert len(seen[1][1]) == 3
    assert (first["small"] == first["medium"]) == (seen[1][1][0] == seen[1][1][1])


def test_same_seed_same_result_whatever_the_jobs(log):
    given = GIVEN | {"replications": 4, "rounds": 60, "order": "shuffled"}
    one = replay(log, "uss-ts", **given, jobs=1).to_dict()
    assert replay(log, "uss-ts", **given, jobs=2).to_dict() == one
    assert replay(log, "uss-ts", **given, seed=1).to_dict() != one


def test_learning_finds_the_stage_the_rule_would(log):
    result = replay(log, **GIVEN, replications=3)
    assert result.outcomes[0].stage_share[1] > 0.8
    assert [rounds for rounds, _ in result.over_time][-1] == 2000
    assert all(sum(share) == pytest.approx(1) for _, share in result.over_time)


def test_partial_rows_are_left_out_and_abstentions_are_no_answer():
    frame = pl.DataFrame(
        {"a": ["x", None, "y", "x"], "b": ["x", "y", None, "y"], "truth": ["x", "y", "y", "y"]}
    )
    given = {"stages": ["a", "b"], "costs": [0, 0.1], "mistake_cost": 1}
    result = replay(
        frame, "fixed:stage=0", **given, truth="truth", replications=1, abstentions="mistake"
    )
    assert result.left_out == 1
    policy = result.outcomes[0]
    assert policy.no_answer == pytest.approx(1 / 3)
    assert policy.error_rate == pytest.approx(2 / 3)
    going_on = replay(frame, "fixed:stage=0", **given, truth="truth", replications=1).outcomes[0]
    assert going_on.no_answer == 0
    assert going_on.error_rate == pytest.approx(1 / 3)
    assert going_on.cost == pytest.approx(0.1 / 3)


def test_bills_are_those_of_the_rows_met():
    """Expensive items are those on which the first stage is wrong: mean costs would mislead."""
    rows = 400
    hard = np.arange(rows) % 4 == 0
    frame = pl.DataFrame(
        {
            "a": np.where(hard, "x", "y"), "a:cost": np.full(rows, 0.01),
            "b": np.full(rows, "y"), "b:cost": np.where(hard, 0.4, 0.001),
        }
    )  # fmt: skip
    result = replay(frame, "fixed:stage=1", mistake_cost=1, replications=1)
    assert result.outcomes[0].cost == pytest.approx(0.01 + (0.4 + 3 * 0.001) / 4)
    # Going on only where two differ is impossible to know before; always last pays the mean.
    table = {outcome.name: outcome.cost for outcome in result.outcomes}
    assert table["always first"] == pytest.approx(0.01)
    first = replay(frame, "fixed:stage=1", mistake_cost=1, replications=1, rounds=1)
    assert first.outcomes[0].cost == pytest.approx(0.41)


def test_compiled_and_plain_loops_agree_in_law():
    """Mean stage share over 200 replications each; 6 standard errors have odds below 1e-8."""
    rng = np.random.default_rng(3)
    base = rng.integers(0, 2, 150)
    frame = pl.DataFrame({"a": base, "b": np.where(rng.random(150) < 0.25, 1 - base, base)})
    settings = LogSettings(stages=("a", "b"), costs=(0, 0.3))
    rows = read_rows(frame, settings)
    policy = make_policy("uss-ts")
    seeds = np.random.SeedSequence(0).spawn(200)
    order = np.arange(150)
    plain = [run_once(rows, policy, order, np.random.default_rng(s)).depths.mean() for s in seeds]
    compiled = replay(frame, settings=settings, replications=200).outcomes[0].stage_share[1]
    error = np.sqrt(2 * np.var(plain) / 200)
    assert abs(np.mean(plain) - compiled) <= 6 * error


def test_oracle_needs_truth(log):
    with pytest.raises(StopwiseError, match="give truth"):
        replay(log, "oracle", **GIVEN, replications=1)
    found = replay(log, "oracle", **GIVEN, truth="truth", replications=1)
    assert found.outcomes[0].regret == pytest.approx(0)


def test_command(log, tmp_path, cli):
    log.head(200).write_csv(tmp_path / "log.csv")
    arguments = ["replay", tmp_path / "log.csv", "--stages", "small,medium,large", "--costs",
                 "0.01,0.1,0.3", "--truth", "truth", "--replications", 2, "--jobs", 1]  # fmt: skip
    form = json.loads(cli(*arguments, "--json").out)
    assert [o["name"].split(" (")[0] for o in form["outcomes"]] == [
        "uss-ts-jump", "always first", "always last", "best fixed stage in hindsight",
        "on until two in a row agree", "large called alone", "random stopping at equal cost",
    ]  # fmt: skip
    answer = cli(*arguments)
    assert answer.status == 0
    assert "always last" in answer.out
    assert cli(*arguments, "--order", "sideways").status == 2


@pytest.mark.parametrize("seed", range(3))
def test_what_is_equal_on_paper_is_no_regret(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 2000)
    right = rng.random((2000, 3)) < [0.4, 0.9, 0.91]
    outputs = np.where(right, truth[:, None], 1 - truth[:, None])
    frame = pl.DataFrame({**dict(zip("abc", outputs.T, strict=True)), "truth": truth})
    found = replay(
        frame, "fixed", stages="a,b,c", costs=[0.02, 25, 41], mistake_cost=300, truth="truth",
        replications=1,
    )  # fmt: skip
    best = next(one for one in found.outcomes if one.name.startswith("best fixed"))
    assert best.regret == 0
