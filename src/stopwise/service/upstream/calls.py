"""Calling a stage over HTTP. What a client sent as headers is never passed on."""

from __future__ import annotations

import asyncio
import io
import json
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp

from stopwise.openai.bodies import strict_json
from stopwise.openai.streams import Events
from stopwise.service.config.forms import Upstream
from stopwise.service.config.tables import LONGEST
from stopwise.service.telemetry.base import Telemetry

_LONGEST = 50_000_000
_LONG = 500_000
_BROKEN = (TimeoutError, aiohttp.ClientError, OSError, ValueError)
"""What a call raises that breaks off, wherever it is read."""
_SHORTEST_WAIT = 0.1  # seconds until an upstream is asked again that said "at once"


class UpstreamError(Exception):
    """A call that failed.

    Attributes:
        word: what went wrong, in a word that may stand in a log: never the upstream's text.
        status: that the client gets.
        body: what the upstream said, if it spoke the protocol: for the client alone.
        retry_after: seconds after which the upstream wants to be asked again, if it said so.
    """

    def __init__(
        self,
        word: str,
        status: int = 502,
        body: Any = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(word)
        self.retry_after = retry_after
        self.word = word
        self.status = status
        self.body = body


class Upstreams:
    """The connections to all upstreams."""

    def __init__(self, telemetry: Telemetry | None = None) -> None:
        self._telemetry = telemetry or Telemetry()
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Open the pool."""
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=30)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": "stopwise"},
            trust_env=False,
        )

    async def stop(self) -> None:
        """Close it."""
        if self._session is not None:
            await self._session.close()

    async def call(
        self, upstream: Upstream, path: str, body: bytes, *, awaited: asyncio.Event | None = None
    ) -> Any:
        """A plain call; the JSON that came back.

        Args:
            awaited: set once a client waits for it; None if one does from the beginning.
        """
        async with self._opened(upstream, path, body, awaited=awaited) as response:
            data = await _whole(response)
        try:
            return strict_json(data)
        except (ValueError, RecursionError):
            raise UpstreamError("not JSON") from None

    @asynccontextmanager
    async def stream(
        self, upstream: Upstream, path: str, body: bytes
    ) -> AsyncIterator[AsyncIterator[str]]:
        """A streamed call: its events, as they come."""
        async with self._opened(upstream, path, body, streamed=True) as response:
            kind = response.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                raise UpstreamError("no stream")
            yield _events(response)

    @asynccontextmanager
    async def _opened(
        self,
        upstream: Upstream,
        path: str,
        body: bytes,
        *,
        streamed: bool = False,
        awaited: asyncio.Event | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response, also of an upstream that was busy and said when to ask again.

        All tries together have the time of one call. A call that is only compared is made until it
        is welcome. One that a client waits for is made once more, after `retry_seconds` at most:
        after that, another stage may have answered.
        """
        end = time.monotonic() + upstream.timeout
        tries = 0
        async with AsyncExitStack() as stack:
            while True:
                left = end - time.monotonic()
                try:
                    opening = self._open(upstream, path, body, left, streamed=streamed)
                    response = await stack.enter_async_context(opening)
                    break
                except UpstreamError as error:
                    if error.retry_after is None:
                        raise
                    # One that says "at once" again and again is asked less and less often.
                    wait = max(error.retry_after, _SHORTEST_WAIT * 2**tries)
                    if time.monotonic() + wait >= end:
                        raise
                    if tries and (awaited is None or awaited.is_set()):
                        raise
                    if not await _waited(wait, upstream.retry_seconds, awaited):
                        raise
                tries += 1
            yield response

    @asynccontextmanager
    async def _open(
        self, upstream: Upstream, path: str, body: bytes, left: float, *, streamed: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None
        headers = {"content-type": "application/json"}
        if upstream.api_key is not None:
            headers["authorization"] = f"Bearer {upstream.api_key.reveal()}"
        # A long stream is well while chunks come; a plain call is either in or too late.
        total = None if streamed else left
        limit = aiohttp.ClientTimeout(total=total, sock_read=upstream.timeout, sock_connect=10)
        url = upstream.base_url + path
        with self._telemetry.call(url, headers) as call:
            try:
                async with asyncio.timeout(left):
                    response = await self._session.post(
                        url,
                        # Long ones are read in a thread: writing them at once would stop the loop.
                        data=body if len(body) < _LONG else io.BytesIO(body),
                        headers=headers,
                        timeout=limit,
                        allow_redirects=False,
                    )
                async with response:
                    call.status = response.status
                    if response.status != 200:
                        raise await _refused(response)
                    yield response
            except _BROKEN as error:
                broken = _broken(error)
                call.failed = broken.word
                raise broken from None
            except UpstreamError as error:
                call.failed = error.word
                raise


def _broken(error: Exception) -> UpstreamError:
    """What a call that broke off failed of."""
    if isinstance(error, TimeoutError):
        return UpstreamError("timeout", 504)
    return UpstreamError(f"connection: {type(error).__name__}")


async def _waited(seconds: float, most: float, awaited: asyncio.Event | None) -> bool:
    """Wait this long; False as soon as a client waits too and would have to for more than `most`.

    Args:
        awaited: as in `Upstreams.call`.
    """
    end = time.monotonic() + seconds
    if awaited is not None:
        with suppress(TimeoutError):
            await asyncio.wait_for(awaited.wait(), seconds)
    left = end - time.monotonic()
    if left > most:
        return False
    await asyncio.sleep(left)
    return True


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > _LONGEST:
            raise UpstreamError("answer too long")
        parts.append(part)
    return b"".join(parts)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[str]:
    """The events of a stream; whoever reads them gets an `UpstreamError` where it breaks off."""
    events, size = Events(), 0
    try:
        async for part in response.content.iter_any():
            size += len(part)
            if size > _LONGEST:
                raise UpstreamError("answer too long")
            for event in events.feed(part):
                yield event
        for event in events.close():
            yield event
    except _BROKEN as error:
        raise _broken(error) from None


async def _refused(response: aiohttp.ClientResponse) -> UpstreamError:
    """What a status other than 200 means for the client."""
    body = None
    try:
        async with asyncio.timeout(5):
            data = await _whole(response)
        found = json.loads(data)
        if isinstance(found, dict) and isinstance(found.get("error"), dict):
            body = {"error": found["error"]}
    except (ValueError, RecursionError, TimeoutError, aiohttp.ClientError, UpstreamError):
        body = None
    # What the client can repair or wait for is passed on; our own key or URL being wrong is not
    # its business, and a redirect is never followed.
    passed_on = response.status in (400, 408, 413, 422, 429)
    known = passed_on or response.status == 503
    return UpstreamError(
        f"status {response.status}",
        response.status if known else 502,
        body if passed_on else None,
        retry_after(response.headers) if response.status in (429, 503) else None,
    )


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """When a server wants to be asked again, in seconds from now; None where it does not say.

    >>> retry_after({"retry-after": "2"}), retry_after({"retry-after-ms": "250"})
    (2.0, 0.25)
    >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, now=20.0)
    40.0
    >>> retry_after({"retry-after": "soon"}), retry_after({})
    (None, None)
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        said = headers.get(name, "")
        try:
            seconds = float(said) * unit
        except ValueError:
            try:
                at = parsedate_to_datetime(said).timestamp()
            except (ValueError, OverflowError):
                continue
            seconds = at - (time.time() if now is None else now)
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), LONGEST)
    return None
