"""The files under deploy/: read as their programs read them, and their commands run here.

There is no container engine in the tests. What the files say is taken apart: the command that the
image runs is run with the configuration that is mounted, three times, against a PostgreSQL.
"""

from __future__ import annotations

import configparser
import getpass
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import postgres_server
import pytest
import yaml
from fake_upstream import FakeUpstream
from replicas import new_store

from stopwise.service.config.reading import read_config

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
STOPWISE = [sys.executable, "-m", "stopwise"]
ASK = {"model": "support", "messages": [{"role": "user", "content": "hello?"}]}


def instructions() -> list[tuple[str, str]]:
    """The container file, an instruction for each line that is not continued."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return found


def image_command(name: str) -> list[str]:
    """ENTRYPOINT or CMD, in the form that needs no shell."""
    (text,) = [rest for word, rest in instructions() if word == name]
    found: list[str] = json.loads(text)
    return found


def test_the_container_file() -> None:
    found = instructions()
    assert {word for word, _ in found} <= {
        "FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
        "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert found[0][0] == "FROM"
    for word, rest in found:
        if word == "COPY" and not rest.startswith("--from"):
            for name in shlex.split(rest)[:-1]:
                assert (ROOT / name).exists(), name
    stages = [rest.split()[-1] for word, rest in found if word == "FROM" and " AS " in rest]
    copied = [m[1] for _, rest in found if (m := re.match(r"--from=(\w+)", rest))]
    assert copied == stages
    # It does not run as root, and what it runs is where it was installed.
    last = [word for word, _ in found]
    assert last.index("USER") < last.index("ENTRYPOINT")
    assert [rest for word, rest in found if word == "USER"] == ["stopwise"]
    (program,) = image_command("ENTRYPOINT")
    assert any(f"venv {Path(program).parents[1]}" in rest for word, rest in found if word == "RUN")
    assert dict(found)["STOPSIGNAL"] == "SIGTERM"
    (port,) = [rest for word, rest in found if word == "EXPOSE"]
    with (DEPLOY / "service.toml").open("rb") as file:
        assert tomllib.load(file)["server"]["listen"].endswith(f":{port}")


def test_the_compose_file() -> None:
    services = compose()["services"]
    replicas = {name: part for name, part in services.items() if name.startswith("replica-")}
    assert len(replicas) == 3
    assert len({json.dumps(part) for part in replicas.values()}) == 1
    one = replicas["replica-1"]
    assert (DEPLOY / one["build"]["context"] / one["build"]["dockerfile"]).resolve().exists()
    (mounted,) = one["volumes"]
    local, inside, how = mounted.split(":")
    assert (DEPLOY / local).exists()
    assert how == "ro"
    assert image_command("CMD") == ["serve", inside]
    # Secrets come from outside and are asked for by name.
    config = (DEPLOY / "service.toml").read_text(encoding="utf-8")
    for name in re.findall(r"env:(\w+)", config):
        assert name in one["environment"]
    for part in (one, services["postgres"]):
        for value in part["environment"].values():
            assert not value.startswith("$") or ":?" in value
    # Only this machine reaches the front; replicas and database have no port outside.
    assert services["front"]["ports"] == ["127.0.0.1:8600:8600"]
    assert not [name for name in services if name != "front" and "ports" in services[name]]
    # The balancer knows all replicas, and hands what one did not take to another.
    (mounted,) = services["front"]["volumes"]
    assert mounted == "./Caddyfile:/etc/caddy/Caddyfile:ro"
    balancer = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    (proxied,) = re.findall(r"reverse_proxy (.*) \{", balancer)
    assert proxied.split() == [f"{name}:8600" for name in replicas]
    assert re.search(r"lb_try_duration [1-9]", balancer)
    assert "health_uri /healthz" in balancer  # not /readyz: without the database answers go on
    (said,) = re.findall(r"respond `(.*)` \{http.error.status_code\}", balancer)
    assert json.loads(said)["error"].keys() == {"message", "type", "param", "code"}
    assert "pg_isready -U stopwise" in services["postgres"]["healthcheck"]["test"][1]
    assert "postgresql://stopwise@postgres/stopwise" in config
    # Long enough for what is under way.
    assert int(one["stop_grace_period"].removesuffix("s")) > 30


def unit() -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(DEPLOY / "stopwise.service", encoding="utf-8")
    return found


def test_the_systemd_unit(tmp_path: Path) -> None:
    part = unit()["Service"]
    program, *rest = shlex.split(part["ExecStart"])
    assert (program, rest) == (image_command("ENTRYPOINT")[0], image_command("CMD"))
    assert (part["KillSignal"], part["NoNewPrivileges"], part["User"]) == (
        "SIGTERM", "yes", "stopwise"
    )  # fmt: skip
    assert int(part["TimeoutStopSec"]) > 30
    assert part["WorkingDirectory"] == f"/var/lib/{part['StateDirectory']}"
    if (verify := shutil.which("systemd-analyze")) is not None:
        # With a program and a user that are here: all else is as it stands.
        text = (DEPLOY / "stopwise.service").read_text(encoding="utf-8")
        text = text.replace(program, sys.executable).replace(
            "User=stopwise", f"User={getpass.getuser()}"
        )
        copy = tmp_path / "stopwise.service"
        copy.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [verify, "verify", str(copy)], capture_output=True, text=True, timeout=60
        )
        said = [line for line in done.stderr.splitlines() if "stopwise.service" in line]
        assert (done.returncode, said) == (0, [])


@pytest.fixture
def configs(tmp_path: Path, upstream: FakeUpstream) -> Iterator[list[Path]]:
    """deploy/service.toml for three replicas on this machine: only addresses are others."""
    with postgres_server.server() as postgres:
        store = new_store(postgres)
        made = []
        for _ in range(3):
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                port = one.getsockname()[1]
            text = (DEPLOY / "service.toml").read_text(encoding="utf-8")
            for old, new in (
                ("0.0.0.0:8600", f"0.0.0.0:{port}"),
                ("postgresql://stopwise@postgres/stopwise", store),
                ("https://api.openai.com/v1", upstream.url),
                ("sample = 0.05", "sample = 1.0"),
            ):
                assert old in text
                text = text.replace(old, new)
            # A local address has no price list: the models keep theirs by name.
            path = tmp_path / f"{port}.toml"
            path.write_text(text, encoding="utf-8")
            made.append(path)
        yield made


def run(command: list[str], config: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """A command of the image, with our own program and configuration."""
    return subprocess.Popen(
        [*STOPWISE, *(str(config) if word.startswith("/etc/") else word for word in command)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def test_three_replicas_by_the_commands_of_the_files(
    configs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "UPSTREAM_KEY": "up-key"}
    monkeypatch.setenv("UPSTREAM_KEY", "up-key")
    serve = image_command("CMD")
    # Without a key nothing listens where others can reach it.
    refused = run(serve, configs[0], environment)
    _, said = refused.communicate(timeout=60)
    assert refused.returncode != 0
    assert "no key exists" in said
    (line,) = re.findall(r"run --rm replica-1 (keys .*)", (DEPLOY / "compose.yaml").read_text())
    for_reading = "keys create /etc/stopwise/service.toml --name reader --scope read"
    making = [run(shlex.split(words), configs[0], environment) for words in (line, for_reading)]
    key, reader = (made.communicate(timeout=60)[0].strip() for made in making)
    processes = [run(serve, config, environment) for config in configs]
    try:
        urls = []
        for config, process in zip(configs, processes, strict=True):
            assert process.stderr is not None
            assert "answers" in process.stderr.readline()
            urls.append(f"http://127.0.0.1:{read_config(config).server.port}")
        for url in urls:
            assert ask(url, "") == 401
            assert ask(url, key) == 200
        check_health(urls[0])
        # All three count into one store, and each reads what the others have counted.
        counted = 'stopwise_live_rounds_total{cascade="support",segment=""} 3.0'
        end = time.monotonic() + 60
        while counted not in metrics(urls[1], reader):
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0, 0]


def check_health(url: str) -> None:
    """The health check of the image, word for word but for the port."""
    (text,) = [rest for word, rest in instructions() if word == "HEALTHCHECK"]
    _, option, code = json.loads(text[text.index("[") :])
    assert option == "-c"
    subprocess.run(
        [sys.executable, option, code.replace("http://127.0.0.1:8600", url)], check=True, timeout=30
    )


def ask(url: str, key: str) -> int:
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(ASK).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {key}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            reply.read()
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def metrics(url: str, key: str) -> str:
    request = urllib.request.Request(f"{url}/metrics", headers={"authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        text: str = reply.read().decode()
    return text
