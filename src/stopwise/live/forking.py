"""Forks: every learner of a process goes on rightly in parent and child."""

from __future__ import annotations

import os
import weakref
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


def _before() -> None:
    for one in list(_ALL):
        one.before_fork()


def _in_parent() -> None:
    for one in list(_ALL):
        one.after_fork_in_parent()


def _in_child() -> None:
    for one in list(_ALL):
        one.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
