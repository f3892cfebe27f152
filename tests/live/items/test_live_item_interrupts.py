"""Interrupts while a round is decided and counted per item: memory equals the log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import stopwise
from stopwise.live import Learner, RoundLog

SOURCE = str(Path(stopwise.__file__).parent)
FILES = ("/live/items/", "/item_decider.py", "/lone_decider.py", "/situations/transitions.py")


class Interrupt(BaseException):
    """What a signal handler raises."""


class Interrupting:
    """Raises where every so many functions of the parts under test begin or end."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._seen = 0
        self.raised = 0

    def __call__(self, frame: Any, event: str, _: object) -> Interrupting | None:
        name = frame.f_code.co_filename
        if not (name.startswith(SOURCE) and any(part in name for part in FILES)):
            return None
        self._seen += event in ("call", "return")
        if event != "line" and self._seen % self._every == 0:
            self.raised += 1
            raise Interrupt
        return self


@pytest.mark.parametrize("settings", [{}, {"agree": 0.7}, {"calls": "alone"}], ids=str)
@pytest.mark.parametrize("every", [37, 101])
def test_memory_equals_the_log_after_interrupts_at_any_call(tmp_path, settings, every):
    def learner():
        store = RoundLog(tmp_path / "rounds.jsonl", durability="behind")
        return Learner([0, 1, 2], "per-item", mistake_cost=20, seed=1, store=store, **settings)

    first, interrupting = learner(), Interrupting(every)
    before = sys.gettrace()
    for at in range(90):
        round = None
        try:
            if at > 40:  # the first bins have been cut
                sys.settrace(interrupting)
            round = first.begin()
            while not first.stops(round) and len(round.outputs) < 3:
                round.observe("y" if at * (len(round.outputs) + 2) % 5 == 0 else "x")
            round.end()
        except Interrupt:
            pass
        finally:
            sys.settrace(before)
        if round is not None and not round.ended:
            round.abandon()
    del round
    first.refresh()
    counts, rounds = first.transitions.to_dict(), first.rounds
    guard = first._books.items.guard
    assert guard is None or guard._open == 0
    first.close()
    again = learner()
    assert interrupting.raised
    assert again.rounds == rounds
    assert again.transitions.to_dict() == counts
    again.close()
