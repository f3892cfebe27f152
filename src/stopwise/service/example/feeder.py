"""A steady stream of texts, and the truth that nobody sees before the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from stopwise.decisions import optimal_stage
from stopwise.service.example.detectors import COSTS, MISTAKE_COST
from stopwise.service.example.texts import Text

PACE = 8.0
"""Texts a second: all of them are through after some six minutes."""


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
        make_key: makes a key; called once, if the service comes to need one.
        pace: texts a second.
    """

    def __init__(
        self,
        url: str,
        texts: Sequence[Text],
        detectors: Mapping[str, Callable[[str], str]],
        make_key: Callable[[], str],
        *,
        pace: float = PACE,
        seed: int = 1,
    ) -> None:
        self._url = url
        self._texts = list(texts)
        self._detectors = detectors
        self._pause = 1.0 / pace
        self._random = random.Random(seed)
        self._truth: Truth | None = None
        self._make_key = make_key
        self._key: str | None = None
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
        """Send every text once, then tell the truth.

        None is sent again: the same text counted twice would make the service surer than it may be.
        """
        self._random.shuffle(self._texts)
        clock = asyncio.get_running_loop().time
        async with aiohttp.ClientSession() as session:
            for text in self._texts:
                began = clock()
                await self._send(session, text)
                await asyncio.sleep(max(0.0, self._pause - (clock() - began)))
        self._truth = await asyncio.to_thread(truth_of, self._texts, self._detectors)

    async def _send(self, session: aiohttp.ClientSession, text: Text) -> None:
        body = {"model": "language", "messages": [{"role": "user", "content": text.text}]}
        self.sent += 1
        try:
            status, form = await self._post(session, body)
            if status == 401 and self._key is None:
                # Somebody made the first key: from now on nobody is let in without one.
                self._key = await asyncio.to_thread(self._make_key)
                status, form = await self._post(session, body)
            answer = form["choices"][0]["message"]["content"]
        except (aiohttp.ClientError, KeyError, IndexError, TypeError, ValueError):
            return
        self.answered += 1
        self.correct += answer == text.language

    async def _post(
        self, session: aiohttp.ClientSession, body: Mapping[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        headers = {} if self._key is None else {"authorization": f"Bearer {self._key}"}
        url = f"{self._url}/v1/chat/completions"
        async with session.post(url, json=body, headers=headers) as response:
            return response.status, await response.json()


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
    best = names[optimal_stage([total / MISTAKE_COST for total in totals])]
    return Truth(names, errors, tuple(totals), best, len(texts))
