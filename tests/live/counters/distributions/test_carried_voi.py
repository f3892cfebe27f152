"""Decisions of USS-VOI-anytime that stand for many rounds, against the policy in every round."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from stopwise import Costs, Evidence
from stopwise.live import Learner
from stopwise.policies.voi import UssVoiAnytime

STAGES = {2: [0.0, 0.1], 3: [0.0, 0.1, 0.1], 4: [0.0, 0.05, 0.02, 0.2]}


@pytest.mark.parametrize(
    ("stage_count", "rate", "least"),
    [(2, 0.12, 100), (3, 0.02, 0), (3, 0.12, 100), (3, 0.45, 100), (4, 0.1, 0)],
)
def test_a_decision_that_stands_is_the_policys(
    stage_count: int, rate: float, least: int, tmp_path: Path
) -> None:
    """Rounds overlap, so that deep ones end while the decision is to stop early."""
    rng = random.Random(stage_count)
    settings = {"policy": "uss-voi-anytime", "mistake_cost": 1.0}
    learner = Learner(STAGES[stage_count], **settings)  # type: ignore[arg-type]
    costs = Costs.from_stages(STAGES[stage_count], 1.0)
    evidence, policy = Evidence(stage_count), UssVoiAnytime()
    waiting, stood = [], 0
    for at in range(500):
        carried = learner._books.counters.tally("").fast
        stood += carried is not None and carried.still > 0
        round = learner.begin()
        assert policy.probabilities(evidence, round.number, costs)[round.depth] == 1.0
        waiting.append(round)
        while len(waiting) > at % 3:
            ended = waiting.pop(rng.randrange(len(waiting)))
            for _ in range(ended.depth + 1):
                ended.observe("x" if rng.random() > rate else "y")
            evidence.add(ended.outputs)
            ended.end()
        if at == 300:
            learner.save(tmp_path / "half.json")
            again = Learner(STAGES[stage_count], **settings)  # type: ignore[arg-type]
            again.load(tmp_path / "half.json")
            assert again.probabilities() == learner.probabilities()
    assert stood >= least


@pytest.mark.parametrize("seen", [1_000, 2_000, 3_000, 40_000])
def test_evidence_beyond_all_doubt_is_decided_too(seen: int) -> None:
    """What looking could gain is then below 1e-154, and the rounds to repay it no float squared."""
    learner = Learner([0.0, 0.3], "uss-voi-anytime", mistake_cost=1.0)
    learner.add_evidence(Evidence.from_counts([[0, seen], [0, 0]], [[0, seen // 1000], [0, 0]]))
    assert learner.begin().depth == 0
