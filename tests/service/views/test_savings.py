"""Savings: what they rest on where stages fail."""

from __future__ import annotations

import pytest
from fake_upstream import FakeUpstream
from front_requests import ask, settled
from service_helpers import Maker

from stopwise.service.views.savings import savings_view


def test_a_call_that_failed_and_cost_nothing_is_no_price(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, service = make(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: {"status": 500} if model == "large" else "yes"
    for _ in range(4):
        assert ask(client).status_code == 200
    settled(client, service)
    cascade = service.cascades["support"]
    assert savings_view(service, cascade).baseline is None
    assert "one call of large for each costs" not in client.get("/ui/c/support/savings").text
    upstream.answer = lambda model, body: "yes"
    for _ in range(35):
        ask(client)
    settled(client, service)
    found = savings_view(service, cascade)
    assert found.from_full_runs
    assert found.baseline_calls == 35
    assert found.baseline == pytest.approx((0.0018, 0.0018, 0.0018))
