"""The depth of a request: the learner's law, full runs and modes, one uniform number."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence

from stopwise.openai.conversations import uniform_of

_RANDOM = random.SystemRandom()


def new_id() -> str:
    """The id of a round, the same all the way: in headers, in rows, in logs."""
    return uuid.uuid4().hex


class RequestDraws:
    """Uniform numbers: fresh ones, or one that belongs to a conversation.

    The number of a conversation is a keyed hash, so every draw has its exact probability and a
    conversation goes another way only when the learner's law has moved past its number.

    Args:
        secret: shared by all replicas; who does not have it cannot choose a depth.
        cascade: so that two cascades do not move together.
        seed: another one deals all conversations again.
    """

    def __init__(self, secret: bytes, cascade: str, seed: int = 0) -> None:
        self._secret = secret
        self._name = f"{cascade}\0{seed}"

    def fresh(self) -> float:
        """A number for one request."""
        return _RANDOM.random()

    def of_conversation(self, conversation: str) -> float:
        """The number of a conversation."""
        return uniform_of(self._secret, self._name, conversation)


def with_full_runs(law: Sequence[float], rate: float) -> list[float]:
    """The law of the depth when a share of rounds goes through all stages.

    >>> with_full_runs([0.5, 0.5], 0.1)
    [0.45, 0.55]
    """
    mixed = [(1 - rate) * share for share in law]
    mixed[-1] += rate
    return mixed


def draw(law: Sequence[float], rate: float, uniform: float) -> tuple[int, bool]:
    """The depth that a uniform number picks, and whether it is a full run.

    Numbers below the rate are full runs; the rest, stretched over [0, 1), picks from the law. So
    the depth has exactly the law `with_full_runs`.

    >>> draw([0.5, 0.5], 0.1, 0.05), draw([0.5, 0.5], 0.1, 0.5), draw([0.5, 0.5], 0.1, 0.6)
    ((1, True), (0, False), (1, False))
    """
    if uniform < rate:
        return len(law) - 1, True
    left = (uniform - rate) / (1 - rate) * sum(law)
    for depth, share in enumerate(law):
        left -= share
        if left < 0:
            return depth, False
    return max(depth for depth, share in enumerate(law) if share > 0), False
