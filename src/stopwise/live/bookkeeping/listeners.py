"""Who listens to rounds and alarms, outside the lock and at no cost to an answer."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from stopwise.checks import fail
from stopwise.live.calling.errors import describe, warn
from stopwise.live.interrupts import from_signal
from stopwise.live.record import RoundRecord
from stopwise.live.watching.drift import DriftAlarm

_LOG = logging.getLogger("stopwise.live")


class Listeners:
    """The functions of the user that hear of rounds and of alarms.

    Args:
        on_round: called with the record of every round that has ended.
        on_drift: called with every alarm.
    """

    __slots__ = ("_telling", "alarms", "news", "on_drift", "on_round")

    def __init__(
        self,
        on_round: Callable[[RoundRecord], None] | None,
        on_drift: Callable[[DriftAlarm], None] | None,
    ) -> None:
        for name, heard in (("on_round", on_round), ("on_drift", on_drift)):
            if heard is not None and not callable(heard):
                raise fail(name, heard, "a function, or None")
        self.on_round = on_round
        self.on_drift = on_drift
        self.alarms: list[DriftAlarm] = []
        self.news: deque[DriftAlarm] = deque()  # alarms that nobody has heard of yet
        self._telling: weakref.WeakSet[threading.Thread] = weakref.WeakSet()

    def note(self, alarms: Iterable[DriftAlarm]) -> None:
        """Take alarms, to be reported later: the lock may be held now."""
        self.news.extend(alarms)

    def hear(self, alarms: Iterable[DriftAlarm]) -> None:
        """Take alarms from the thread of a store, which nothing may keep from writing.

        So `on_drift` is called on a thread of its own: it may begin rounds and wait for them, close
        the learner, or never return.
        """
        heard = deque(alarms)
        if not heard:
            return
        if self.on_drift is None:
            self._tell(heard)
            return
        # Not through `news`: a round that ends meanwhile would tell of them in its own thread.
        thread = threading.Thread(
            target=self._tell_apart, args=(heard,), daemon=True, name="stopwise on_drift"
        )
        try:
            thread.start()
        except RuntimeError:  # no thread can be started any more: the next round tells
            self.news.extend(heard)
        else:
            self._telling.add(thread)

    def _tell_apart(self, heard: deque[DriftAlarm]) -> None:
        while heard:
            try:
                self._tell(heard)
            except BaseException as error:  # noqa: BLE001  # an exit ends no thread but its own
                warn(f"on_drift raised {describe(error)}")

    def wait(self, seconds: float) -> None:
        """Wait for calls of `on_drift` that are under way, but not for the one that asks."""
        end = time.monotonic() + seconds
        for thread in list(self._telling):
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    def tell_alarms(self) -> None:
        """Tell of alarms; no lock is held."""
        self._tell(self.news)

    def _tell(self, news: deque[DriftAlarm]) -> None:
        while True:
            try:
                alarm = news.popleft()
            except IndexError:
                return
            self.alarms.append(alarm)
            _LOG.info("drift: %s", alarm)
            if self.on_drift is not None:
                _call("on_drift", self.on_drift, alarm)

    def tell_round(self, record: RoundRecord) -> None:
        """Tell of a round; no lock is held."""
        if self.on_round is not None:
            _call("on_round", self.on_round, record)


def _call(name: str, listener: Callable[[Any], None], news: object) -> None:
    try:
        listener(news)
    except Exception as error:  # a listener must not cost an answer
        if from_signal(error):
            raise
        warn(f"{name} raised {describe(error)}")
