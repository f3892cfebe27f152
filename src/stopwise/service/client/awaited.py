"""The same calls for asyncio: each runs in a thread and is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from stopwise.checks import names_settings, names_settings_of
from stopwise.service.client.blocking import Client, ServiceRound


@names_settings_of("begin", "evidence", "explain", "label", "report", "verdict")
class AsyncClient:
    """The same for asyncio: every call runs in a thread and is awaited.

    >>> asyncio.run(AsyncClient("http://127.0.0.1:1", tries=1).cascades())
    Traceback (most recent call last):
    ...
    stopwise.service.client.errors.ServiceError: http://127.0.0.1:1/api/v1: cannot be reached ...
    """

    @names_settings
    def __init__(
        self, url: str, key: str | None = None, *, timeout: float = 30.0, tries: int = 3
    ) -> None:
        self._client = Client(url, key, timeout=timeout, tries=tries)

    async def begin(
        self,
        cascade: str,
        *,
        segment: str = "",
        conversation: str = "",
        features: Mapping[str, Any] | None = None,
    ) -> AsyncServiceRound:
        """Open a round."""
        return AsyncServiceRound(
            await asyncio.to_thread(
                self._client.begin,
                cascade,
                segment=segment,
                conversation=conversation,
                features=features,
            )
        )

    async def round(self, cascade: str, round_id: str) -> AsyncServiceRound:
        """A round that was begun elsewhere and is still open."""
        return AsyncServiceRound(await asyncio.to_thread(self._client.round, cascade, round_id))

    async def cascades(self) -> list[dict[str, Any]]:
        """Every cascade in a line."""
        return await asyncio.to_thread(self._client.cascades)

    async def evidence(self, cascade: str, segment: str | None = None) -> dict[str, Any]:
        """Pairs seen and in disagreement."""
        return await asyncio.to_thread(self._client.evidence, cascade, segment)

    async def report(self, cascade: str, segment: str | None = None) -> dict[str, Any]:
        """Counts, spending, savings, health."""
        return await asyncio.to_thread(self._client.report, cascade, segment)

    async def verdict(self, cascade: str, segment: str | None = None) -> dict[str, Any]:
        """Certain, or not knowable without labels."""
        return await asyncio.to_thread(self._client.verdict, cascade, segment)

    async def explain(self, cascade: str, segment: str | None = None) -> dict[str, Any]:
        """Law, costs, pairs against thresholds."""
        return await asyncio.to_thread(self._client.explain, cascade, segment)

    async def audit(self, cascade: str) -> dict[str, Any]:
        """What the labels settle, and what to label next."""
        return await asyncio.to_thread(self._client.audit, cascade)

    async def mode(self, cascade: str) -> dict[str, Any]:
        """The mode, and what another one would change."""
        return await asyncio.to_thread(self._client.mode, cascade)

    async def set_mode(self, cascade: str, mode: str, reason: str) -> dict[str, Any]:
        """Switch a cascade."""
        return await asyncio.to_thread(self._client.set_mode, cascade, mode, reason)

    async def label(self, cascade: str, round_id: str, correct: list[str], note: str = "") -> None:
        """Say which answers are right."""
        await asyncio.to_thread(self._client.label, cascade, round_id, correct, note)

    async def log(self, cascade: str) -> bytes:
        """The rounds as CSV."""
        return await asyncio.to_thread(self._client.log, cascade)


@names_settings_of("fail", "observe")
class AsyncServiceRound:
    """An open round for asyncio; see `ServiceRound`.

    >>> drawn = {"round": "r1", "stages": ["small"], "depth": 0, "probability": 1.0}
    >>> begun = ServiceRound(Client("http://127.0.0.1:1"), "triage", {**drawn, "mode": "enforce"})
    >>> AsyncServiceRound(begun).stages
    ['small']
    """

    def __init__(self, round: ServiceRound) -> None:
        self._round = round
        self.id, self.stages = round.id, round.stages
        self.depth, self.probability, self.mode = round.depth, round.probability, round.mode

    @property
    def answer(self) -> Any:
        """The answer, once it has ended."""
        return self._round.answer

    @property
    def stage(self) -> str | None:
        """The stage that gave it."""
        return self._round.stage

    @property
    def cost(self) -> float | None:
        """What the round cost."""
        return self._round.cost

    async def observe(
        self,
        stage: str,
        output: Any,
        *,
        cost: float | None = None,
        seconds: float | None = None,
        confidence: float | None = None,
    ) -> None:
        """Report an output, None for an abstention, and how sure the stage says it is."""
        await asyncio.to_thread(
            self._round.observe, stage, output, cost=cost, seconds=seconds, confidence=confidence
        )

    async def fail(self, stage: str, why: str, *, cost: float | None = None) -> None:
        """Report that a stage failed."""
        await asyncio.to_thread(self._round.fail, stage, why, cost=cost)

    async def go_deeper(self) -> list[str]:
        """Allow one stage more; the stages to call now."""
        return await asyncio.to_thread(self._round.go_deeper)

    async def end(self) -> Any:
        """Count the round; its answer."""
        return await asyncio.to_thread(self._round.end)

    async def abandon(self) -> None:
        """Give it up."""
        await asyncio.to_thread(self._round.abandon)

    async def __aenter__(self) -> AsyncServiceRound:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._round.ended:
            await (self.end() if kind is None else self.abandon())
