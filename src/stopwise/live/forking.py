"""Forks: every learner of a process goes on rightly in parent and child."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import Protocol


class Forkable(Protocol):
    """What has locks and connections that a child must not share."""

    def before_fork(self) -> None:
        """Called in the parent, before."""

    def after_fork_in_parent(self) -> None:
        """Called in the parent, after."""

    def after_fork_in_child(self) -> None:
        """Called in the child."""


_ALL: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch_forks(one: Forkable) -> None:
    """Call it at forks as long as it lives."""
    _ALL.add(one)


_FORKING = threading.RLock()  # one fork at a time: each lets go of what it held itself
_HELD: list[Forkable] = []


def _before() -> None:
    _FORKING.acquire()
    _HELD[:] = list(_ALL)
    for one in _HELD:
        with suppress(Exception):  # whatever is wrong with one, the others are held still
            one.before_fork()


def _in_parent() -> None:
    # Those that were held and no others: one that was made meanwhile has nothing to let go of.
    for one in _HELD:
        with suppress(Exception):
            one.after_fork_in_parent()
    _HELD.clear()
    _FORKING.release()


def _in_child() -> None:
    global _FORKING  # noqa: PLW0603  # the parent's stays taken here
    _FORKING = threading.RLock()
    _HELD.clear()
    for one in list(_ALL):
        one.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
