"""The service: everything that lives as long as the process, started and stopped in order."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from typing import Any, Protocol

from stopwise.openai.errors import ProtocolError
from stopwise.service.cascades.holding import LATE
from stopwise.service.cascades.recorder import Recorder
from stopwise.service.cascades.reported_rounds import finished_of, of_this_epoch
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.cascades.spending import DAY, Spending
from stopwise.service.cascades.verdicts import renew_headline
from stopwise.service.config.forms import FROM_FILE, MODES, Config, FromFile, Mode
from stopwise.service.database.alarms import Alarms
from stopwise.service.database.connection import open_database
from stopwise.service.database.grants import Grants
from stopwise.service.database.keys import Key, Keys
from stopwise.service.database.labels import Labels
from stopwise.service.database.open_rounds import OpenRounds
from stopwise.service.database.replies import Replies
from stopwise.service.database.rounds import Rounds
from stopwise.service.database.trail import Trail
from stopwise.service.database.writing import KEY
from stopwise.service.metrics import Metrics
from stopwise.service.telemetry.opentelemetry import OpenTelemetry, telemetry_of
from stopwise.service.upstream.calls import Upstreams

LOG = logging.getLogger("stopwise.service")
COMPARISON_SECONDS = 5.0
"""For how long stopping waits for calls that are only compared: nobody else does."""
_JUDGED_EVERY = 20.0  # seconds between two verdicts for requests that are not counted
_JUDGED_FOR = 0.5  # seconds of these that are made at once


class UnderWay(Protocol):
    """A request whose calls are not all in."""

    def give_up(self) -> None:
        """Cancel what is still called and hand over what came in: the service stops."""


class RunningExample(Protocol):
    """What the pages may know of the example that feeds this service."""

    sent: int
    correct: int
    answered: int

    @property
    def total(self) -> int:
        """How many texts there are."""

    @property
    def truth(self) -> Any:
        """What the labels say, once all were sent; None before."""


class Service:
    """What requests share. Nothing here is needed to answer but the store.

    Args:
        config: the whole file.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.started = time.time()
        self.cascades: dict[str, RunningCascade] = {}
        self.database = open_database(config.server.store, config.folder)
        try:
            self._make(config)
        except BaseException:  # a service that was not made cannot be stopped
            for cascade in self.cascades.values():
                cascade.close()
            self.database.close()
            raise

    def _make(self, config: Config) -> None:
        """Make all that rests on the database."""
        self.keys = Keys(self.database)
        self.keys.renew()
        self.trail = Trail(self.database)
        self.rounds = Rounds(self.database, config.server.keep_days)
        self.labels = Labels(self.database)
        self.alarms = Alarms(self.database)
        self.open_rounds = OpenRounds(self.database)
        self.replies = Replies(self.database)
        self.spending = Spending(Grants(self.database) if self.database.shared else None)
        self.metrics = Metrics()
        self.telemetry = telemetry_of(config.server.opentelemetry)
        self.upstreams = Upstreams(self.telemetry)
        for name, part in config.cascades.items():
            self.cascades[name] = RunningCascade(
                part,
                config.server.store,
                config.folder,
                self.trail,
                self.spending,
                self.rounds.keep_seconds,
            )
        learners = {name: part.learner for name, part in self.cascades.items()}
        self.metrics.show(learners)
        if isinstance(self.telemetry, OpenTelemetry):
            self.telemetry.show(learners)
        self._mode_lock = threading.Lock()
        self._set_modes()
        self._say_kept_modes()
        self.recorder = Recorder(
            self.rounds,
            self.cascades,
            self.spending,
            keep=config.server.keep,
            seconds=config.server.flush_seconds,
            away=config.server.store_away,
        )
        self.recorder.on_tick = self._tick
        self._tasks: set[asyncio.Task[object]] = set()
        self._under_way: set[UnderWay] = set()
        self._stopped: asyncio.Task[None] | None = None
        self._stopping_since: float | None = None
        self._expired = 0.0
        self._judged = -_JUDGED_EVERY
        self._to_judge: deque[tuple[RunningCascade, str | None]] = deque()
        self.example: RunningExample | None = None
        self.serving = False

    # ---- life ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to write behind and to call upstreams."""
        self.recorder.start()
        await self.upstreams.start()
        self.serving = True

    @property
    def stopping(self) -> bool:
        """Whether no request is taken any more."""
        return self._stopping_since is not None

    def begin_to_stop(self) -> None:
        """Take no more requests."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()

    async def stop(self) -> None:
        """Write all that was answered, close everything; called again, wait for that.

        Calls that are only compared have some seconds from the beginning of the stop. Then they are
        given up, and their rounds are written as far as they went.
        """
        self.begin_to_stop()
        if self._stopped is None:
            self._stopped = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopped)

    async def _stop(self) -> None:
        assert self._stopping_since is not None
        left = self._stopping_since - time.monotonic()
        left += min(COMPARISON_SECONDS, self.config.server.drain_seconds)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=max(0.0, left))
        for one in tuple(self._under_way):
            one.give_up()
        if self._tasks:  # these only hand over what came in
            await asyncio.wait(self._tasks, timeout=COMPARISON_SECONDS)
        await self.upstreams.stop()
        await asyncio.to_thread(self.recorder.stop)
        for cascade in self.cascades.values():
            await asyncio.to_thread(cascade.close)
        await asyncio.to_thread(self.telemetry.stop)
        self.database.close()

    def begun(self, request: UnderWay) -> None:
        """Know of a request, until what it left behind has ended; stopping gives it up."""
        self._under_way.add(request)

    def later(self, request: UnderWay, task: asyncio.Task[object]) -> None:
        """Keep a task that outlives its request; stopping waits for it."""
        self._tasks.add(task)

        def ended(task: asyncio.Task[object]) -> None:
            self._tasks.discard(task)
            self._under_way.discard(request)

        task.add_done_callback(ended)

    def _tick(self) -> None:
        """Once a second, in a thread of its own: what others changed, what is too old."""
        self.keys.renew()
        self._set_modes()
        self.metrics.waiting.set(self.recorder.waiting)
        self.metrics.dropped.set(self.recorder.dropped)
        if self.database.shared:
            for cascade in self.cascades.values():
                cascade.learner.refresh()
        self._judge()
        if time.monotonic() - self._expired > 600:
            self._expired = time.monotonic()
            self.rounds.expire()
            self.replies.expire(time.time())
            self.give_up_rounds(time.time())

    def _judge(self) -> None:
        """Renew headlines, for half a second at most: modes and keys do not wait for estimates."""
        if not self._to_judge and time.monotonic() - self._judged > _JUDGED_EVERY:
            self._judged = time.monotonic()
            enforced = [one for one in self.cascades.values() if one.mode == "enforce"]
            self._to_judge += [(cascade, None) for cascade in enforced]
            self._to_judge += [(one, name) for one in enforced for name in one.wanted_headlines()]
        end = time.monotonic() + _JUDGED_FOR
        while self._to_judge and time.monotonic() < end:
            renew_headline(self.rounds, *self._to_judge.popleft())

    def give_up_rounds(self, now: float) -> None:
        """Count rounds that were begun over the API and that nobody ended for a day."""
        for name, round_id in self.open_rounds.expired(now):
            cascade = self.cascades.get(name)
            form = self.open_rounds.close(name, round_id, "abandon")
            # What was begun before the stages, prices or comparator changed counts nowhere.
            if cascade is not None and form is not None and of_this_epoch(cascade, form):
                self.recorder.put(finished_of(cascade, round_id, form, "", abandoned=True))
            else:
                self.open_rounds.delete(round_id)

    @property
    def store_error(self) -> str | None:
        """Why something cannot be written now; None if everything can."""
        if self.recorder.errors or self.recorder.behind > LATE:
            return "rounds cannot be written"
        for name, cascade in self.cascades.items():
            if cascade.learner.store_status.last_error is not None:
                return f"evidence of {name} cannot be written"
        return None

    def _set_modes(self) -> None:
        """The modes that were set while the service ran; else those of the file."""
        with self._mode_lock:
            stored = self.trail.modes()
            for name, cascade in self.cascades.items():
                mode = stored.get(name)
                cascade.kept_mode = next((known for known in MODES if known == mode), None)
                cascade.mode = cascade.kept_mode or cascade.config.mode

    def _say_kept_modes(self) -> None:
        for name, cascade in self.cascades.items():
            if cascade.mode != cascade.config.mode:
                LOG.warning(
                    "the mode was set while the service ran and stays, whatever the file says",
                    extra={
                        "cascade": name,
                        "mode": cascade.mode,
                        "mode_of_the_file": cascade.config.mode,
                        "to_follow_the_file": f"the page /ui/c/{name}/mode, or PUT"
                        f' /api/v1/cascades/{name}/mode with "mode": "{FROM_FILE}"',
                    },
                )

    # ---- what requests ask for -------------------------------------------------------------

    def cascade(self, name: str) -> RunningCascade:
        """The cascade of a name, or the protocol's error."""
        found = self.cascades.get(name)
        if found is None:
            raise ProtocolError(
                404,
                f"model: there is no cascade {name[:100]!r}; there are {', '.join(self.cascades)}",
                code="model_not_found",
                param="model",
            )
        return found

    def set_mode(
        self, cascade: RunningCascade, mode: Mode | FromFile, key: Key, reason: str
    ) -> None:
        """Switch a cascade; every replica follows within a second (this blocks).

        Args:
            mode: that is kept, whatever the file says; "file" to follow the file again.
        """
        who = f"{key.name} ({key.id})" if key.id else key.name
        new = cascade.config.mode if mode == FROM_FILE else mode
        kept = None if mode == FROM_FILE else mode
        with self._mode_lock:
            old = cascade.mode
            self.trail.set_mode(cascade.name, old, new, who, reason, keep=kept is not None)
            cascade.mode, cascade.kept_mode = new, kept
        if new == "enforce":
            renew_headline(self.rounds, cascade)

    def check_budget(self, key: Key) -> None:
        """Refuse a key that has spent what it may in a day, as far as this replica knows."""
        if key.id and not self.spending.reserve(f"{KEY}{key.id}", 0.0, key.budget):
            raise _spent(key)

    async def reserve(self, key: Key, amount: float, *, whole: bool = False) -> None:
        """Hold back what a request may cost; refuse it where the key's budget does not allow it.

        Args:
            whole: whether it is the most that it can cost, and has to be left.
        """
        name = f"{KEY}{key.id}"
        if key.id and not await self.spending.fund(name, amount, key.budget, whole=whole):
            raise _spent(key, amount if whole else None)


def _spent(key: Key, most: float | None = None) -> ProtocolError:
    said = (
        f"this key has spent its budget of {key.budget:g} for today (UTC), with what is under way"
    )
    if most is not None:
        said = (
            f"this request can cost {most:.4g}, more than is left of this key's budget of"
            f" {key.budget:g} for today (UTC), with what is under way; a smaller max_tokens or a"
            " shorter question may fit"
        )
    return ProtocolError(
        429,
        said,
        code="insufficient_quota",
        kind="insufficient_quota",
        retry_after=DAY - time.time() % DAY,
    )
