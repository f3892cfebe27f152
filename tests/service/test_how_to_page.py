"""What the how-to page shows: configuration that is read, programs that run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_upstream import FakeUpstream
from service_helpers import Maker

from stopwise.service.client import Client
from stopwise.service.client.errors import ServiceError
from stopwise.service.config.reading import config_of

DOCS = Path(__file__).parents[2] / "docs" / "service"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall((DOCS / "how-to.md").read_text(encoding="utf-8"))
OTHER = {"name": "other", "base_url": "http://127.0.0.1:1/v1", "model": "m", "cost": 9.0}


def of(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


def test_every_block_says_what_it_is() -> None:
    assert {name for name, _ in BLOCKS} == {"toml", "yaml", "text", "python"}
    assert (len(of("toml")), len(of("python"))) == (3, 4)
    (command,) = of("text")
    assert command.startswith("vllm serve ")


@pytest.mark.parametrize("text", of("toml"))
def test_configuration_is_accepted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_KEY", "x")
    form = tomllib.loads(text)
    for cascade in form["cascades"].values():
        cascade.setdefault("mistake_cost", 1.0)
        if len(cascade["stages"]) < 2:
            cascade["stages"].append(OTHER)
    assert config_of(form).cascades


def test_what_litellm_is_given_names_the_cascade() -> None:
    (text,) = of("yaml")
    (entry,) = yaml.safe_load(text)["model_list"]
    assert entry["litellm_params"]["model"] == f"openai/{entry['model_name']}"
    assert entry["litellm_params"]["api_base"].endswith(":8600/v1")


@pytest.mark.parametrize("person", ["allow", "block", None])
def test_the_queue_of_people(live: Callable[..., Any], person: str | None) -> None:
    (settings,) = [text for text in of("toml") if "person" in text]
    stages = tomllib.loads(settings)["cascades"]["moderation"]["stages"]
    server = live(mode="shadow", sample=1.0, mistake_cost=2.0, stages=stages)
    published: list[Any] = []
    names: dict[str, Any] = {
        "rules": lambda item: "allow",
        "classify": lambda item: "allow",
        "ask_a_person": lambda item: person,
        "publish": lambda item, answer: published.append((item, answer)),
    }
    for program in of("python")[2:]:
        program = program.replace("http://127.0.0.1:8600", server.url)
        program = program.replace(', key="sk-sw-..."', "").replace('"moderation"', '"support"')
        exec(compile(program, "how-to.md", "exec", dont_inherit=True), names)
    names["moderate"]("a picture")
    waiting, name = names["queue"].queue[0]
    assert published == []
    names["work"]()
    assert published == [("a picture", "allow" if person is None else person)]
    evidence = server.service.cascades["support"].learner.evidence("images")
    assert evidence.seen[0, 1] == 1
    assert evidence.seen[0, 2] == (0 if person is None else 1)
    assert evidence.disagreed[0, 2] == (1 if person == "block" else 0)
    with pytest.raises(ServiceError) as error:
        Client(server.url).round("support", name)
    assert error.value.code == "round_ended"
    assert waiting == "a picture"


def test_the_tutorials_requests_are_answered(make: Maker, upstream: FakeUpstream) -> None:
    """The curl commands of the tutorial, sent to a service with a cascade of that name."""
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    client, service = make()
    found = re.findall(
        r"curl -s (?:-i |-X (\w+) )?http://127.0.0.1:8600(\S+).*?-d '(.*?)'", text, re.S
    )
    assert [path for _, path, _ in found] == [
        "/v1/chat/completions", "/api/v1/cascades/language/mode"
    ]  # fmt: skip
    for method, path, body in found:
        reply = client.request(
            method or "POST",
            path.replace("language", "support"),
            content=body.replace('"language"', '"support"'),
            headers={"content-type": "application/json"},
        )
        assert reply.status_code == 200, reply.text
    assert service.cascades["support"].mode == "enforce"
