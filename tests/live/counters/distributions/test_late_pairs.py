"""Pairs that count late have counted all when they are asked."""

from __future__ import annotations

import numpy as np
import pytest

from stopwise import Costs, Evidence
from stopwise.live import Learner
from stopwise.live.counters.distributions.fast_ts import FastTs
from stopwise.live.counters.distributions.late_pairs import MANY_STAGES, LateTs
from stopwise.live.pairs import added_by, compare_answers, pair_count, pair_list
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump

STAGES = MANY_STAGES + 2


@pytest.mark.parametrize("policy", [UssTs(), UssTsJump()], ids=lambda policy: policy.label())
@pytest.mark.parametrize("differing", [0.05, 0.3])
def test_late_pairs_give_the_distribution_of_the_policy(
    policy: UssTs | UssTsJump, differing: float
) -> None:
    costs = Costs.from_stages([0.0, *[0.03] * (STAGES - 1)])
    table = costs.thresholds.tolist()
    late, usual = LateTs(policy, table), FastTs(policy, table)
    for one in (late, usual):
        one.anchor([0] * pair_count(STAGES), [0] * pair_count(STAGES))
    evidence = Evidence(STAGES)
    rng = np.random.default_rng(5)
    for turn in range(700):  # more than are noted before all are counted
        depth = int(rng.integers(1, STAGES + 1))
        prefix = [
            None if rng.random() < 0.05 else int(rng.random() < differing) for _ in range(depth)
        ]
        added = added_by(*compare_answers(prefix, None))
        evidence.add(prefix)
        for one in (late, usual):
            one.move(added)
        if turn % 23 == 0:
            expected = policy.probabilities(evidence, 1, costs)
            assert late.distribution(1) == pytest.approx(expected.tolist(), rel=1e-9, abs=1e-15)
            assert late.distribution(1) == pytest.approx(usual.distribution(1), rel=1e-9, abs=1e-15)
        if turn == 400:
            form = late.to_form()
            late = LateTs(policy, table)
            late.restore(form, *_counts(evidence))
            assert late.to_form() == form
    late.to_form()
    usual._catch_up()
    assert [(pair.a, pair.b) for pair in late._pairs] == [(p.a, p.b) for p in usual._pairs]


def _counts(evidence: Evidence) -> tuple[list[int], list[int]]:
    pairs = pair_list(STAGES)
    return [int(evidence.seen[p]) for p in pairs], [int(evidence.disagreed[p]) for p in pairs]


def test_many_stages_that_never_disagree_stand_still() -> None:
    learner = Learner([0.0, *[0.2] * (STAGES - 1)], "uss-ts", seed=1, full_run_rate=0.999)
    for _ in range(1200):
        with learner.begin() as round:
            for _ in range(round.depth + 1):
                round.observe("x")
    fast = learner._books.counters.tallies[""].fast
    assert fast is not None
    assert fast.still > 0
    assert learner.probabilities() == pytest.approx([0.001, *[0.0] * (STAGES - 2), 0.999])
