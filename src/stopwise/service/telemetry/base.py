"""What there is to report of requests and of calls; here nobody is reported to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Request:
    """A request under way; what is known when it has ended.

    Attributes:
        log: what the log line says too: cascade and round.
    """

    method: str = ""
    path: str = ""
    status: int = 0
    log: Mapping[str, str] = field(default_factory=dict)


@dataclass
class TracedCall:
    """A call of an upstream under way.

    Attributes:
        status: what the upstream answered; 0 where it did not.
        failed: a word for what went wrong.
    """

    status: int = 0
    failed: str | None = None


class Telemetry:
    """Receives everything, reports nothing.

    >>> with Telemetry().request({"headers": []}) as request:
    ...     request.status = 200
    """

    @contextmanager
    def request(self, scope: Mapping[str, object]) -> Iterator[Request]:
        """Around one request; the scope has the headers, which may name a trace."""
        yield Request()

    @contextmanager
    def call(self, url: str, headers: MutableMapping[str, str]) -> Iterator[TracedCall]:
        """Around one call of an upstream; headers may be added that name the trace."""
        yield TracedCall()

    def note(self, cascade: str, stage: str, outcome: str, seconds: float, cost: float) -> None:
        """A call of a stage, read and priced."""

    def stop(self) -> None:
        """Send what is left."""
