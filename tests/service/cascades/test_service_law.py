"""Depths drawn through HTTP have the learner's law, and sticky conversations keep it.

The law before each request is known exactly, so the number of rounds that stop at a stage less the
sum of its probabilities is a martingale with steps in [-1, 1]; by Freedman's inequality it exceeds
sqrt(2 V L) + L / 3 in absolute value with probability at most 2 exp(-L), V being the sum of the
variances. L = ln(2 K / 1e-6) makes the false-alarm rate of a whole test at most 1e-6.
"""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from service_helpers import Maker

FALSE_ALARM = 1e-6


def far(drawn: list[int], laws: list[list[float]]) -> list[float]:
    """For every stage, the deviation as a share of what is allowed; above 1 is an alarm."""
    count = len(laws[0])
    room = math.log(2 * count / FALSE_ALARM)
    result = []
    for stage in range(count):
        off = sum((depth == stage) - law[stage] for depth, law in zip(drawn, laws, strict=True))
        variance = sum(law[stage] * (1 - law[stage]) for law in laws)
        result.append(abs(off) / (math.sqrt(2 * variance * room) + room / 3))
    return result


def test_the_test_finds_a_wrong_law() -> None:
    assert max(far([0] * 1000, [[0.8, 0.2]] * 1000)) > 1


@pytest.mark.parametrize("sticky", ["none", "conversation"])
def test_the_law_through_http(make: Maker, upstream: FakeUpstream, sticky: str) -> None:
    # Prices under which every depth keeps a share for a while; the stages disagree now and then.
    client, service = make(
        models=["small", "middle", "large"], mode="enforce", sticky=sticky, mistake_cost=0.05,
        full_run_rate=0.1, seed=5,
    )  # fmt: skip
    upstream.answer = lambda model, body: (
        f"{model if len(body['messages'][0]['content']) % 3 == 0 else 'same'}"
    )
    cascade = service.cascades["support"]
    drawn, laws = [], []
    for at in range(500):
        law = cascade.law("")
        message = {"role": "user", "content": f"question {at}"}
        response = client.post(
            "/v1/chat/completions", json={"model": "support", "messages": [message]}
        )
        depth = int(response.headers["x-stopwise-depth"])
        # The probability that is told is that of the learner, with full runs.
        assert float(response.headers["x-stopwise-probability"]) == pytest.approx(law[depth])
        drawn.append(depth)
        laws.append(law)
        while service._tasks or service.recorder.waiting:
            service.recorder._wake.set()
            time.sleep(0.0005)
    assert sum(sum(law[k] for law in laws) > 30 for k in range(3)) >= 2  # it is a test
    assert max(far(drawn, laws)) < 1


def test_the_law_of_a_decision(make: Maker) -> None:
    _, service = make(models=["a", "b", "c"], mode="enforce", full_run_rate=0.07)
    cascade = service.cascades["support"]
    law = cascade.law("")
    drawn = [cascade.decide().depth for _ in range(20_000)]
    assert max(far(drawn, [law] * len(drawn))) < 1


def test_sticky_conversations(make: Maker) -> None:
    _, service = make(models=["a", "b", "c"], mode="enforce", sticky="conversation", seed=3)
    cascade = service.cascades["support"]
    law = cascade.law("")
    first = {str(at): cascade.decide("", str(at)).depth for at in range(20_000)}
    assert max(far(list(first.values()), [law] * len(first))) < 1
    # A conversation stays where it is while the law does.
    assert all(cascade.decide("", name).depth == depth for name, depth in list(first.items())[:500])


def test_a_conversation_moves_only_when_the_law_passes_its_number(make: Maker) -> None:
    _, service = make(models=["a", "b", "c"], mode="enforce", sticky="conversation")
    cascade = service.cascades["support"]
    names = [str(at) for at in range(3000)]
    before = {name: cascade.decide("", name).depth for name in names}
    old = cascade.law("")
    from stopwise.evidence import Evidence

    seen = [[0, 30, 30], [0, 0, 30], [0, 0, 0]]
    disagreed = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    cascade.learner.add_evidence(Evidence.from_counts(seen, disagreed))
    new = cascade.law("")
    after = {name: cascade.decide("", name).depth for name in names}
    moved = sum(before[name] != after[name] for name in names) / len(names)
    # One uniform number under two laws: at most the sum of shifts of the cumulative shares.
    sums: Any = lambda law: [sum(law[: k + 1]) for k in range(len(law))]  # noqa: E731
    shift = sum(abs(a - b) for a, b in zip(sums(old), sums(new), strict=True))
    room = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * len(names)))
    assert moved <= shift + room
    assert max(far(list(after.values()), [new] * len(names))) < 1
