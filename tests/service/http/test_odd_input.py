"""Half letters, numbers without end, odd hosts, the same request many times at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from fake_upstream import FakeUpstream
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from service_helpers import Maker

from stopwise.checks import StopwiseError
from stopwise.service.config.reading import config_of
from stopwise.service.database.connection import StoreUnavailableError
from stopwise.service.pages import looking

ROUNDS = "/api/v1/cascades/support/rounds"
HALF = "a \ud800 b"

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
FIELDS = ("messages", "stream", "stream_options", "n", "tools", "response_format", "kind", "input",
          "choices", "low", "high", "question", "max_tokens")  # fmt: skip
BODIES = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6)


def chat(text: str) -> dict[str, Any]:
    return {"model": "support", "messages": [{"role": "user", "content": text}]}


def test_half_a_letter_is_passed_on_and_shown(make: Maker, upstream: FakeUpstream) -> None:
    client, _ = make(mode="shadow", sample=1.0, server={"keep": "all"})
    upstream.answer = lambda model, body: HALF + model
    response = client.post(
        "/v1/chat/completions",
        content=b'{"model": "support", "messages": [{"role": "user", "content": "\\ud800"}]}',
    )
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == HALF + "large"
    for _ in range(200):
        client.portal.call(asyncio.sleep, 0.01)  # type: ignore[union-attr]
        page = client.get("/ui/c/support/disagreements")
        if "a ? b" in page.text:
            break
    assert page.status_code == 200
    assert "a ? blarge" in page.text
    assert client.get("/ui/c/support/labels").status_code == 200
    # A field is named in its refusal, whatever its name.
    refused = client.post(ROUNDS, content=b'{"\\udfff": 1}')
    assert (refused.status_code, refused.json()["error"]["param"]) == (422, "\udfff")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_an_answer_that_is_not_json_is_a_failure(
    make: Maker, upstream: FakeUpstream, number: float
) -> None:
    client, _ = make(mode="shadow", sample=1.0)
    upstream.answer = lambda model, body: {"message": {"content": "x", "odd": number}}
    response = client.post("/v1/chat/completions", json=chat("hi"))
    assert response.status_code == 502
    assert response.json()["error"]["code"] == "no_answer"


def test_numbers_without_end_are_refused(make: Maker) -> None:
    client, _ = make(models=["rule", "person"], api_only=True, mode="advise")
    made = client.post(ROUNDS).json()
    told = client.post(
        f"{ROUNDS}/{made['round']}/outputs", content=b'{"stage": "rule", "output": [1e999]}'
    )
    assert (told.status_code, told.json()["error"]["code"]) == (400, "invalid_json")


@pytest.mark.parametrize("host", ["[", "[::1", "[x]"])
def test_odd_hosts_are_refused(make: Maker, host: str) -> None:
    client, _ = make()
    assert client.get("/v1/models", headers={"host": host}).status_code == 403


def test_a_flood_of_segments_ends_before_the_first_is_counted(make: Maker) -> None:
    client, _ = make(models=["rule", "person"], api_only=True, max_segments=3)
    names = {client.post(ROUNDS, json={"segment": f"s{at}"}).json()["segment"] for at in range(20)}
    assert names == {"s0", "s1", "s2", "other"}


def test_the_same_at_once_counts_once(live: Callable[..., Any]) -> None:
    server = live(models=["rule", "person"], mode="advise")
    asyncio.run(_all_at_once(server))
    counted = server.service.cascades["support"].learner.evidence()
    assert counted.seen[0, 1] == 20


async def _all_at_once(server: Any) -> None:
    base = server.url + ROUNDS
    async with aiohttp.ClientSession() as session:

        async def post(url: str, body: Any, headers: dict[str, str]) -> tuple[int, str]:
            async with session.post(url, json=body, headers=headers) as response:
                return response.status, await response.text()

        async def at_once(
            url: str, body: Any, headers: dict[str, str] | None = None
        ) -> list[tuple[int, str]]:
            return await asyncio.gather(*(post(url, body, headers or {}) for _ in range(8)))

        for at in range(20):
            begun = await at_once(base, {}, {"Idempotency-Key": f"key-{at}"})
            assert len(set(begun)) == 1
            assert begun[0][0] == 201
            open_rounds = server.service.database.rows("SELECT id FROM open_rounds")
            assert len(open_rounds) == 1  # no second round is left for a day
            url = f"{base}/{open_rounds[0][0]}"
            for stage in ("rule", "person"):
                told = await at_once(f"{url}/outputs", {"stage": stage, "output": "x"})
                assert {status for status, _ in told} == {200}
            ended = await at_once(f"{url}/end", {})
            assert len(set(ended)) == 1, ended
            assert ended[0][0] == 200


@pytest.mark.parametrize("action", ["outputs", "end", "abandon", "deeper", ""])
def test_a_round_of_another_epoch_counts_nowhere(make: Maker, action: str) -> None:
    old, _ = make(models=["rule", "model", "person"], api_only=True, mode="advise")
    made = old.post(ROUNDS).json()
    for stage in made["stages"]:
        old.post(f"{ROUNDS}/{made['round']}/outputs", json={"stage": stage, "output": "x"})
    # The same number means another stage now, or none at all.
    new, service = make(models=["rule", "person"], api_only=True, mode="advise")
    url = f"{ROUNDS}/{made['round']}"
    if action == "":
        refused = new.get(url)
    else:
        body = {"stage": "person", "output": "x"} if action == "outputs" else {}
        refused = new.post(f"{url}/{action}", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "another_epoch")
    service.give_up_rounds(time.time() + 2 * 24 * 3600)
    assert new.get(url).status_code == 404
    assert service.cascades["support"].learner.evidence().seen[0, 1] == 0


def test_more_rounds_are_those_that_are_missing(make: Maker) -> None:
    client, _ = make(models=["rule", "person"], api_only=True, mode="advise", mistake_cost=20.0)

    def missing_after(rounds: int) -> tuple[str, int | None]:
        for _ in range(rounds):
            url = f"{ROUNDS}/{client.post(ROUNDS).json()['round']}"
            for stage in ("rule", "person"):
                client.post(f"{url}/outputs", json={"stage": stage, "output": "x"})
            assert client.post(f"{url}/end").status_code == 200
        (pair,) = client.get("/api/v1/cascades/support/explain").json()["pairs"]
        return pair["verdict"], pair["more_rounds"]

    verdict, first = missing_after(2)
    assert verdict == "too few rows"
    # Labels are not what is missing, so no page says so.
    for path in ("/ui/", "/ui/c/support", "/ui/c/support/mode"):
        shown = client.get(path).text
        assert '<span class="open">not certain yet</span>' in shown
        assert "not knowable without labels</span>" not in shown
    assert first is not None
    assert missing_after(1) == ("too few rows", first - 1)
    assert missing_after(first - 1) == ("certain", None)


def test_no_body_of_a_client_is_a_fault(make: Maker, upstream: FakeUpstream) -> None:
    """Whatever stands in the fields of a request, the answer is no 500 and errors have a form."""
    client, _ = make(mode="shadow", sample=0.5)
    seen: set[int] = set()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(BODIES, st.sampled_from(["chat/completions", "decisions", "embeddings"]), st.booleans())
    def send(body: dict[str, Any], path: str, whole: bool) -> None:
        asked: dict[str, Any] = {"model": "support", **body}
        if whole:
            asked = {**chat("hi"), "kind": "predicate", "input": "so?", **body}
        response = client.post(f"/v1/{path}", content=json.dumps(asked))
        seen.add(response.status_code)
        assert response.status_code not in (500, 501), (path, asked, response.text)
        if response.status_code >= 400:
            assert set(response.json()["error"]) == {"message", "type", "param", "code"}

    send()
    assert {200, 400} <= seen


def test_a_tool_call_as_the_protocol_has_it_is_shown(make: Maker) -> None:
    client, service = make(
        models=["rule", "person"], api_only=True, mode="shadow", sample=1.0, server={"keep": "all"}
    )
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
    url = f"{ROUNDS}/{client.post(ROUNDS).json()['round']}"
    for stage, output in (
        ("rule", {"content": None, "tool_calls": [call]}),
        ("person", {"content": "no", "tool_calls": None}),
    ):
        assert client.post(f"{url}/outputs", json={"stage": stage, "output": output}).is_success
    assert client.post(f"{url}/end").status_code == 200
    assert service.recorder.drain()
    assert "refund({})" in client.get("/ui/c/support/disagreements").text
    assert client.get("/ui/c/support/labels").status_code == 200


def test_half_a_letter_names_a_conversation(make: Maker) -> None:
    client, _ = make(mode="enforce", sticky="conversation")
    body = b'{"model": "support", "messages": [], "prompt_cache_key": "\\ud800"}'
    assert client.post("/v1/chat/completions", content=body).status_code < 500


def test_a_form_with_too_many_fields_is_refused(make: Maker) -> None:
    client, _ = make(api_only=True)
    answer = client.post(
        "/ui/login",
        data={f"f{at}": "x" for at in range(101)},
        headers={"sec-fetch-site": "same-origin"},
    )
    assert answer.status_code == 400


def test_a_page_says_that_the_store_is_away(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = make(api_only=True)

    def away(service: Any) -> None:
        raise StoreUnavailableError("the database cannot be reached now")

    monkeypatch.setattr(looking, "cascade_lines", away)
    assert client.get("/ui/").status_code == 503


NUL = "a\0b"
OWN = {"sec-fetch-site": "same-origin"}


def test_nul_is_refused_by_name_wherever_a_text_comes_in(make: Maker) -> None:
    """PostgreSQL keeps none: what one database refuses, both do."""
    client, service = make(models=["rule", "person"], api_only=True, mode="advise")
    forms: list[tuple[str, str, dict[str, str]]] = [
        ("/ui/c/support/mode", "reason", {"mode": "enforce"}),
        ("/ui/c/support/labels", "round", {"right": "0"}),
        ("/ui/c/support/labels", "right", {"round": "r"}),
        ("/ui/keys", "name", {"scope-admin": "1"}),
        ("/ui/keys/revoke", "id", {}),
        ("/ui/login", "key", {}),
    ]
    for path, field, more in forms:
        refused = client.post(path, data={**more, field: NUL}, headers=OWN)
        assert refused.status_code == 400, (path, field)
        assert "without NUL" in refused.text, (path, field)
        assert field in refused.text
    for path in ("", "/disagreements"):
        shown = client.get(f"/ui/c/support{path}", params={"segment": NUL})
        assert shown.status_code == 422, path
        assert "segment" in shown.text
    for path in ("evidence", "report", "verdict", "explain"):
        read = client.get(f"/api/v1/cascades/support/{path}", params={"segment": NUL})
        assert (read.status_code, read.json()["error"]["param"]) == (422, "segment")
    sent = [("PUT", "mode", {"mode": "shadow", "reason": NUL}, "reason"),
            ("POST", "rounds", {"segment": NUL}, "segment"),
            ("POST", "rounds", {"conversation": NUL}, "conversation"),
            ("POST", "labels", {"round": "r", "correct": [], "note": NUL}, "note"),
            ("POST", "labels", {"round": NUL, "correct": []}, "round")]  # fmt: skip
    for method, path, body, field in sent:
        told = client.request(method, f"/api/v1/cascades/support/{path}", json=body)
        assert (told.status_code, told.json()["error"]["param"]) == (422, field)
    assert client.get(f"{ROUNDS}/a%00b").status_code == 404
    assert service.cascades["support"].mode == "advise"
    with pytest.raises(StopwiseError, match=r"comparator: .*without NUL"):
        config_of({"cascades": {"c": {"comparator": NUL, "mistake_cost": 1, "stages": [
            {"name": "a", "cost": 1}, {"name": "b", "cost": 2}]}}})  # fmt: skip
