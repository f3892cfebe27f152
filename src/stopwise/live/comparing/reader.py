"""From outputs to answers: what a cascade says when it stops somewhere, and which answers agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator
from stopwise.live.counters.pairs import compare_answers

Combine = Callable[[Sequence[Any]], Any]


class Reader:
    """Reads the outputs of a round.

    Args:
        comparator: when two answers agree.
        combine: the answer after some outputs, if it is not the last of them.

    >>> from stopwise.live.comparing import exact
    >>> Reader(exact(), None).after(["a", None, "b"], 1)
    ('a', 0)
    """

    __slots__ = ("combine", "comparator", "plain")

    def __init__(self, comparator: Comparator, combine: Combine | None) -> None:
        self.comparator = comparator
        self.combine = combine
        # Outputs are answers, and answers are compared as they are.
        self.plain = comparator.label == "exact" and combine is None

    def after(self, outputs: Sequence[Any], stage: int) -> tuple[Any, int | None]:
        """The answer when stopping at a stage, and the last stage that spoke up to there."""
        for last in range(min(stage, len(outputs) - 1), -1, -1):
            if outputs[last] is not ABSTAINED:
                if self.combine is None:
                    return outputs[last], last
                said = [output for output in outputs[: last + 1] if output is not ABSTAINED]
                return self.combine(said), last
        return ABSTAINED, None

    def compare(self, outputs: Sequence[Any]) -> tuple[int, int]:
        """Which stages answered and which pairs of answers disagreed, as bits."""
        if self.plain:
            return compare_answers(outputs, None)
        answers = list(outputs)
        if self.combine is not None:
            # A stage that said nothing gave no answer, though the vote stands: no agreement.
            for stage, output in enumerate(outputs):
                if output is not ABSTAINED:
                    answers[stage] = self.after(outputs, stage)[0]
        differ = None if self.comparator.agree is None else self.comparator.differ
        return compare_answers(self.comparator.keys(answers), differ)
