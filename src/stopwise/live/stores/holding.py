"""Files that one learner at a time may hold: a lock that goes with the process, and who has it."""

from __future__ import annotations

import gc
import os
import time

try:
    import fcntl
except ImportError:  # not on Windows: there, running two writers is not caught
    fcntl = None  # type: ignore[assignment]

# A learner that was dropped lets go a moment later, in its thread: on a busy machine, a long one.
_TRIES, _TRIES_HERE, _BETWEEN = 6, 30, 0.02
_COLLECT_AT = (2, 25)  # not in every try: with much in memory it takes a second
_HELD: dict[tuple[int, int], int] = {}  # which process of this family holds a file


def hold(file: int) -> str | None:
    """Lock an open file; None where that is done, else who holds it.

    >>> import tempfile
    >>> first = tempfile.NamedTemporaryFile()
    >>> second = open(first.name)
    >>> hold(first.fileno()), hold(second.fileno())
    (None, 'another learner of this process')
    >>> let_go(first.fileno()); first.close(); second.close()
    """
    if fcntl is None:
        return None
    found = os.fstat(file)
    place = (found.st_dev, found.st_ino)
    for turn in range(_TRIES_HERE):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            own = _HELD.get(place) == os.getpid()
            if turn >= _TRIES and not own:
                return "another process"
            if own and turn in _COLLECT_AT:
                gc.collect()  # one dropped while its thread was at work is freed when cycles are
            time.sleep(_BETWEEN)
        else:
            _HELD[place] = os.getpid()
            return None
    return "another learner of this process"


def let_go(file: int) -> None:
    """Note that a file is about to be closed; a copy in another process keeps the lock."""
    found = os.fstat(file)
    _HELD.pop((found.st_dev, found.st_ino), None)
