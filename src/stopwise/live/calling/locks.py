"""A lock that a child process finds free, whoever held it when the process was forked."""

from __future__ import annotations

import threading

from stopwise.live.forking import watch_forks


class ForkSafeLock:
    """A lock for moments: who forks does not hold it.

    >>> with ForkSafeLock():
    ...     pass
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        watch_forks(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *details: object) -> None:
        self._lock.release()

    def before_fork(self) -> None:
        """Nothing is to be done before."""

    def after_fork_in_parent(self) -> None:
        """Nothing is to be done in the parent."""

    def after_fork_in_child(self) -> None:
        """The thread that held it is not there any more."""
        self._lock = threading.Lock()
