"""Faults of a PostgreSQL store: the server stopped at once, the connection cut during COMMIT.

    python benchmarks/fault_test.py                        # 30 stops, 300 cuts, 100 kills
    python benchmarks/fault_test.py --durability behind

Three processes write into one database, all of them under the same faults. In the end the database
must hold every round of every process that lived, each exactly once, every acknowledged round of
those that were killed (where ending a round waits), and counters that are exactly those rounds'.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import postgres_server
from kill_test import (
    STAGES,
    Losses,
    acknowledge,
    processes,
    read_acknowledged,
    refuse_gaps,
)

from stopwise import Evidence
from stopwise.live import Learner, PostgresStore, StoreError
from stopwise.live.stores.base import Durability


class CuttingProxy:
    """Stands between a store and its server; cuts connections at COMMIT, now and then.

    Args:
        server: the path of the server's socket.
        rate: how many COMMITs in a hundred are cut: half of them before the server hears of it,
            half after, so that only the answer is lost.
    """

    def __init__(self, server: str, rate: float, seed: int) -> None:
        self._server = server
        self._rate = rate
        self._rng = random.Random(seed)
        self.cut_before = 0
        self.cut_after = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), client, server:
            server.connect(self._server)
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            while data := client.recv(65536):
                if b"COMMIT" in data and self._rng.random() < self._rate:
                    if self._rng.random() < 0.5:
                        self.cut_before += 1
                        return _cut(client, server)
                    # The server is sent the COMMIT and has time to do it; its answer is lost.
                    self.cut_after += 1
                    client.shutdown(socket.SHUT_RD)
                    _reset(client)
                    server.sendall(data)
                    time.sleep(0.02)
                    return _cut(server)
                server.sendall(data)
            return None


def _copy(one: socket.socket, two: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            two.sendall(data)
    _cut(one, two)


def _reset(one: socket.socket) -> None:
    """Close at once, telling the other side that something is wrong."""
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    _cut(one)


def _cut(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@contextlib.contextmanager
def cutting_proxy(url: str, rate: float) -> Iterator[tuple[str, CuttingProxy]]:
    """An address that leads through a proxy."""
    import psycopg

    parts = psycopg.conninfo.conninfo_to_dict(url)
    proxy = CuttingProxy(f"{parts['host']}/.s.PGSQL.{parts['port']}", rate, seed=0)
    try:
        through = {**parts, "host": "127.0.0.1", "port": proxy.port, "sslmode": "disable"}
        yield psycopg.conninfo.make_conninfo(**{**through, "gssencmode": "disable"}), proxy
    finally:
        proxy.close()


def work(url: str, seed: int, folder: Path, durability: Durability) -> None:
    """End rounds until told to stop; acknowledge each; in the end say how many there were."""
    rng = random.Random(seed)
    learner = None
    while learner is None:
        with contextlib.suppress(StoreError):
            store = PostgresStore(url, keep_outputs=True, durability=durability, patience=5)
            learner = Learner(STAGES, "uss-ts", seed=1, store=store)
    file = os.open(folder / f"acknowledged-{seed}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    number = 0
    while not (folder / "stop").exists():
        round = learner.begin()
        for _ in range(round.depth + 1):
            round.observe(rng.choice("xxxy"))
        number += 1
        begun = time.monotonic()
        try:
            round.end()
        except StoreError:  # it stays queued
            time.sleep(0.01)
            continue
        assert round.record is not None
        acknowledge(file, (round.record.writer, round.record.sequence), begun)
        time.sleep(rng.uniform(0, 0.002))
    deadline = time.monotonic() + 60
    while learner.store_status.queued and time.monotonic() < deadline:
        with contextlib.suppress(StoreError):
            learner.flush()
    learner.close()
    (folder / f"done-{seed}").write_text(str(number - learner.store_status.unrecorded))


class Writers:
    """Processes that write into one database."""

    def __init__(self, url: str, folder: Path, durability: Durability, number: int = 3) -> None:
        self._settings = (url, folder, durability)
        self._folder = folder
        self._children: dict[Any, Any] = {}
        self._next = 0
        self.killed: dict[int, float] = {}  # when each was
        for _ in range(number):
            self.start()

    def start(self) -> None:
        url, folder, durability = self._settings
        child = processes().Process(target=work, args=(url, self._next, folder, durability))
        child.start()
        self._children[self._next] = child
        self._next += 1

    def kill(self, rng: random.Random) -> None:
        """Kill one that has begun to write, and start another."""
        seed = rng.choice(sorted(self._children))
        told = self._folder / f"acknowledged-{seed}"
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (told.exists() and told.stat().st_size):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.3))  # until some rounds are kept and some are not
        child = self._children.pop(seed)
        self.killed[seed] = time.monotonic()
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        self.start()

    def finish(self) -> list[int]:
        """Let all end; how many rounds each of those that lived has ended."""
        (self._folder / "stop").touch()
        for seed, child in self._children.items():
            child.join(120)
            assert child.exitcode == 0, f"process {seed} ended with {child.exitcode}"
        return [int((self._folder / f"done-{seed}").read_text()) for seed in self._children]


def check(
    url: str,
    folder: Path,
    lived: list[int],
    durability: Durability,
    killed: Mapping[int, float] = MappingProxyType({}),
) -> str:
    """All rounds, each once; counters exactly those of the rounds."""
    store = PostgresStore(url, keep_outputs=True)
    learner = Learner(STAGES, "uss-ts", seed=1, store=store)
    records = list(store.read_rounds())
    names = [(record.writer, record.sequence) for record in records]
    assert len(set(names)) == len(names), "a round is there twice"
    expected = Evidence.from_prefixes(3, [list(record.outputs or ()) for record in records])
    assert learner.evidence() == expected, "the counters are not those of the rounds"
    assert learner.rounds == len(records)
    learner.close()
    number, losses = 0, Losses()
    for file in folder.glob("acknowledged-*"):
        seed = int(file.name.split("-")[1])
        acknowledged = read_acknowledged(file)
        number += len(acknowledged)
        lost = set(acknowledged) - set(names)
        refuse_gaps(lost, names)
        if seed in killed:
            losses.add(killed[seed], [acknowledged[name] for name in lost])
        if durability == "round" or seed not in killed:
            assert not lost, f"{len(lost)} acknowledged rounds are lost"
    if not killed:
        assert len(records) == sum(lived), f"{len(records)} of {sum(lived)} rounds are there"
    return f"{len(records)} rounds, {number} acknowledged, none twice; {losses}"


def stopped_at_once(
    server: postgres_server.Server, folder: Path, durability: Durability, stops: int
) -> str:
    """Stop the server with `immediate` while three processes write."""
    rng = random.Random(1)
    url = server.new_database()
    writers = Writers(url, folder, durability)
    for _ in range(stops):
        time.sleep(rng.uniform(0.2, 0.8))
        server.stop("immediate")
        server.start()
    time.sleep(0.3)
    return check(url, folder, writers.finish(), durability)


def cut_during_commit(
    server: postgres_server.Server, folder: Path, durability: Durability, cuts: int
) -> str:
    """Cut connections before or after the server has heard of a COMMIT."""
    url = server.new_database()
    with cutting_proxy(url, 0.2) as (through, proxy):
        writers = Writers(through, folder, durability)
        deadline = time.monotonic() + 300
        while proxy.cut_before + proxy.cut_after < cuts and time.monotonic() < deadline:
            time.sleep(0.02)
        proxy._rate = 0.0
        lived = writers.finish()
        counted = f"{proxy.cut_before} cut before the COMMIT, {proxy.cut_after} after; "
    return counted + check(url, folder, lived, durability)


def killed(server: postgres_server.Server, folder: Path, durability: Durability, kills: int) -> str:
    """Kill one of three processes, again and again, and start another."""
    rng = random.Random(2)
    url = server.new_database()
    writers = Writers(url, folder, durability)
    for _ in range(kills):
        time.sleep(rng.uniform(0, 0.05))
        writers.kill(rng)
    return check(url, folder, writers.finish(), durability, writers.killed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--durability", choices=["round", "behind"], default="round")
    parser.add_argument("--stops", type=int, default=30)
    parser.add_argument("--cuts", type=int, default=300)
    parser.add_argument("--kills", type=int, default=100)
    options = parser.parse_args()
    tests = {
        f"{options.stops} immediate stops": (stopped_at_once, options.stops),
        f"{options.cuts} cuts": (cut_during_commit, options.cuts),
        f"{options.kills} kills of one in three": (killed, options.kills),
    }
    with postgres_server.server() as server:
        for name, (test, number) in tests.items():
            if number:
                with tempfile.TemporaryDirectory() as folder:
                    said = test(server, Path(folder), options.durability, number)
                print(f"{name}, {options.durability}: {said}", flush=True)


if __name__ == "__main__":
    main()
