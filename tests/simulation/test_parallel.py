"""The same call on a Dask cluster: a real scheduler and two worker processes on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from instances import instance
from stopwise import StopwiseError, simulate
from stopwise.policies.uss_ts import UssTs

HERE = Path(__file__).parent
TESTS = HERE.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    places = [str(HERE), str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@dataclass
class Cluster:
    address: str
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    started = [
        start(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port),
            "--no-dashboard",
        )
    ]  # fmt: skip
    started += [
        start(
            "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
            "--no-dashboard", "--host", "127.0.0.1",
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        wait_for_workers(address, 2)
        yield Cluster(address, started[1:])
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def wait_for_workers(address: str, number: int) -> None:
    from distributed import Client

    for _ in range(100):
        try:
            with Client(address, timeout=2, set_as_default=False) as client:
                client.wait_for_workers(number, timeout=60)
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("no cluster")


def assert_same(one: Any, two: Any) -> None:
    assert one.to_dict() == two.to_dict()
    assert np.array_equal(one.finals, two.finals)
    assert np.array_equal(one.stage_counts, two.stage_counts)


def test_same_bits_as_at_home(cluster: Cluster) -> None:
    for policy, engine in (("uss-ts", "fast"), ("uss-ucb", "fast"), ("uss-ts", "reference")):
        replications = 700 if engine == "fast" else 40
        settings = {"horizon": 300, "replications": replications, "seed": 3, "engine": engine}
        home = simulate(instance("pima-1"), policy, **settings)
        away = simulate(
            instance("pima-1"), policy, backend="dask", scheduler=cluster.address, **settings
        )
        assert_same(home, away)


@dataclass(frozen=True)
class Slow(UssTs):
    """Takes its time, so that a worker can be killed while it works."""

    def draw(self, *arguments: Any) -> int:
        time.sleep(0.002)
        return super().draw(*arguments)


def test_a_worker_killed_in_the_middle(cluster: Cluster) -> None:
    settings = {"horizon": 10, "replications": 24 * 16, "seed": 3, "engine": "reference"}
    home = simulate(instance("heart-1"), UssTs(), **settings)
    victim = cluster.workers[0]

    def kill() -> None:
        os.kill(victim.pid, signal.SIGKILL)

    timer = threading.Timer(1.5, kill)
    timer.start()
    away = simulate(
        instance("heart-1"), Slow(), backend="dask", scheduler=cluster.address, **settings
    )
    timer.join()
    assert victim.wait(timeout=10) == -signal.SIGKILL
    assert np.array_equal(home.stage_counts, away.stage_counts)
    assert home.regret == away.regret


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"horizon": 10, "replications": 1}
    problem = instance("bsc-1")
    with pytest.raises(StopwiseError, match="backend: got 'spark', but need 'auto', 'threads'"):
        simulate(problem, "fixed", backend="spark", **settings)
    with pytest.raises(StopwiseError, match="scheduler: got None, but need the address"):
        simulate(problem, "fixed", backend="dask", **settings)
    with pytest.raises(StopwiseError, match='of use with backend "dask" only'):
        simulate(problem, "fixed", scheduler="tcp://127.0.0.1:1", **settings)
    for nowhere in (f"tcp://127.0.0.1:{free_port()}", "what://"):
        with pytest.raises(StopwiseError, match="no Dask scheduler answers at"):
            simulate(problem, "fixed", backend="dask", scheduler=nowhere, **settings)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StopwiseError, match=r"pip install 'stopwise\[cluster\]'"):
        simulate(problem, "fixed", backend="dask", scheduler="tcp://127.0.0.1:1", **settings)


def test_processes_and_threads_give_the_same_bits() -> None:
    settings = {"horizon": 50, "replications": 130, "seed": 3}
    runs = [
        simulate(instance("pima-1"), "uss-ts", jobs=2, backend=backend, **settings)
        for backend in ("auto", "threads", "processes")
    ]
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])
