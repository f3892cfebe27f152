"""A lock that a child process finds free, whoever held it when the process was forked."""

from __future__ import annotations

import threading

from stopwise.live.forking import watch_forks


class ForkSafeLock:
    """A lock for moments: who forks does not hold it.

    It is entered by its attribute, which is a plain lock: a signal handler that raises runs before
    or after `with` has taken such a lock, never between taking it and the block. With an
    `__enter__` written in Python it could, and the lock would stay taken for ever.

    Attributes:
        lock: the lock to enter; to be read each time, because a child process has another.

    >>> one = ForkSafeLock()
    >>> with one.lock:
    ...     pass
    """

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        watch_forks(self)

    def before_fork(self) -> None:
        """Nothing is to be done before."""

    def after_fork_in_parent(self) -> None:
        """Nothing is to be done in the parent."""

    def after_fork_in_child(self) -> None:
        """The thread that held it is not there any more."""
        self.lock = threading.Lock()
