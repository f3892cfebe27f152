"""Modes that are switched over the API."""

from __future__ import annotations

import pytest
from service_helpers import Maker

C = "/api/v1/cascades/support"


def test_a_refused_method_names_all_that_are_accepted(make: Maker) -> None:
    client, _ = make(api_only=True)
    for path, methods in (("mode", "GET, HEAD, PUT"), ("labels", "GET, HEAD, POST"),
                          ("rounds", "POST"), ("audit", "GET, HEAD")):  # fmt: skip
        refused = client.delete(f"{C}/{path}")
        assert (refused.status_code, refused.headers["allow"]) == (405, methods)


def test_modes_are_switched_with_a_reason_and_survive(
    make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    client, service = make(api_only=True)
    assert client.put(f"{C}/mode", json={"mode": "enforce"}).status_code == 422
    done = client.put(f"{C}/mode", json={"mode": "enforce", "reason": "certain since Monday"})
    assert done.json() == {"cascade": "support", "old": "shadow", "mode": "enforce"}
    assert service.cascades["support"].mode == "enforce"
    view = client.get(f"{C}/mode").json()
    assert view["changes"][0]["reason"] == "certain since Monday"
    assert view["changes"][0]["who"] == "this machine"
    caplog.clear()
    _, second = make(api_only=True)
    assert second.cascades["support"].mode == "enforce"
    said = next(record for record in caplog.records if "whatever the file says" in record.message)
    assert vars(said)["mode_of_the_file"] == "shadow"
    assert 'with "mode": "file"' in vars(said)["to_follow_the_file"]
    # From here on the file is followed, also by a service that is started with another one.
    follow = client.put(f"{C}/mode", json={"mode": "file", "reason": "as written"})
    assert follow.json() == {"cascade": "support", "old": "enforce", "mode": "shadow"}
    second._tick()
    assert client.get(f"{C}/mode").json()["mode"] == "shadow"
    assert second.cascades["support"].kept_mode is None
    caplog.clear()
    _, third = make(api_only=True, mode="advise")
    assert third.cascades["support"].mode == "advise"
    assert not [record for record in caplog.records if "whatever" in record.message]
