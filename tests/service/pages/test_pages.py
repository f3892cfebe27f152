"""The pages: what they show, who may see them, what their forms do, what cannot get in."""

from __future__ import annotations

import html
import re
import time
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from front_requests import settled
from service_helpers import Maker
from starlette.testclient import TestClient

from stopwise.service.core import Service

OWN = {"sec-fetch-site": "same-origin"}
EVIL = '<script>alert("x")</script>'
TABS = ("", "/savings", "/disagreements", "/labels", "/health", "/mode")


def ask(client: TestClient, text: str) -> None:
    body = {"model": "support", "messages": [{"role": "user", "content": text}]}
    assert client.post("/v1/chat/completions", json=body).status_code == 200


def filled(make: Maker, upstream: FakeUpstream, **more: Any) -> tuple[TestClient, Service]:
    """A cascade that has seen thirty requests, on ten of which the two models differ."""

    def answer(model: str, body: dict[str, Any]) -> str:
        number = int(body["messages"][-1]["content"].split()[-1])
        return EVIL if model == "small" and number % 3 == 0 else "right"

    upstream.answer = answer
    settings: dict[str, Any] = {"mode": "shadow", "sample": 1.0, "mistake_cost": 0.01} | more
    client, service = make(server={"keep": "all"}, **settings)
    for number in range(30):
        ask(client, f"{EVIL} {number}")
    wait_until_counted(client, 30)
    return client, service


def wait_until_counted(client: TestClient, number: int) -> None:
    for _ in range(2000):
        form = client.get("/api/v1/cascades/support/report").json()
        if form["sums"].get("rounds", 0) >= number:
            return
        time.sleep(0.02)
    raise AssertionError(form)


def page(client: TestClient, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, (path, response.text[:300])
    return response.text


def test_every_page_shows_and_nothing_of_the_models_runs(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, _ = filled(make, upstream)
    for path in ("/ui/", *(f"/ui/c/support{tab}" for tab in TABS), "/ui/keys"):
        response = client.get(path)
        assert response.status_code == 200, (path, response.text[:300])
        assert "default-src 'self'" in response.headers["content-security-policy"]
        assert EVIL not in response.text
        assert not re.search(r"\son\w+=|\sstyle=|https?://(?!127)", response.text), path
    assert html.escape(EVIL) in page(client, "/ui/c/support/disagreements").replace(
        "&#34;", "&quot;"
    )


def test_the_overview_has_every_pair_with_its_threshold(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, _ = filled(make, upstream)
    text = page(client, "/ui/c/support")
    assert "small and large" in text
    assert "33.3" in text  # ten of thirty differ
    assert "not knowable" in text
    assert "<svg" in text


def test_a_mode_is_changed_with_a_reason_and_changed_back_with_one_click(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, service = filled(make, upstream)
    form = {"mode": "enforce", "reason": "it is certain"}
    done = client.post("/ui/c/support/mode", data=form, headers=OWN, follow_redirects=False)
    assert (done.status_code, service.cascades["support"].mode) == (303, "enforce")
    text = page(client, "/ui/c/support/mode")
    assert "it is certain" in text
    assert "Back to shadow" in text
    client.post("/ui/c/support/mode", data={"mode": "shadow", "reason": "back"}, headers=OWN)
    assert service.cascades["support"].mode == "shadow"


def test_a_mode_chosen_again_can_be_taken_back_and_the_file_followed(make: Maker) -> None:
    client, service = make(mode="shadow")
    assert "Follow the file" not in page(client, "/ui/c/support/mode")
    for reason in ("it is certain", "still certain"):
        form = {"mode": "enforce", "reason": reason}
        client.post("/ui/c/support/mode", data=form, headers=OWN)
    text = page(client, "/ui/c/support/mode")
    assert "Back to shadow" in text
    assert "stays, whatever the file says: there it is shadow" in text
    assert "mode in use" in page(client, "/ui/keys")
    followed = {"mode": "file", "reason": "as the file says"}
    client.post("/ui/c/support/mode", data=followed, headers=OWN)
    assert service.cascades["support"].mode == "shadow"
    assert service.trail.modes() == {}
    text = page(client, "/ui/c/support/mode")
    assert "Back to enforce" in text
    assert "Follow the file" not in text
    service._tick()
    assert service.cascades["support"].mode == "shadow"


@pytest.mark.parametrize(
    ("form", "words"),
    [({"mode": "enforce", "reason": " "}, "reason"), ({"mode": "on", "reason": "x"}, "one of")],
)
def test_a_bad_mode_form_says_what_would_be_accepted(
    make: Maker, form: dict[str, str], words: str
) -> None:
    client, service = make(mode="shadow")
    response = client.post("/ui/c/support/mode", data=form, headers=OWN)
    assert response.status_code == 400
    assert words in response.text
    assert service.cascades["support"].mode == "shadow"


def test_what_two_stages_say_where_they_differ_is_counted_by_direction(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, _ = filled(make, upstream)
    assert "What they say" not in page(client, "/ui/c/support/disagreements")
    text = page(client, "/ui/c/support/disagreements?pair=0-1")
    shown = text[text.index("What they say") :].split("</section>")[0]
    said = [html.unescape(one) for one in re.findall("<pre>(.*?)</pre>", shown, re.DOTALL)]
    assert said == [EVIL, "right"]
    assert '<td class="number">10</td>' in shown


def test_forms_from_another_site_are_refused(make: Maker) -> None:
    client, service = make(mode="shadow")
    form = {"mode": "enforce", "reason": "mine now"}
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}, {}):
        for path in ("/ui/c/support/mode", "/ui/c/support/labels", "/ui/keys", "/ui/keys/revoke"):
            assert client.post(path, data=form, headers=headers).status_code == 403
    assert service.cascades["support"].mode == "shadow"


def test_labels_are_given_on_the_page_and_settle_the_audit(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, service = filled(make, upstream)
    for given in range(10):
        text = page(client, "/ui/c/support/labels")
        if "settled" in text:
            break
        found = re.search(r'name="round" value="([^"]+)"', text)
        assert found, text
        # "right" is right: the choice whose text it is
        choices = re.findall(r'name="right" value="(\d+)".*?<pre>(.*?)</pre>', text, re.DOTALL)
        group = next(group for group, said in choices if said == "right")
        form = {"round": found[1], "right": group}
        done = client.post("/ui/c/support/labels", data=form, headers=OWN, follow_redirects=False)
        assert done.status_code == 303, done.text
        assert len(service.labels.all("support")) == given + 1
    kept = service.labels.all("support").values()
    assert kept
    assert all(list(label.correct) == [1] for label in kept)


def test_a_label_that_names_no_answer_is_refused(make: Maker, upstream: FakeUpstream) -> None:
    client, service = filled(make, upstream)
    text = page(client, "/ui/c/support/labels")
    found = re.search(r'name="round" value="([^"]+)"', text)
    assert found
    for form in ({"round": found[1], "right": "7"}, {"round": "nowhere", "right": "0"}, {}):
        assert client.post("/ui/c/support/labels", data=form, headers=OWN).status_code == 400
    assert service.labels.all("support") == {}


def test_keys_are_made_shown_once_and_revoked(make: Maker) -> None:
    client, service = make(mode="shadow")
    refused = client.post("/ui/keys", data={"name": "me", "scope-infer": "1"}, headers=OWN)
    assert refused.status_code == 400  # it would lock everybody out of these pages
    for budget in ("-5", "0", "nan", "much"):
        data = {"name": "me", "scope-admin": "1", "budget": budget}
        refused = client.post("/ui/keys", data=data, headers=OWN)
        assert refused.status_code == 400, budget
        assert "a number above 0" in refused.text
    made = client.post("/ui/keys", data={"name": "me", "scope-admin": "1"}, headers=OWN)
    key = re.search(r"sk-sw-[\w-]+", made.text)
    assert key, made.text[:500]
    assert client.get("/ui/keys", follow_redirects=False).status_code == 303  # now one logs in
    done = client.post("/ui/login", data={"key": key[0], "then": "/ui/keys"}, headers=OWN)
    assert done.status_code == 200
    assert key[0] not in done.text
    (only,) = service.keys.all()
    client.post("/ui/keys/revoke", data={"id": only.id}, headers=OWN)
    assert service.keys.all()[0].revoked is not None


def test_scopes_hold_on_pages(make: Maker) -> None:
    client, service = make(mode="shadow")
    _, text = service.keys.create("reader", ["read"])
    client.post("/ui/login", data={"key": text, "then": "/ui/"}, headers=OWN)
    assert client.get("/ui/c/support").status_code == 200
    assert client.get("/ui/keys").status_code == 403
    for path, form in (
        ("/ui/c/support/mode", {"mode": "enforce", "reason": "x"}),
        ("/ui/c/support/labels", {"round": "x", "right": "none"}),
    ):
        assert client.post(path, data=form, headers=OWN).status_code == 403
    assert service.cascades["support"].mode == "shadow"


def test_what_is_not_there_is_a_page_that_says_so(make: Maker) -> None:
    client, _ = make(mode="shadow")
    response = client.get(f"/ui/c/{EVIL.replace('/', '')}")
    assert response.status_code == 404
    assert "there is no cascade" in response.text
    assert "<script>alert" not in response.text
    for query in ("?pair=9-9", "?pair=x", "?before=nan", "?before=x", "?segment=%00"):
        assert client.get(f"/ui/c/support/disagreements{query}").status_code in (200, 422)


def test_a_young_cascade_is_shown_in_short_slices(make: Maker, upstream: FakeUpstream) -> None:
    client, service = filled(make, upstream)
    shown = page(client, "/ui/c/support")
    assert "One bar for every 10 seconds, of requests that were compared" in shown
    assert 'aria-label="Which stage answered, by 10 seconds: small, large"' in shown
    assert "Disagreement of small and large by 10 seconds" in page(client, "/ui/c/support/health")
    # What began long ago is shown by the hour, from sums over all requests.
    with service.database.transaction() as work:
        work.run("UPDATE sums SET hour = hour - 5")
    shown = page(client, "/ui/c/support")
    assert "One bar for every hour." in shown
    assert 'aria-label="Which stage answered, by hour: small, large"' in shown


def test_savings_say_before_enforcing_what_it_would_cost(
    make: Maker, upstream: FakeUpstream
) -> None:
    client, service = filled(make, upstream)
    shown = " ".join(page(client, "/ui/c/support/savings").split())
    assert "Had the 30 compared requests been enforced as was drawn for them" in shown
    sums = service.rounds.sums("support")
    spent = html.escape(f"{sums['advised:cost']:.4g}")
    assert f"would have cost <strong>{spent}</strong>" in shown


def test_pages_of_a_cascade_that_has_answered_nothing(make: Maker, upstream: FakeUpstream) -> None:
    upstream.answer = lambda model, body: {"status": 500}
    client, service = make(mode="shadow", sample=0.0)
    body = {"model": "support", "messages": [{"role": "user", "content": "x"}]}
    assert client.post("/v1/chat/completions", json=body).status_code == 502
    end = time.monotonic() + 30
    while service._tasks and time.monotonic() < end:
        client.get("/healthz")
    assert service.recorder.drain()
    assert "No request was answered in the last week." in page(client, "/ui/c/support")
    assert "No two stages were compared" in page(client, "/ui/c/support/health")
    mode = " ".join(page(client, "/ui/c/support/mode").split())
    assert "Nothing can be said yet" in mode
    assert "Enforcing now, with nothing learned, would cost" in mode


def test_the_first_sentence_says_what_is_missing(make: Maker, upstream: FakeUpstream) -> None:
    client, service = make(models=["small", "middle", "large"], mode="shadow", sample=1.0)
    words = "No request has come in yet. Send one to <code>/v1/chat/completions</code> with the"
    for path in ("/ui/", "/ui/c/support"):
        assert f"{words} model name <code>support</code>." in page(client, path)
    upstream.answer = lambda model, body: {"status": 500} if model == "middle" else model
    for number in range(2):
        ask(client, str(number))
    wait_until_counted(client, 2)
    told = " ".join(page(client, "/ui/c/support").split())
    assert (
        "Not every two stages have answered the same request (small and middle; middle and large)."
        " middle has failed in each of its 2 calls."
    ) in told
    assert '<span class="open">not judged yet</span> after 2 compared rounds' in told
    verdicts = [pair["verdict"] for pair in service_pairs(client)]
    assert verdicts == ["not compared yet", "not judged yet", "not compared yet"]
    assert ">small and large: not judged yet</text>" in told
    client, service = make(mode="shadow", sample=0.0, server={"store": "sqlite:///other.db"})
    ask(client, "x")
    settled(client, service)
    told = page(client, "/ui/c/support")
    assert "1 request came in, of which none was compared. In shadow, 0 % are." in told
    client, _ = make(api_only=True, server={"store": "sqlite:///third.db"})
    path = "<code>/api/v1/cascades/support/rounds</code>"
    assert f"No round has been reported yet. Begin one with a POST to {path}." in page(
        client, "/ui/"
    )


def service_pairs(client: TestClient) -> list[dict[str, Any]]:
    found = client.get("/api/v1/cascades/support/verdict").json()["pairs"]
    assert isinstance(found, list)
    return found


def test_all_segments_together_are_those_that_came(make: Maker, upstream: FakeUpstream) -> None:
    """The law over all requests is that of their segments, not of requests without one."""
    upstream.answer = lambda model, body: "same"
    client, service = make(
        mode="shadow", sample=1.0, mistake_cost=0.01, segment_by="header:x-segment"
    )
    body = {"model": "support", "messages": [{"role": "user", "content": "hello"}]}
    for number in range(60):
        headers = {"x-segment": "web" if number % 3 else "mail"}
        client.post("/v1/chat/completions", json=body, headers=headers)
    wait_until_counted(client, 60)
    cascade = service.cascades["support"]
    web, mail = cascade.law("web"), cascade.law("mail")
    expected = [(2 * one + two) / 3 for one, two in zip(web, mail, strict=True)]
    assert client.get("/api/v1/cascades/support/explain").json()["law"] == pytest.approx(expected)
    assert client.get("/api/v1/cascades/support/mode").json()["law"] == pytest.approx(expected)
    for tab in ("", "/disagreements"):
        every = page(client, f"/ui/c/support{tab}?segment=*")
        assert re.search(r'<option value="\*" selected>', every)
        one = page(client, f"/ui/c/support{tab}?segment=web")
        assert re.search(r'<option value="web" selected>', one)
    assert "40 of 40" not in page(client, "/ui/c/support/disagreements?segment=*")
    assert "0 of 40" in page(client, "/ui/c/support/disagreements?segment=web")
