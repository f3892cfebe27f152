"""After all stages the answer is the likeliest, live as in a replay; in shadow it is the last's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from made_up_cascades import made_up, stages_over
from stopwise.costs import Costs
from stopwise.live import Cascade, Learner, RoundLog, Stage
from stopwise.policies.per_item.learning import run_over
from stopwise.policies.per_item.policy import PerItem

STAGES = {"one": 0.1, "two": 0.4, "three": 1.0, "bad": 4.0}
NAMES = tuple(STAGES)
COUNT = 1500
ROWS = made_up(COUNT, (0.8, 1.2, 1.6, -0.6), labels=6, seed=2)[0]


def stages(fail_at: int = -1) -> list[Stage]:
    return stages_over(ROWS, NAMES, tuple(STAGES.values()), fail_at)


class Coins:
    """The random numbers of the live rounds, for a replay."""

    def __init__(self, learner: Learner) -> None:
        self.draws = learner._books.ledger.chooser.draws

    def random(self, size: int) -> np.ndarray:
        return np.asarray([self.draws.uniform(1 + at) for at in range(size)])


def test_live_answers_are_those_of_the_replay() -> None:
    cascade = Cascade(stages(), "per-item:kappa=1", mistake_cost=8, seed=3)
    coins: Any = Coins(cascade.learner)
    costs = Costs.from_stages(list(STAGES.values()), 8)
    run = run_over(PerItem(kappa=1), NAMES, ROWS, costs, coins)
    answers = [cascade.answer(item) for item in range(COUNT)]
    assert [NAMES.index(answer.depth or "") for answer in answers] == run.depths.tolist()
    assert [NAMES.index(answer.stage or "") for answer in answers] == run.answering.tolist()
    assert [answer.answer for answer in answers] == [
        ROWS.labels[ROWS.codes[item, stage]] for item, stage in enumerate(run.answering.tolist())
    ]
    whole = run.depths == 3
    assert (run.answering[whole] < 3).mean() > 0.3  # the last stage is bad, and seen to be
    many = Cascade(stages(), "per-item:kappa=1", mistake_cost=8, seed=3)
    batched = many.answer_many(range(COUNT), batch_size=1).collect()
    assert [answer.answer for answer in batched] == [answer.answer for answer in answers]


def test_shadow_and_failures_keep_the_last_answer_that_was_given(tmp_path: Any) -> None:
    shadow = Cascade(stages(), "per-item:kappa=1", mistake_cost=8, mode="shadow")
    answers = [shadow.answer(item) for item in range(400)]
    assert {answer.stage for answer in answers} == {"bad"}
    failing = Cascade(stages(fail_at=3), "per-item:kappa=1", mistake_cost=8)
    assert {failing.answer(item).stage for item in range(32)} == {"three"}
    promised = Cascade(stages(), agree=0.6, level=0.6, look_rate=0.3)
    for item in range(600):
        answer = promised.answer(item)
        assert answer.stage == answer.depth  # held against the last stage, whatever it is worth


def test_the_log_says_whose_answer_was_given(tmp_path: Any) -> None:
    path = tmp_path / "rounds.jsonl"
    with Cascade(stages(), "per-item:kappa=1", mistake_cost=8, store=RoundLog(path)) as cascade:
        given = [cascade.answer(item) for item in range(300)]
        report = cascade.learner.report()
    with Cascade(stages(), "per-item:kappa=1", mistake_cost=8, store=RoundLog(path)) as again:
        assert again.learner.report() == report
    assert report.answers == tuple(sum(one.stage == name for one in given) for name in NAMES)
    assert report.items is not None
    assert report.items.agreement == pytest.approx(0.9, abs=0.1)
