"""Bodies on their way in: how long one may be, how long it may take, and how many are waited for.

Sending headers costs nothing, and each body that is waited for takes the place of a request. So a
body is a stranger's until a key was found: short, soon here, and few at once. Where all places are
taken, the request whose body has been awaited for longest gives up its place.
"""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope

from stopwise.openai.errors import ProtocolError

KNOWN = "known"
"""Set in the state of a request once a key was found for it."""
_STRANGERS = 50
_STRANGER_BYTES = 10_000
_STRANGER_SECONDS = 5.0
_PATIENCE = 1.0  # seconds for which a body may be awaited before another may take its place


class IncomingBodies:
    """The bodies that are waited for now.

    Args:
        most: bytes of a body.
        seconds: that it may take.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        # Since when each is waited for.
        self._waited: dict[asyncio.Timeout, float] = {}
        self._strangers: dict[asyncio.Timeout, float] = {}

    def make_room(self) -> bool:
        """Give up the body that has been awaited for longest; False if none has been for long."""
        return _give_up_oldest(self._waited, _PATIENCE) or _give_up_oldest(self._strangers)

    def limited(self, scope: Scope, receive: Receive) -> Receive:
        """The same, but that it refuses a body that is too long or too slow."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        length = int(declared) if declared.isdigit() else 0
        began = asyncio.get_running_loop().time()
        got = 0
        whole = False

        async def limited() -> Message:
            nonlocal got, whole
            if whole:
                return await receive()
            known = KNOWN in scope["state"]
            most = self._most if known else min(self._most, _STRANGER_BYTES)
            seconds = self._seconds if known else min(self._seconds, _STRANGER_SECONDS)
            if length > most:
                raise _too_long(most)
            message = await self._soon(receive, began, seconds, known=known)
            got += len(message.get("body", b""))
            if got > most:
                raise _too_long(most)
            whole = not message.get("more_body", False)
            return message

        return limited

    async def _soon(
        self, receive: Receive, began: float, seconds: float, *, known: bool
    ) -> Message:
        room = self._waited if known else self._strangers
        if not known and len(room) >= _STRANGERS:
            _give_up_oldest(room)
        limit = asyncio.timeout_at(began + seconds)
        try:
            async with limit:
                room[limit] = began
                return await receive()
        except TimeoutError:
            given_up = limit not in room
            text = (
                "the body was slow to come while others waited"
                if given_up
                else f"the body did not come within {seconds:g} seconds"
            )
            raise ProtocolError(408, text, code="slow_body") from None
        finally:
            room.pop(limit, None)


def _give_up_oldest(room: dict[asyncio.Timeout, float], patience: float = 0.0) -> bool:
    """Give up what has been waited for longest, and for longer than the patience, if anything."""
    now = asyncio.get_running_loop().time()
    # A time that is over ends its own wait.
    running = [limit for limit in room if (limit.when() or 0.0) > now]
    oldest = min(running, key=room.__getitem__, default=None)
    if oldest is None or now - room[oldest] < patience:
        return False
    del room[oldest]
    oldest.reschedule(now)
    return True


def _too_long(most: int) -> ProtocolError:
    return ProtocolError(413, f"the body is longer than {most:,} bytes", code="body_too_long")
