"""Real clients, unchanged, against the service: `make clients`, or

    python benchmarks/clients.py                     # makes .venv-clients if it is not there
    python benchmarks/clients.py --python PYTHON     # an environment that has the clients

openai, langchain-openai, litellm and instructor ask plainly and streamed, with usage, tools, a JSON
schema and two choices, and are shown errors and slow answers. The model behind the service does
what the question says. Fails if any check does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import venv
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

from aiohttp import web

from stopwise.service.config.reading import config_of
from stopwise.service.core import Service
from stopwise.service.serving import serve_until

HERE = Path(__file__).parent
ROOT = HERE.parent
NAMES = ("openai", "langchain-openai", "litellm", "instructor")
CHECKS = ("plain", "streamed", "usage", "tools", "JSON schema", "n = 2", "errors", "timeouts")
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
ROME = '{"city": "Rome"}'


def message_of(body: dict[str, Any]) -> dict[str, Any]:
    """What the model says: a call of the tool it was given, JSON, or three words."""
    text = body["messages"][-1]["content"]
    if body.get("tools") and "tool" in text:
        name = body["tools"][0]["function"]["name"]
        call = {"id": "1", "type": "function", "function": {"name": name, "arguments": ROME}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    content = ROME if text == "json" else "three plain words"
    return {"role": "assistant", "content": content}


async def chat(request: web.Request) -> web.StreamResponse:
    """An upstream that does what the question says."""
    body = await request.json()
    text = str(body["messages"][-1]["content"])
    if text == "slow":
        await asyncio.sleep(2)
        if request.transport is None or request.transport.is_closing():
            return web.Response()  # nobody waits any more
    if text.startswith("status "):
        error = {"message": "as asked for", "type": "test", "param": None, "code": None}
        return web.json_response({"error": error}, status=int(text.removeprefix("status ")))
    message = message_of(body)
    finish = "tool_calls" if "tool_calls" in message else "stop"
    head = {"id": "up", "created": 1, "model": body["model"]}
    if not body.get("stream"):
        choices = [
            {"index": at, "message": message, "finish_reason": finish}
            for at in range(body.get("n") or 1)
        ]
        form = {**head, "object": "chat.completion", "choices": choices, "usage": USAGE}
        return web.json_response(form)
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    head["object"] = "chat.completion.chunk"
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if "tool_calls" in message:
        call = message["tool_calls"][0]
        half = {**call, "index": 0, "function": {**call["function"], "arguments": ROME[:5]}}
        deltas += [
            {"tool_calls": [half]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ROME[5:]}}]},
        ]
    else:
        deltas += [{"content": part} for part in message["content"].partition(" ")]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": USAGE})
    for number, chunk in enumerate(chunks):
        if text == "break off" and number == 2:
            assert request.transport is not None
            request.transport.abort()
            return response
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def environment(folder: Path) -> Path:
    """The environment of the clients, made if it is not there; its Python."""
    listed = ROOT / "requirements" / "clients.lock"
    wanted = listed.read_text()
    done, python = folder / "installed.txt", folder / "bin" / "python"
    if not done.exists() or done.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        install = ["-m", "pip", "install", "-q", "--require-hashes", "--no-deps", "-r"]
        subprocess.run([str(python), *install, str(listed)], check=True)
        done.write_text(wanted)
    return python


async def run_checks(python: str) -> dict[str, dict[str, str]]:
    """Everything that went wrong, by client and check; empty where nothing did."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    up = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    stages = [
        {"name": name, "base_url": up, "model": name, "price": {"input": price, "output": price}}
        for name, price in (("small", 1), ("large", 10))
    ]
    cascade = {"mode": "shadow", "sample": 1.0, "mistake_cost": 0.01, "stages": stages}
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        listen = f"127.0.0.1:{_free_port()}"
        form = {"server": {"listen": listen}, "cascades": {"support": cascade}}
        service = Service(config_of(form, Path(folder)))
        stop, ready = asyncio.Event(), asyncio.Event()
        serving = asyncio.create_task(serve_until(service, stop, lambda service: ready.set()))
        await asyncio.wait_for(ready.wait(), 30)
        try:
            for name in NAMES:
                found[name] = await _run_one(python, name, f"http://{listen}/v1")
        finally:
            stop.set()
            await serving
            await runner.cleanup()
    return found


async def _run_one(python: str, name: str, url: str) -> dict[str, str]:
    process = await asyncio.create_subprocess_exec(
        python, str(HERE / "client_checks.py"), name, url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        # Or litellm would ask the network for prices.
        env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )  # fmt: skip
    out, error = await asyncio.wait_for(process.communicate(), 300)
    lines = [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")]
    found = {line["what"]: line["wrong"] for line in lines}
    if process.returncode:
        found["plain"] = f"it broke off: {error.decode()[-300:]}"
    return found


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def versions(python: str) -> dict[str, str]:
    """Of the clients in an environment."""
    code = (
        "import sys; from importlib.metadata import version;"
        "print(*(version(name) for name in sys.argv[1:]))"
    )
    told = subprocess.run([python, "-c", code, *NAMES], capture_output=True, text=True, check=False)
    if told.returncode:
        raise PackageNotFoundError(told.stderr.strip().splitlines()[-1])
    return dict(zip(NAMES, told.stdout.split(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", help="of an environment that has the clients")
    given = parser.parse_args()
    python = given.python or str(environment(ROOT / ".venv-clients"))
    known = versions(python)
    found = asyncio.run(run_checks(python))
    failed = 0
    sys.stdout.write(f"| client | {' | '.join(CHECKS)} |\n|---{'|---' * len(CHECKS)}|\n")
    for name, results in found.items():
        cells = ["–" if c not in results else "no" if results[c] else "yes" for c in CHECKS]
        sys.stdout.write(f"| {name} {known[name]} | {' | '.join(cells)} |\n")
    for name, results in found.items():
        for what, wrong in results.items():
            if wrong:
                failed += 1
                sys.stdout.write(f"{name}, {what}: {wrong}\n")
    if failed:
        raise SystemExit(f"{failed} checks failed")


if __name__ == "__main__":
    main()
