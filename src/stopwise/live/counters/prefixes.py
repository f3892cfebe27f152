"""What prefixes add to the counters, remembered: few different short ones come again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopwise.live.pairs import Added, added_by, compare_answers
from stopwise.live.record import RoundOutcome

_MOST = 512
_SHORT_TEXT = 64


class Prefixes:
    """What each of the usual prefixes adds and ends with, where outputs are compared as they are.

    Args:
        cumulative: the cost of all stages up to each; it does not change.

    Attributes:
        known: by prefix; 1 and True are one key.

    >>> prefixes = Prefixes([0.0, 2.0])
    >>> prefixes.read(["a", "b"])
    (Added(((0, True),), switched 0, twice 0), RoundOutcome(answer='b', stage=1, cost=2.0))
    >>> list(prefixes.known)
    [('a', 'b')]
    """

    __slots__ = ("_cumulative", "known")

    def __init__(self, cumulative: Sequence[float]) -> None:
        self._cumulative = list(cumulative)
        self.known: dict[tuple[Any, ...], tuple[Added, RoundOutcome]] = {}

    def read(self, outputs: Sequence[Any]) -> tuple[Added, RoundOutcome]:
        """What a prefix whose last stage answered adds and ends with.

        It is kept if it is short, since long texts hardly come twice.
        """
        answer = outputs[-1]
        try:
            added, outcome = self.known[tuple(outputs)]
        except (KeyError, TypeError):
            return self._new(outputs, answer)
        if outcome.answer is not answer:
            outcome = RoundOutcome(answer, outcome.stage, outcome.cost)
        return added, outcome

    def _new(self, outputs: Sequence[Any], answer: Any) -> tuple[Added, RoundOutcome]:
        added = added_by(*compare_answers(outputs, None))
        found = added, RoundOutcome(answer, added.last, self._cumulative[added.last])
        if all(
            output is None
            or type(output) in (bool, int, float)
            or (type(output) is str and len(output) <= _SHORT_TEXT)
            for output in outputs
        ):
            if len(self.known) >= _MOST:
                self.known.clear()
            self.known[tuple(outputs)] = found
        return found
