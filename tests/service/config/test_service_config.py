from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stopwise.checks import StopwiseError
from stopwise.service.config.reading import config_of, read_config

EXAMPLE = """
[server]
listen = "127.0.0.1:8600"
store = "sqlite:///stopwise.db"
keep = "disagreements"

[cascades.support]
mode = "shadow"
sample = 0.05
run_to = "large"
mistake_cost = 0.04
comparator = "tool_calls | json_fields(intent) | folded"
segment_by = "header:x-stopwise-segment"
sticky = "conversation"
max_segments = 50
full_run_rate = 0.01

[[cascades.support.stages]]
name = "small"
base_url = "http://127.0.0.1:8000/v1"
model = "qwen-small"
price = { input = 0.05, output = 0.20 }

[[cascades.support.stages]]
name = "large"
base_url = "https://api.openai.com/v1"
model = "gpt-4o"
api_key = "env:STOPWISE_TEST_UPSTREAM_KEY"
timeout = 60
"""


def test_the_designs_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "service.toml"
    path.write_text(EXAMPLE)
    with pytest.raises(StopwiseError, match="STOPWISE_TEST_UPSTREAM_KEY is not set"):
        read_config(path)
    monkeypatch.setenv("STOPWISE_TEST_UPSTREAM_KEY", "sk-very-secret")
    config = read_config(path)
    support = config.cascades["support"]
    assert support.stage_names == ("small", "large")
    assert support.run_to == 1
    assert support.served
    assert support.priced
    # The price that the file does not give comes from the list.
    assert support.stages[1].price is not None
    assert support.stages[1].price.input == pytest.approx(2.5)
    # The secret is nowhere but where it is used.
    assert "sk-very-secret" not in repr(config)
    assert support.stages[1].upstream is not None
    assert support.stages[1].upstream.api_key is not None
    assert support.stages[1].upstream.api_key.reveal() == "sk-very-secret"


STAGES = [{"name": "a", "cost": 1}, {"name": "b", "cost": 2}]


def broken(**change: Any) -> dict[str, Any]:
    cascade = {"mistake_cost": 5, "stages": STAGES, **change}
    return {"cascades": {"c": {k: v for k, v in cascade.items() if v is not None}}}


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "cascades: missing"),
        ({"servr": {}, **broken()}, "unknown field 'servr'; did you mean 'server'?"),
        ({"server": {"kepe": "all"}, **broken()}, "did you mean 'keep'?"),
        (broken(samples=0.1), "cascades.c: unknown field 'samples'; did you mean 'sample'?"),
        (broken(mode="shadwo"), "did you mean 'shadow'?"),
        (broken(mistake_cost=None), "cascades.c.mistake_cost: missing"),
        (broken(mistake_cost=0), "cascades.c.mistake_cost: got 0"),
        (broken(mistake_cost=True), "cascades.c.mistake_cost: got True"),
        (broken(sample=1.5), "at most 1"),
        (broken(run_to="c"), "'a' or 'b'"),
        (broken(stages=STAGES[:1]), "two or more stages"),
        (broken(stages=[STAGES[0], STAGES[0]]), "a different name for each stage"),
        (broken(stages=[{"name": "a b", "cost": 1}, STAGES[1]]), "stages[0].name"),
        (broken(stages=[{"name": "a"}, STAGES[1]]), "need the cost of one call"),
        (broken(stages=[{**STAGES[0], "cots": 1}, STAGES[1]]), "did you mean 'cost'?"),
        (broken(comparator="foldd"), "tool_calls, exact, folded"),
        (broken(segment_by="cookie:x"), "header:NAME-OF-A-HEADER"),
        (broken(policy="uss-tss"), "uss-tss"),
        (broken(rule="rule.json"), "cascades.c.rule: the service learns its rule"),
        (broken(calls="alone"), "cascades.c.calls: the service calls the stages up to"),
        (broken(promise=0.9), "cascades.c.promise: the service keeps no promise"),
        (broken(baseline="a"), "cascades.c.baseline: what is served today is run_to"),
        (
            broken(abstentions="mistake", policy="per-item"),
            "cascades.c.abstentions: got 'mistake', but need leave out",
        ),
        (broken(abstentions="skip"), "abstentions: got 'skip'"),
        (broken(reading="estimate"), "did you mean 'estimated'?"),
        (broken(policy="per-item-logistic"), "need per-item, or a policy that draws"),
        (broken(policy="per-item", sticky="conversation"), "c.sticky: got 'conversation', but"),
        (broken(policy="per-item", run_to="a"), "cascades.c.run_to: got 'a', but need b with"),
        (broken(policy="per-item", comparator="number(0.5)"), "one without a tolerance"),
        (
            broken(policy="per-item", stages=[{"name": f"s{n}", "cost": n} for n in range(20)]),
            "cascades.c.stages: got 20, but need at most",
        ),
        (broken(policy="per-item", confidence="men"), "did you mean 'mean'?"),
        (broken(confidence="mean"), "cascades.c.confidence: got 'mean', but need none"),
        (
            broken(
                stages=[
                    {"name": "a", "base_url": "http://x/v1", "model": "m", "cost": 1},
                    STAGES[1],
                ]
            ),
            "either every stage has a base_url, or none",
        ),
        (
            broken(
                stages=[
                    {"name": "a", "base_url": "http://x/v1", "model": "no-such-model-9"},
                    {"name": "b", "base_url": "http://x/v1", "model": "m", "cost": 1},
                ]
            ),
            "the price of 'no-such-model-9' is not known",
        ),
        (
            broken(
                stages=[
                    {"name": "a", "base_url": "ftp://x", "model": "m", "cost": 1},
                    STAGES[1],
                ]
            ),
            "a URL such as",
        ),
        (
            broken(
                stages=[
                    {"name": "a", "base_url": "http://u:p@x/v1", "model": "m", "cost": 1},
                    STAGES[1],
                ]
            ),
            "a URL such as",
        ),
        ({"server": {"listen": "8600"}, **broken()}, "server.listen"),
        ({"server": {"listen": "my-machine:8600"}, **broken()}, "server.listen"),
        ({"server": {"header_seconds": 1e30}, **broken()}, "server.header_seconds: got 1e+30"),
        ({"server": {"header_seconds": 1e-9}, **broken()}, "at least 0.001 and at most 86400"),
        ({"server": {"listen": "127.0.0.1:99999"}, **broken()}, "server.listen"),
    ],
)
def test_what_cannot_be_used_is_refused(form: dict[str, Any], message: str) -> None:
    with pytest.raises(StopwiseError, match=re.escape(message)):
        config_of(form)


def test_secrets_are_never_shown_in_errors() -> None:
    stages = [
        {"name": "a", "base_url": "http://x/v1", "model": "m", "cost": 1, "api_key": "sk-oops"},
        STAGES[1],
    ]
    with pytest.raises(StopwiseError) as caught:
        config_of(broken(stages=stages))
    assert "sk-oops" not in str(caught.value)
    with pytest.raises(StopwiseError) as caught:
        config_of({"server": {"store": "postgresq://u:hunter2@h/d"}, **broken()})
    assert "hunter2" not in str(caught.value)


def test_localhost_is_this_machine() -> None:
    config = config_of({"server": {"listen": "localhost:8601"}, **broken()})
    assert (config.server.host, config.server.port) == ("127.0.0.1", 8601)
