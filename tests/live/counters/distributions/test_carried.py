"""The carried distribution is that of policies/uss_ts.py, whatever was observed."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise import Costs, Evidence
from stopwise.live import Learner
from stopwise.live.counters.distributions.fast_ts import FastTs
from stopwise.live.pairs import Added, Billed, added_by, compare_answers, pair_list, tokens
from stopwise.policies.uss_ts import UssTs

OUTPUTS = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=5)


def exact(policy, costs, seen, disagreed):
    evidence = Evidence(costs.stage_count)
    for at, (i, j) in enumerate(pair_list(costs.stage_count)):
        evidence.seen[i, j], evidence.disagreed[i, j] = seen[at], disagreed[at]
    return policy.probabilities(evidence, 1, costs)


def assert_close(got, want):
    # Relative where a 53-bit random number can tell the probability from zero, absolute below.
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=2e-18)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(2, 6),
    rate=st.floats(0, 1),
    scale=st.sampled_from([0.02, 0.3, 1.5]),
    prior=st.sampled_from([(1.0, 1.0), (0.3, 2.5)]),
    start=st.sampled_from([0, 50, 10**6]),
)
def test_follows_the_policy_over_random_evidence(seed, count, rate, scale, prior, start):
    rng = np.random.default_rng(seed)
    costs = Costs.from_stages((rng.random(count) * scale).tolist())
    policy = UssTs(*prior)
    fast = FastTs(policy, costs.thresholds.tolist())
    size = len(pair_list(count))
    seen = np.full(size, start)
    disagreed = rng.binomial(start, rate, size)
    fast.anchor(seen.tolist(), disagreed.tolist())
    for step in range(700):
        moves = [(k, bool(rng.random() < rate)) for k in range(size) if rng.random() < 0.7]
        fast.move(Added(0, tuple(moves)))
        for k, differs in moves:
            seen[k] += 1
            disagreed[k] += differs
        if step % 23 == 0:
            assert_close(fast.distribution(1), exact(policy, costs, seen, disagreed))
    # and again with the rate turned round, so that what was settled comes undone
    for step in range(700):
        moves = [(k, bool(rng.random() < 1 - rate)) for k in range(size)]
        fast.move(Added(0, tuple(moves)))
        for k, differs in moves:
            seen[k] += 1
            disagreed[k] += differs
        if step % 23 == 0:
            assert_close(fast.distribution(1), exact(policy, costs, seen, disagreed))


def test_stands_still_only_while_nothing_can_change():
    costs = Costs.from_cumulative((0.0, 0.1))
    fast = FastTs(UssTs(), costs.thresholds.tolist())
    fast.anchor([400], [200])
    assert fast.still  # half disagree against a threshold of a tenth: settled
    seen = 400
    for _ in range(6000):  # from here on only agreements: it must come undone in time
        fast.move(Added(0, ((0, False),)))
        seen += 1
        assert_close(fast.distribution(1), exact(UssTs(), costs, [seen], [200]))
    assert fast.distribution(1)[0] > 0.99


@pytest.mark.parametrize("after", [0, 5, 31, 100])
def test_a_settled_pair_misses_rounds_while_another_moves_and_a_form_holds_both(after):
    rng = np.random.default_rng(after)
    costs = Costs.from_cumulative((0.0, 0.1, 0.2))
    seen, disagreed = np.array([3000, 3000, 3000]), np.array([310, 900, 40])
    fast, again = (FastTs(UssTs(), costs.thresholds.tolist()) for _ in range(2))
    fast.anchor(seen.tolist(), disagreed.tolist())
    assert not fast.still  # the first pair is at its threshold, the others are far from theirs

    def move(*ones):
        pairs = added_by(0b111, int(rng.choice([0b000, 0b011, 0b110, 0b101])))
        for one in ones:
            one.move(Billed(pairs, [1.0, 2.0, 3.0], 6.0) if rng.random() < 0.2 else pairs)
        for number, differs in pairs.pairs:
            seen[number] += 1
            disagreed[number] += differs

    for _ in range(after):
        move(fast)
    missed = [test.n < 2 + count for test, count in zip(fast._pairs, seen, strict=True)]
    assert missed == [False, after > 0, after > 0]
    again.restore(json.loads(json.dumps(fast.to_form())), seen.tolist(), disagreed.tolist())
    for _ in range(1500):
        move(fast, again)
        assert fast.renew(1) == again.renew(1)
    assert_close(fast.distribution(1), exact(UssTs(), costs, seen, disagreed))


def test_form_that_does_not_belong_is_not_used():
    costs = Costs.from_cumulative((0.0, 0.1))
    fast = FastTs(UssTs(), costs.thresholds.tolist())
    fast.anchor([10], [5])
    form = fast.to_form()
    odd, noted = {**form, "pairs": [[1.0] * 11]}, {**form, "noted": 3}
    forms: tuple[Any, ...] = (None, {}, {"pairs": []}, odd, noted)
    for broken in forms:
        other = FastTs(UssTs(), costs.thresholds.tolist())
        other.restore(broken, [10], [5])
        assert other.distribution(1) == fast.distribution(1)
    other.restore(form, [11], [5])
    assert_close(other.distribution(1), exact(UssTs(), costs, [11], [5]))


def test_three_stages_written_out_are_the_walk():
    fast = FastTs(UssTs(), Costs.from_cumulative((0.0, 0.2, 0.3)).thresholds.tolist())
    fast.anchor([30, 20, 10], [5, 4, 1])
    assert fast.renew(1)[0] == pytest.approx(fast.distribution(1), rel=1e-14)


@given(OUTPUTS)
def test_moves_count_as_evidence_does(outputs):
    evidence = Evidence(5)
    evidence.add(outputs)
    moves = added_by(*compare_answers(outputs, None))
    again = Evidence(5)
    for number, differs in moves.pairs:
        i, j = pair_list(5)[number]
        again.seen[i, j] += 1
        again.disagreed[i, j] += differs
    again.switched, again.switched_twice = moves.switched, moves.switched_twice
    assert again == evidence


@given(OUTPUTS)
def test_tokens_compare_as_the_outputs_did(outputs):
    evidence, again = Evidence(5), Evidence(5)
    evidence.add(outputs)
    again.add(tokens(*compare_answers(outputs, None), len(outputs)))
    assert again == evidence


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_the_short_way_counts_as_the_long_way(seed):
    rng = np.random.default_rng(seed)
    short = Learner([0, 0.1, 0.2], seed=seed)
    long = Learner([0, 0.1, 0.2], seed=seed)
    middle = Learner([0, 0.1, 0.2], seed=seed)
    middle._books.short = False
    long._books.short = long._books._regular = False
    for _ in range(200):
        outputs = rng.integers(0, 2, 3).tolist()
        for learner in (short, middle, long):
            round = learner.begin()
            for stage in range(round.depth + 1):
                round.observe(outputs[stage])
            assert round.end() == (outputs[round.depth], round.depth, round.cost)
    assert short.report() == middle.report()
    assert short.evidence() == long.evidence()
    one, two = short.report(), long.report()
    assert one.spent == pytest.approx(two.spent)  # added up in another order
    assert one.saved_alone == pytest.approx(two.saved_alone)
    assert one.saved_through == pytest.approx(two.saved_through)
    sums = {"spent": 0, "saved_alone": 0, "saved_through": 0}
    assert replace(one, **sums) == replace(two, **sums)
