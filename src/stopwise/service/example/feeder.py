"""A steady stream of texts, and the truth that nobody sees before the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from stopwise.service.example.detectors import COSTS, MISTAKE_COST
from stopwise.service.example.texts import Text


@dataclass(frozen=True)
class Truth:
    """What the labels say, once they may be looked at.

    Attributes:
        stages: names; `errors`: share of texts that each gets wrong.
        total_costs: of stopping always at each stage: calls and mistakes, per text.
        best: the stage at which that is lowest.
    """

    stages: tuple[str, ...]
    errors: tuple[float, ...]
    total_costs: tuple[float, ...]
    best: str
    texts: int


class Feeder:
    """Sends texts to the service as any client would.

    Args:
        url: of the service.
        texts: with their languages; the service is sent the text alone.
        detectors: only to tell the truth at the end.
        pace: texts a second.
    """

    def __init__(
        self,
        url: str,
        texts: Sequence[Text],
        detectors: Mapping[str, Callable[[str], str]],
        *,
        pace: float = 20.0,
        seed: int = 1,
    ) -> None:
        self._url = url
        self._texts = list(texts)
        self._detectors = detectors
        self._pause = 1.0 / pace
        self._random = random.Random(seed)
        self._truth: Truth | None = None
        self.sent = 0
        self.answered = 0
        self.correct = 0

    @property
    def total(self) -> int:
        """How many texts there are."""
        return len(self._texts)

    @property
    def truth(self) -> Truth | None:
        """The truth, once every text was sent; None before."""
        return self._truth

    async def run(self) -> None:
        """Send texts until cancelled; each of them once before any comes again."""
        async with aiohttp.ClientSession() as session:
            while True:
                self._random.shuffle(self._texts)
                for text in self._texts:
                    began = asyncio.get_running_loop().time()
                    await self._send(session, text)
                    spent = asyncio.get_running_loop().time() - began
                    await asyncio.sleep(max(0.0, self._pause - spent))
                if self._truth is None:
                    self._truth = await asyncio.to_thread(truth_of, self._texts, self._detectors)

    async def _send(self, session: aiohttp.ClientSession, text: Text) -> None:
        body = {"model": "language", "messages": [{"role": "user", "content": text.text}]}
        self.sent += 1
        try:
            async with session.post(f"{self._url}/v1/chat/completions", json=body) as response:
                form: dict[str, Any] = await response.json()
                answer = form["choices"][0]["message"]["content"]
        except (aiohttp.ClientError, KeyError, IndexError, TypeError, ValueError):
            return
        self.answered += 1
        self.correct += answer == text.language


def truth_of(texts: Sequence[Text], detectors: Mapping[str, Callable[[str], str]]) -> Truth:
    """How often each stage is wrong, and what stopping there costs in all."""
    names = tuple(detectors)
    errors = tuple(
        sum(detectors[name](row.text) != row.language for row in texts) / len(texts)
        for name in names
    )
    spent, totals = 0.0, []
    for name, error in zip(names, errors, strict=True):
        spent += COSTS[name]
        totals.append(spent + MISTAKE_COST * error)
    best = names[min(range(len(names)), key=totals.__getitem__)]
    return Truth(names, errors, tuple(totals), best, len(texts))
