"""What the service adds: latency and requests a second, against the same upstream called directly.

    python benchmarks/service_load.py
    python benchmarks/service_load.py --litellm VENV/bin/litellm   # with LiteLLM's proxy

One upstream answers at once, in a process of its own; the client and the upstream share one core,
what is measured has the other one. Every way gets the same requests at the same concurrency, in
turn, several times; medians over the turns are reported. Stopwise and LiteLLM both check a key.
What the processor spends on a request is reported too, since that is fair on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

HERE = Path(__file__).parent
ANSWER = {
    "id": "up", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "The same words."},
                 "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
}  # fmt: skip
BODY = {"messages": [{"role": "user", "content": "What is the capital of Italy? " * 10}]}


def pin(core: int) -> None:
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {core})


def start(command: list[str], quiet: bool = False, **extra: str) -> subprocess.Popen[bytes]:
    """Start what is measured, on a core of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    out = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(
        command, stdout=out, stderr=out, env=(environment if quiet else dict(os.environ)) | extra
    )
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(process.pid, {0})
    return process


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def upstream(port: int, think: float) -> None:
    """An OpenAI-compatible server that always says the same, after `think` seconds."""
    pin(1)
    text = json.dumps(ANSWER).encode()

    async def chat(request: web.Request) -> web.Response:
        await request.read()
        if think:
            await asyncio.sleep(think)
        return web.Response(body=text, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


def stopwise_config(folder: Path, port: int, up: int, **cascade: Any) -> Path:
    fields = "\n".join(f"{name} = {json.dumps(value)}" for name, value in cascade.items())
    stages = "\n".join(
        f'[[cascades.bench.stages]]\nname = "{name}"\nbase_url = "http://127.0.0.1:{up}/v1"\n'
        f'model = "{name}"\nprice = {{ input = {price}, output = {4 * price} }}\n'
        for name, price in (("small", 0.1), ("large", 2.0))
    )
    path = folder / "service.toml"
    path.write_text(
        f'[server]\nlisten = "127.0.0.1:{port}"\nlog_level = "warning"\n'
        f"[cascades.bench]\nmistake_cost = 0.01\n{fields}\n{stages}"
    )
    return path


def litellm_config(folder: Path, up: int) -> Path:
    path = folder / "litellm.yaml"
    path.write_text(
        "model_list:\n  - model_name: bench\n    litellm_params:\n      model: openai/m\n"
        f"      api_base: http://127.0.0.1:{up}/v1\n      api_key: none\n"
    )
    return path


async def load(url: str, key: str, requests: int, concurrency: int) -> tuple[list[float], float]:
    """Seconds of every request, and requests a second."""
    seconds: list[float] = []
    body = json.dumps({"model": "bench", **BODY}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def worker(count: int) -> None:
            for _ in range(count):
                began = time.perf_counter()
                async with session.post(url, data=body, headers=headers) as response:
                    await response.read()
                    if response.status != 200:
                        raise RuntimeError(f"{url}: {response.status}")
                seconds.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(worker(requests // concurrency) for _ in range(concurrency)))
        return seconds, len(seconds) / (time.perf_counter() - began)


async def wait_for(url: str, limit: float = 120.0) -> None:
    end = time.monotonic() + limit
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < end:
            try:
                async with session.get(url) as response:
                    if response.status < 500:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)
    raise RuntimeError(f"{url} did not start")


def cpu_seconds(pid: int) -> float:
    """What a process and its children used of the processor so far: fair on a busy machine too."""
    import psutil

    total = 0.0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        times = process.cpu_times()
        total += times.user + times.system
    return float(total)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


WAYS = {
    "passed through (shadow, not sampled)": {"mode": "shadow", "sample": 0.0},
    "enforced, first stage (counted and written)": {
        "mode": "enforce", "policy": "fixed:stage=0", "full_run_rate": 0.0,
    },
    "compared (shadow, every request: two calls)": {"mode": "shadow", "sample": 1.0},
}  # fmt: skip


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    up = free_port()
    server = multiprocessing.get_context("spawn").Process(
        target=upstream, args=(up, args.think), daemon=True
    )
    server.start()
    pin(1)
    processes: list[subprocess.Popen[bytes]] = []
    pids: dict[str, int] = {}
    keys = {"direct": "none"}
    urls = {"direct": f"http://127.0.0.1:{up}/v1/chat/completions"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            await wait_for(f"http://127.0.0.1:{up}/")
            for at, (name, cascade) in enumerate(WAYS.items()):
                own = Path(folder) / str(at)
                own.mkdir()
                port = free_port()
                config = str(stopwise_config(own, port, up, **cascade))
                run = [sys.executable, "-m", "stopwise"]
                made = subprocess.run(
                    [*run, "keys", "create", config, "--name", "bench"],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
                keys[name] = made.stdout.strip()
                command = [*run, "serve", config]
                processes.append(start(command))
                await wait_for(f"http://127.0.0.1:{port}/healthz")
                urls[name] = f"http://127.0.0.1:{port}/v1/chat/completions"
                pids[name] = processes[-1].pid
            if args.litellm:
                port = free_port()
                config = str(litellm_config(Path(folder), up))
                command = [args.litellm, "--config", config, "--host", "127.0.0.1"]
                command += ["--port", str(port), "--num_workers", "1"]
                keys["LiteLLM proxy"] = f"sk-{secrets.token_hex(24)}"
                own_key = {"LITELLM_MASTER_KEY": keys["LiteLLM proxy"]}
                processes.append(
                    start(command, quiet=True, LITELLM_LOCAL_MODEL_COST_MAP="True", **own_key)
                )
                await wait_for(f"http://127.0.0.1:{port}/health/liveliness")
                urls["LiteLLM proxy"] = f"http://127.0.0.1:{port}/v1/chat/completions"
                pids["LiteLLM proxy"] = processes[-1].pid
            return await turns(urls, keys, pids, args)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(30)
            server.terminate()


async def turns(
    urls: dict[str, str], keys: dict[str, str], pids: dict[str, int], args: argparse.Namespace
) -> dict[str, Any]:
    spent: dict[str, list[float]] = {name: [] for name in urls}
    single: dict[str, list[tuple[float, float]]] = {name: [] for name in urls}
    many: dict[str, list[float]] = {name: [] for name in urls}
    for name, url in urls.items():
        await load(url, keys[name], 64, 8)  # warm
    for _ in range(args.turns):
        for name, url in urls.items():
            seconds, _ = await load(url, keys[name], args.requests // 4, 1)
            single[name].append((percentile(seconds, 0.5), percentile(seconds, 0.99)))
            before = cpu_seconds(pids[name]) if name in pids else 0.0
            done, rate = await load(url, keys[name], args.requests, args.concurrency)
            many[name].append(rate)
            if name in pids:
                spent[name].append((cpu_seconds(pids[name]) - before) / len(done))
    middle = statistics.median
    rows = {}
    base = [middle(pair[at] for pair in single["direct"]) for at in (0, 1)]
    for name in urls:
        p50, p99 = (middle(pair[at] for pair in single[name]) for at in (0, 1))
        rows[name] = {
            "p50_ms": 1e3 * p50,
            "p99_ms": 1e3 * p99,
            "added_p50_ms": 1e3 * (p50 - base[0]),
            "added_p99_ms": 1e3 * (p99 - base[1]),
            "requests_per_second": middle(many[name]),
            "cpu_ms_per_request": 1e3 * middle(spent[name]) if spent[name] else None,
        }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--think", type=float, default=0.0, help="seconds that the upstream takes")
    parser.add_argument("--litellm", help="the litellm command of another environment")
    parser.add_argument("--out", type=Path, default=HERE / "service_load.json")
    args = parser.parse_args()
    rows = asyncio.run(measure(args))
    python = platform.python_version()
    form = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {python}",
        "requests": args.requests,
        "concurrency": args.concurrency,
        "turns": args.turns,
        "upstream_seconds": args.think,
        "ways": rows,
    }
    args.out.write_text(json.dumps(form, indent=2) + "\n")
    width = max(map(len, rows))
    print(f"{'':{width}}  p50 ms  p99 ms  added p50  added p99  requests/s  CPU ms")
    for name, row in rows.items():
        print(
            f"{name:{width}}  {row['p50_ms']:6.2f}  {row['p99_ms']:6.2f}"
            f"  {row['added_p50_ms']:9.2f}  {row['added_p99_ms']:9.2f}"
            f"  {row['requests_per_second']:10.0f}  {row['cpu_ms_per_request'] or 0:6.2f}"
        )


if __name__ == "__main__":
    main()
