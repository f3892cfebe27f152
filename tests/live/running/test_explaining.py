"""Why one item stopped where it did: in words, as data, in every mode; also from elsewhere."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import numpy as np
import pytest

from made_up_cascades import made_up, stages_over
from stopwise.costs import Costs
from stopwise.live import Answer, Cascade, Stage
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.rule import Rule

NAMES = ("small", "medium", "large")
PER_STAGE = (0.1, 1.0, 4.0)
ROWS = made_up(1600, (0.8, 1.2, 4.0), seed=3)[0]
RULE = Rule.fit(
    NAMES, ROWS.where(np.arange(1000)), Costs.from_stages(PER_STAGE, 15.0), reference="last"
)


def stages(fail_at: int = -1) -> list[Stage]:
    return stages_over(ROWS, NAMES, PER_STAGE, fail_at)


def cascade(policy: Any = None, fail_at: int = -1, **more: Any) -> Cascade:
    given = {"rule": RULE, "mistake_cost": 15.0, **more}
    policy = PerItem(kappa=0, reference="last") if policy is None else policy
    return Cascade(stages(fail_at), policy, **given)


def answers(made: Cascade, first: int = 1000, last: int = 1200) -> list[Answer]:
    return [made.answer(item) for item in range(first, last)]


def test_a_stop_is_told_with_what_the_rule_weighed() -> None:
    assert ROWS.confidences is not None
    seen = set()
    for item, answer in enumerate(answers(cascade()), 1000):
        found = answer.explain()
        assert found.stopped_after == answer.depth
        assert found.answer_from == answer.stage
        assert len(found.steps) == NAMES.index(answer.depth or "") + 1
        assert not found.full_run
        for at, step in enumerate(found.steps):
            assert step.says == ROWS.labels[ROWS.codes[item, at]]
            assert step.confidence == pytest.approx(ROWS.confidences[item, at])
            assert step.agrees_with == tuple(
                NAMES[k] for k in range(at) if ROWS.codes[item, k] == ROWS.codes[item, at]
            )
            if at < 2:
                assert step.stop is (at == len(found.steps) - 1)
                assert step.risk_costs == pytest.approx(15 * (step.risk or 0))
                assert ((step.risk_costs or 0) <= (step.going_on_costs or 0) + 1e-9) is step.stop
        if answer.depth == "small":
            step = found.steps[0]
            assert found.why == (
                f"stopped after small: it says {step.says} and is {step.confidence:.2g} sure; risk"
                f" {step.risk:.2g}, which costs {step.risk_costs:.2g}; going on costs"
                f" {step.going_on_costs:.2g}"
            )
        if answer.depth == "large":
            assert found.why == "went on to large: no earlier stage was sure enough"
        assert json.loads(json.dumps(found.to_dict()))["why"] == found.why
        assert str(found).splitlines()[0] == found.why
        seen.add(answer.depth)
    assert seen == set(NAMES)


def test_full_runs_looks_and_what_is_not_proven() -> None:
    early = answers(cascade("per-item:kappa=0", rule=None), 0, 40)
    assert early[0].explain().why.startswith("a full run, drawn before the first call with prob")
    assert early[0].explain().full_run
    promised = answers(cascade(agree=0.6, level=0.6, look_rate=0.3), 1000, 1600)
    why = [answer.explain().why for answer in promised]
    assert why[0].startswith("a full run: the promise of agreement is not proven yet")
    assert any(one.startswith("a look for the promise of agreement, drawn before") for one in why)
    assert any(one.startswith("stopped after small") for one in why)
    told = [one for one in why if "the rule would stop after small" in one]
    assert told


def test_modes_budgets_failures_and_rules_without_tables() -> None:
    for mode in ("shadow", "advise"):
        found = answers(cascade(mode=mode), 1000, 1050)
        assert {one.explain().stopped_after for one in found} == {"large"}
        assert any("enforced, it would stop after small" in one.explain().why for one in found)
    cut = answers(cascade(item_budget=0.5), 1000, 1100)
    assert any("ended after small, before the rule stopped it" in one.explain().why for one in cut)
    broken = answers(cascade(fail_at=1), 1000, 1100)
    assert any(one.explain().steps[-1].says is None for one in broken)
    rows = answers(cascade("agree-in-a-row", rule=None), 1000, 1050)
    assert any("stopped after medium" in one.explain().why for one in rows)
    drawn = Cascade(stages(), "fixed:stage=1", mistake_cost=8).answer(3).explain()
    assert drawn.why == "medium was drawn before the first call, with probability 1"
    assert drawn.steps == ()


def test_async_batches_and_pickles_explain_alike() -> None:
    plain = [str(answer.explain()) for answer in answers(cascade(), 1000, 1050)]
    many = cascade().answer_many(range(1000, 1050), batch_size=1).collect()
    assert [str(answer.explain()) for answer in many] == plain

    async def run() -> list[str]:
        made = cascade()
        return [str((await made.answer_async(item)).explain()) for item in range(1000, 1050)]

    assert asyncio.run(run()) == plain
    sent = pickle.dumps(list(many))
    assert len(sent) < 80_000  # no learner travels with it
    assert [str(answer.explain()) for answer in pickle.loads(sent)] == plain
