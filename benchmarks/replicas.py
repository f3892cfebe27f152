"""Three replicas on one PostgreSQL, killed and cut off under load: is every round counted once?

    python benchmarks/replicas.py                                # 100,000 rounds, some minutes
    python benchmarks/replicas.py --rounds 3000 --kills 2 --stops 1 --both 1

Clients ask chat completions of the replicas in turn, and hold rounds over the API that they end at
two replicas at the same time. Meanwhile replicas are killed (SIGKILL) and started again, the server
of the database is stopped (`immediate`) and started again, and some replicas are killed while it is
stopped. At the end what the clients have seen is held against what the store has: rows, sums by
the hour, counters of evidence. Of answers whose rounds are lost in a kill, all must have been given
within one flush interval; with `--away answer` also those given while the database was stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import postgres_server
from aiohttp import web
from psycopg.conninfo import conninfo_to_dict

from stopwise.service.config.reading import read_config
from stopwise.service.core import Service

FLUSH = 0.1  # seconds: the flush interval of a replica
CONFIG = """
[server]
listen = "127.0.0.1:{port}"
store = "{store}"
log_level = "error"
keep = "nothing"
store_away = "{away}"
[cascades.support]
mode = "advise"
mistake_cost = 0.01
[[cascades.support.stages]]
name = "small"
base_url = "{url}"
model = "small"
price = {{ input = 1, output = 4 }}
[[cascades.support.stages]]
name = "large"
base_url = "{url}"
model = "large"
price = {{ input = 10, output = 40 }}
"""


def new_store(postgres: postgres_server.Server) -> str:
    """A database of its own, as a configuration names it."""
    parts = conninfo_to_dict(postgres.new_database())
    name = parts.pop("dbname")
    return f"postgresql:///{name}?{urlencode(parts)}"


class Replica:
    """One process of the service."""

    def __init__(self, folder: Path, store: str, url: str, away: str = "answer") -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        self.config = folder / f"{self.port}.toml"
        self.config.write_text(CONFIG.format(port=self.port, store=store, url=url, away=away))
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        source = str(Path(__file__).parents[1] / "src")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stopwise", "serve", str(self.config)],
            stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": source},
        )  # fmt: skip
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert "answers" in line, line

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> None:
        """End it in order."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                self.kill()


async def upstream() -> tuple[web.AppRunner, str]:
    """Both models: the small one is wrong about every third question."""

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        number = int(body["messages"][0]["content"])
        text = "no" if body["model"] == "small" and number % 3 == 0 else "yes"
        return web.json_response(
            {"id": "u", "object": "chat.completion", "created": 1, "model": "u",
             "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                          "finish_reason": "stop"}],
             "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}}
        )  # fmt: skip

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"


@dataclass
class Seen:
    """What the clients have seen.

    Attributes:
        answered: of every round answered: when, and by which replica.
        ended: rounds over the API whose end was acknowledged.
        replies: how often each kind of reply came.
        improper: replies that are neither an answer nor an error in the protocol's form.
        kills: when each replica was seen to be gone, and since when the database was stopped
            then, if it was: (time, replica, time or None).
    """

    answered: dict[str, tuple[float, int]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    replies: Counter[str] = field(default_factory=Counter)
    improper: list[str] = field(default_factory=list)
    kills: list[tuple[float, int, float | None]] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    """What the store has, held against what the clients have seen.

    Attributes:
        lost: rounds that were answered and are not in the store; `oldest_lost`: how many seconds
            before the end of their replica they were answered at most; `window_lost`: within how
            many seconds those lost in one kill were answered, by the clock of the clients; without
            those of kills while the database was stopped, which are `lost_while_stopped`.
        ended_lost: the same for rounds whose end over the API was acknowledged.
        unheard: rounds in the store whose reply never reached the client.
        problems: whatever should not be.
    """

    answered: int
    ended: int
    rows: int
    summed: int
    counted: int
    lost: int
    ended_lost: int
    unheard: int
    oldest_lost: float
    window_lost: float
    lost_while_stopped: int
    window_while_stopped: float
    kills: int
    stops: int
    both: int
    replies: dict[str, int]
    problems: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Plan:
    """How much trouble there is: kills, stops of the database, and kills while it is stopped.

    Attributes:
        away: what replicas do while the database is stopped: "answer" or "refuse".
    """

    kills: int
    stops: int
    both: int = 0
    away: str = "refuse"


class Clients:
    """Clients that ask the replicas in turn and go to the next one where one is gone."""

    def __init__(self, replicas: list[Replica], session: aiohttp.ClientSession) -> None:
        self.replicas = replicas
        self.seen = Seen()
        self._session = session
        self.next = 0

    async def _post(self, at: int, path: str, **more: Any) -> tuple[int, Any, Any]:
        """Status (0: the connection was closed or refused), body and headers."""
        url = self.replicas[at % len(self.replicas)].url + path
        try:
            async with self._session.post(url, **more) as reply:
                body = await reply.json()
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
            self.seen.replies["connection closed"] += 1
            return 0, None, {}
        except (TimeoutError, ValueError) as error:
            self.seen.improper.append(f"{path}: {type(error).__name__}")
            return 0, None, {}
        self.seen.replies[str(reply.status)] += 1
        if reply.status >= 400 and not isinstance(body.get("error", {}).get("message"), str):
            self.seen.improper.append(f"{path}: {reply.status} {body}")
        return reply.status, body, reply.headers

    async def ask(self, number: int) -> None:
        """One question, asked until it is answered."""
        body = {"model": "support", "messages": [{"role": "user", "content": str(number)}]}
        for attempt in range(60):
            at = (number + attempt) % len(self.replicas)
            status, _, headers = await self._post(at, "/v1/chat/completions", json=body)
            if status == 200:
                self.seen.answered[headers["x-stopwise-round"]] = (time.monotonic(), at)
                return
            await asyncio.sleep(0.05 * min(attempt, 10))
        self.seen.improper.append(f"question {number} was never answered")

    async def hold(self, number: int) -> None:
        """One round over the API; its end is sent to two replicas at the same time."""
        base = "/api/v1/cascades/support/rounds"
        begun = await self._insist(number, base, {"idempotency-key": f"r{number}"}, {})
        if begun is None:
            return
        name = begun["round"]
        for stage in begun["stages"]:
            output = "no" if stage == "small" and number % 3 == 0 else "yes"
            form = {"stage": stage, "output": output}
            await self._insist(number, f"{base}/{name}/outputs", {}, form)
        ends = await asyncio.gather(
            *(self._insist(number + more, f"{base}/{name}/end", {}, {}) for more in (0, 1))
        )
        if ends[0] != ends[1]:
            self.seen.improper.append(f"two replies to one end: {ends}")
        elif ends[0] is not None:
            self.seen.ended[name] = ends[0]["answer"]

    async def _insist(
        self, at: int, path: str, headers: dict[str, str], form: dict[str, Any]
    ) -> Any:
        """The same request until it succeeds, as a client does that wants it done."""
        for attempt in range(120):
            status, body, _ = await self._post(at + attempt, path, json=form, headers=headers)
            if status in (200, 201):
                return body
            if status not in (0, 503):
                self.seen.improper.append(f"{path}: {status} {body}")
                return None
            await asyncio.sleep(min(0.5, 0.05 * (attempt + 1)))
        self.seen.improper.append(f"{path}: never done")
        return None


async def trouble(
    clients: Clients, postgres: postgres_server.Server, rounds: int, plan: Plan
) -> None:
    """Kill replicas and stop the database, evenly over the rounds."""
    events = sorted(
        [((k + 0.5) / max(plan.kills, 1), "kill", k) for k in range(plan.kills)]
        + [((k + 0.25) / max(plan.stops, 1), "stop", k) for k in range(plan.stops)]
        + [((k + 0.75) / max(plan.both, 1), "both", k) for k in range(plan.both)]
    )
    for share, what, number in events:
        while clients.next < share * rounds:
            await asyncio.sleep(0.02)
        at = number % len(clients.replicas)
        stopped: float | None = None
        if what != "kill":
            stopped = time.monotonic()
            await asyncio.to_thread(postgres.stop, "immediate")
            await asyncio.sleep(0.5)
        if what != "stop":
            await asyncio.to_thread(clients.replicas[at].kill)
            clients.seen.kills.append((time.monotonic(), at, stopped))
        if what != "kill":
            await asyncio.to_thread(postgres.start)
        if what != "stop":
            await asyncio.to_thread(clients.replicas[at].start)
        await _ready(clients)


async def _ready(clients: Clients) -> None:
    """Wait until every replica can write again and has written what had to wait."""
    async with aiohttp.ClientSession() as session:
        for replica in clients.replicas:
            for _ in range(600):
                async with session.get(f"{replica.url}/readyz") as reply:
                    if reply.status == 200:
                        break
                await asyncio.sleep(0.05)
    await asyncio.sleep(2 * FLUSH)


async def load(
    replicas: list[Replica],
    postgres: postgres_server.Server,
    rounds: int,
    plan: Plan,
    concurrency: int,
) -> Seen:
    """All rounds, with trouble in between."""
    limits = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=limits, connector=connector) as session:
        clients = Clients(replicas, session)

        async def worker(over_api: bool) -> None:
            while clients.next < rounds:
                clients.next += 1
                number = clients.next
                await (clients.hold(number) if over_api else clients.ask(number))

        meddling = asyncio.create_task(trouble(clients, postgres, rounds, plan))
        await asyncio.gather(*(worker(at % 3 == 0) for at in range(concurrency)))
        await meddling
    return clients.seen


def held_against(seen: Seen, service: Service, plan: Plan, seconds: float) -> Found:
    """Compare what clients have seen with what the store has."""
    cascade = service.cascades["support"]
    problems = list(seen.improper)
    rows: dict[str, Any] = {}
    after = (0.0, "")
    while page := service.rounds.rounds("support", cascade.epoch, after=after, limit=5000):
        for row in page:
            if row.id in rows:
                problems.append(f"round {row.id} is there twice")
            rows[row.id] = row.form
        after = (page[-1].at, page[-1].id)
    sums = service.rounds.sums("support")
    evidence, counted = cascade.learner.evidence(), cascade.learner.rounds
    pairs = [form["codes"] for form in rows.values() if len(form["codes"]) == 2]
    expected = {
        "rows": (len(rows), int(sums.get("rounds", 0)), counted),
        "pairs seen": (len(pairs), int(sums.get("seen:0:1", 0)), int(evidence.seen[0, 1])),
        "pairs that disagreed": (
            sum(one != two for one, two in pairs),
            int(sums.get("disagreed:0:1", 0)),
            int(evidence.disagreed[0, 1]),
        ),
    }
    for what, values in expected.items():
        if len(set(values)) != 1:
            problems.append(f"{what}: rows, sums, evidence differ: {values}")
    lost = {name: when for name, when in seen.answered.items() if name not in rows}
    by_kill: dict[int, list[float]] = {}
    for at, replica in lost.values():
        later = [n for n, (k, r, _) in enumerate(seen.kills) if r == replica and k >= at]
        if not later:
            problems.append("a round was lost without a kill")
            continue
        by_kill.setdefault(later[0], []).append(at)
    oldest = window = stopped_window = 0.0
    while_stopped = 0
    for kill, times in by_kill.items():
        killed, _, stopped = seen.kills[kill]
        if stopped is None:
            oldest = max(oldest, killed - min(times))
            window = max(window, max(times) - min(times))
        else:
            while_stopped += len(times)
            stopped_window = max(stopped_window, max(times) - min(times))
            if plan.away == "answer" and min(times) < stopped - 1:
                problems.append("a round was lost that was answered before the database stopped")
    ended_lost = [name for name in seen.ended if name not in rows]
    if ended_lost:
        problems.append(f"{len(ended_lost)} rounds whose end was acknowledged are gone")
    return Found(
        answered=len(seen.answered),
        ended=len(seen.ended),
        rows=len(rows),
        summed=int(sums.get("rounds", 0)),
        counted=counted,
        lost=len(lost),
        ended_lost=len(ended_lost),
        unheard=len(rows.keys() - seen.answered.keys() - seen.ended.keys()),
        oldest_lost=oldest,
        window_lost=window,
        lost_while_stopped=while_stopped,
        window_while_stopped=stopped_window,
        kills=plan.kills,
        stops=plan.stops,
        both=plan.both,
        replies=dict(seen.replies),
        problems=tuple(problems),
        seconds=seconds,
    )


def run(rounds: int, plan: Plan, *, concurrency: int = 24, replicas: int = 3) -> Found:
    """Start everything, make trouble, look what is in the store."""
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server.server() as postgres,
    ):
        if plan.stops + plan.both and not postgres.ours:
            raise SystemExit("this server may not be stopped: use --stops 0 --both 0")
        store = new_store(postgres)
        began = time.monotonic()

        async def all_of_it() -> tuple[Seen, Path]:
            runner, url = await upstream()
            made = await asyncio.gather(
                *(
                    asyncio.to_thread(Replica, Path(folder), store, url, plan.away)
                    for _ in range(replicas)
                )
            )
            try:
                seen = await load(made, postgres, rounds, plan, concurrency)
            finally:
                await asyncio.gather(*(asyncio.to_thread(one.stop) for one in made))
                await runner.cleanup()
            return seen, made[0].config

        seen, config = asyncio.run(all_of_it())
        service = Service(read_config(config))
        try:
            return held_against(seen, service, plan, time.monotonic() - began)
        finally:
            for cascade in service.cascades.values():
                cascade.close()
            service.database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--stops", type=int, default=4)
    parser.add_argument("--both", type=int, default=4)
    parser.add_argument("--away", choices=("answer", "refuse"), default="refuse")
    parser.add_argument("--concurrency", type=int, default=24)
    given = parser.parse_args()
    plan = Plan(given.kills, given.stops, given.both, given.away)
    found = run(given.rounds, plan, concurrency=given.concurrency)
    sys.stdout.write(json.dumps(vars(found), indent=2) + "\n")
    if found.problems:
        raise SystemExit("not exact")


if __name__ == "__main__":
    main()
