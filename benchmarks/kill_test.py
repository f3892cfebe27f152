"""Nothing is lost: SIGKILL at random moments, and many processes on one file.

    python benchmarks/kill_test.py                # 300 kills for each store, then 8 x 10,000 rounds
    python benchmarks/kill_test.py --durability behind

A child ends rounds one after another and, after each, writes the round's name to a file: that is
the acknowledgement. The parent kills it at a random moment, opens the store as a restart would, and
checks that every acknowledged round is there, none is there twice, and that the counters are
exactly those of the rounds that are there. Where rounds are written behind, those of the last flush
interval may be missing: the last ones of the writer, and no others. How long before the kill the
oldest of them was acknowledged, and how long before the newest, is measured and printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import postgres_server

from stopwise import Evidence
from stopwise.live import Learner, PostgresStore, RoundLog, SqliteStore
from stopwise.live.stores.base import Durability, Store

Name = tuple[int, int]  # writer and sequence
STAGES = {"a": 0.0, "b": 0.1, "c": 0.1}


def store_of(folder: Path, kind: str, durability: Durability = "round") -> Store:
    """A store by its kind; that of PostgreSQL is the address of the server, and a cascade each."""
    if kind == "log":
        return RoundLog(folder / "rounds.jsonl", keep_outputs=True, durability=durability)
    if kind == "sqlite":
        return SqliteStore(folder / "rounds.db", keep_outputs=True, durability=durability)
    return PostgresStore(kind, cascade=folder.name, keep_outputs=True, durability=durability)


def processes() -> multiprocessing.context.ForkServerContext:
    """Children of a server without threads: forking a process that has some is not safe."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["stopwise.live", "scipy.special"])
    return context


def work(
    folder: Path, kind: str, seed: int, acknowledgements: Path, durability: Durability
) -> None:
    """End rounds for ever; acknowledge each."""
    file = os.open(acknowledgements, os.O_WRONLY | os.O_APPEND)
    rng = random.Random(seed)
    learner = Learner(STAGES, seed=1, store=store_of(folder, kind, durability))
    while True:
        round = learner.begin()
        for _ in range(round.depth + 1):
            round.observe(rng.choice("xxxy"))
        begun = time.monotonic()  # this clock is the same in all processes of a machine
        round.end()
        acknowledge(file, (learner._books.writer, round.sequence), begun)


def acknowledge(file: int, name: Name, begun: float) -> None:
    """Note that a round has ended, and when ending it began."""
    times = f"{begun:.6f} {time.monotonic():.6f}"
    os.write(file, f"{name[0]} {name[1]} {times}\n".encode())


def kill_often(
    folder: Path,
    kind: str,
    *,
    kills: int,
    seed: int,
    durability: Durability = "round",
    one_store: int = 10,
) -> tuple[int, Losses]:
    """Kill a child `kills` times; raise AssertionError at the first loss that may not be.

    After `one_store` kills another store is begun, lest reading it again take most of the time.
    Returns how many acknowledged rounds are there, and which are not.
    """
    rng = random.Random(seed)
    acknowledged: Acknowledged = {}
    losses = Losses()
    context = processes()
    kept = 0
    for kill in range(kills):
        if kill % one_store == 0:
            kept += len(acknowledged)
            acknowledged = {}
            folder = folder.parent / f"{folder.name.split('-')[0]}-{kill}"
            folder.mkdir()
        told = folder / f"acknowledged-{kill}"
        told.touch()
        child = context.Process(
            target=work, args=(folder, kind, rng.randrange(2**32), told, durability)
        )
        child.start()
        if kill % one_store != one_store - 1:  # the last may be killed while it opens the store
            while not told.stat().st_size and child.is_alive():
                time.sleep(0.001)
        # Behind, most kills come when some rounds are kept and some are not.
        time.sleep(rng.uniform(0, 0.02 if durability == "round" else 0.3))
        killed = time.monotonic()
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        assert child.exitcode == -signal.SIGKILL, "the child ended by itself"
        for name, at in read_acknowledged(told).items():
            assert name not in acknowledged, f"{name} was given out twice"
            acknowledged[name] = at
        lost = check(folder, kind, acknowledged, durability)
        losses.add(killed, [acknowledged.pop(name) for name in lost])
    return kept + len(acknowledged), losses


Times = tuple[float, float]  # when ending a round began, and when it was acknowledged
Acknowledged = dict[Name, Times]


def read_acknowledged(file: Path) -> Acknowledged:
    """What a child has acknowledged; a line cut short was not."""
    lines = [line.split() for line in file.read_text().split("\n")[:-1]]
    return {(int(name[0]), int(name[1])): (float(a), float(b)) for *name, a, b in lines}


class Losses:
    """Acknowledged rounds that were lost to kills, and how old they were."""

    def __init__(self) -> None:
        self.rounds = 0
        self.kills = 0
        self.ages: list[float] = []  # of the oldest at each kill
        self.spans: list[float] = []  # from the oldest to the newest at each kill
        # The same less the time that ending the newest took: a process that had to wait for its
        # turn between ending a round and looking at the clock does not count here.
        self.sure: list[float] = []

    def add(self, killed: float, lost: Iterable[Times]) -> None:
        """Note which rounds one kill has cost, by when they ended."""
        times = sorted(lost)
        self.kills += 1
        self.rounds += len(times)
        if times:
            oldest = min(at for _, at in times)
            self.ages.append(killed - oldest)
            self.spans.append(max(at for _, at in times) - oldest)
            self.sure.append(max(times[-1][0] - oldest, 0.0))

    def __str__(self) -> str:
        if not self.rounds:
            return "none lost"
        ages = sorted(self.ages)
        return (
            f"{self.rounds} lost at {len(ages)} of {self.kills} kills, each time the last ones;"
            f" the oldest were acknowledged {1000 * max(ages):.0f} ms before the kill at most"
            f" (half of the times {1000 * ages[len(ages) // 2]:.0f} ms, nine in ten"
            f" {1000 * ages[len(ages) * 9 // 10]:.0f} ms) and {1000 * max(self.spans):.0f} ms"
            f" before the newest, {1000 * max(self.sure):.0f} ms before ending the newest began"
        )


def refuse_gaps(lost: Iterable[Name], names: Iterable[Name]) -> None:
    """Rounds may be lost only where no later one of the same writer is there."""
    newest: dict[int, int] = {}
    for writer, sequence in names:
        newest[writer] = max(newest.get(writer, 0), sequence)
    for writer, sequence in lost:
        assert sequence > newest.get(writer, 0), "a round is lost that is not among the last"


def check(folder: Path, kind: str, acknowledged: Acknowledged, durability: Durability) -> set[Name]:
    """Open the store as a restart would; return the acknowledged rounds that are not there."""
    store = store_of(folder, kind)
    learner = Learner(STAGES, seed=1, store=store)
    records = list(store.read_rounds())
    names = [(record.writer, record.sequence) for record in records]
    assert len(set(names)) == len(names), "a round is there twice"
    lost = set(acknowledged) - set(names)
    if durability == "round":
        assert not lost, "an acknowledged round is lost"
    refuse_gaps(lost, names)
    expected = Evidence.from_prefixes(3, [list(record.outputs or ()) for record in records])
    assert learner.evidence() == expected, "the counters are not those of the rounds"
    assert learner.rounds == len(records)
    learner.close()
    return lost


def write_rounds(folder: Path, number: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    learner = Learner(STAGES, seed=1, store=SqliteStore(folder / "shared.db", patience=600))
    counted = Evidence(3)
    for _ in range(number):
        round = learner.begin()
        outputs = rng.integers(0, 3, round.depth + 1).tolist()
        for output in outputs:
            round.observe(output)
        round.end()
        counted.add(outputs)
    learner.close()
    (folder / f"{seed}.json").write_text(counted.to_json())


def write_together(folder: Path, *, number: int, rounds: int) -> None:
    """Let processes write into one file at once; the counts must be exactly the sums."""
    context = processes()
    children = [
        context.Process(target=write_rounds, args=(folder, rounds, seed)) for seed in range(number)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    total = Evidence(3)
    for seed in range(number):
        total.merge(Evidence.from_json((folder / f"{seed}.json").read_text()))
    learner = Learner(STAGES, seed=1, store=SqliteStore(folder / "shared.db"))
    assert learner.rounds == number * rounds, f"{learner.rounds} rounds are there"
    assert learner.evidence() == total, "the counts are not the sums"
    learner.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--durability", choices=["round", "behind"], default="round")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=10_000)
    options = parser.parse_args()
    with postgres_server.server() as server:
        kinds = {"log": "log", "sqlite": "sqlite", "postgres": server.new_database()}
        for name, kind in kinds.items():
            with tempfile.TemporaryDirectory() as folder:
                kept, losses = kill_often(
                    Path(folder) / name, kind, kills=options.kills, seed=0,
                    durability=options.durability,
                )  # fmt: skip
            print(
                f"{name}, {options.durability}: {options.kills} kills, {kept} acknowledged rounds"
                f" are there, none twice; {losses}",
                flush=True,
            )
    if not options.processes:
        return
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        write_together(Path(folder), number=options.processes, rounds=options.rounds)
        seconds = time.perf_counter() - start
    print(
        f"sqlite: {options.processes} processes x {options.rounds} rounds: the counts are exactly"
        f" the sums ({seconds:.0f} s)"
    )


if __name__ == "__main__":
    main()
