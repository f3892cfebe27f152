"""From outputs to answers: what a cascade says when it stops somewhere, and which answers agree."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stopwise.evidence import ABSTAINED
from stopwise.live.calling.errors import describe, warn
from stopwise.live.comparing.comparator import Comparator, Judged, MisusedComparatorError
from stopwise.live.comparing.votes import majority_vote
from stopwise.live.interrupts import from_signal, is_failure
from stopwise.live.pairs import compare_answers, pair_number

Combine = Callable[[Sequence[Any]], Any]


class Comparison(NamedTuple):
    """How the answers of a round compare, as bits of stages and of pairs of them.

    Attributes:
        answered: the stages that answered.
        disagreed: the pairs of answers that differ.
        undecided: the pairs of which the comparator could not say.
        cost: what comparing cost.
        complete: False where the comparator or the vote raised (a warning says so).
        answers: the answer after each stage, where outputs are combined; None where they are the
            answers themselves.
    """

    answered: int
    disagreed: int
    undecided: int = 0
    cost: float = 0.0
    complete: bool = True
    answers: Sequence[Any] | None = None


NOT_COMPARED = Comparison(0, 0, complete=False)
"""Of a round whose answers could not be compared at all."""


class Reader:
    """Reads the outputs of a round.

    Args:
        comparator: when two answers agree.
        combine: the answer after some outputs, if it is not the last of them.

    >>> from stopwise.live.comparing import exact
    >>> Reader(exact(), None).after(["a", None, "b"], 1)
    ('a', 0)
    """

    __slots__ = ("blocks", "combine", "comparator", "plain", "takes_time")

    def __init__(self, comparator: Comparator, combine: Combine | None) -> None:
        self.comparator = comparator
        self.combine = combine
        # Outputs are answers, and answers are compared as they are.
        self.plain = comparator.label == "exact" and combine is None
        # Comparing calls functions of the user, which an event loop must not wait for.
        self.takes_time = not comparator.quick
        self.blocks = self.takes_time or combine not in (None, majority_vote)

    def after(self, outputs: Sequence[Any], stage: int) -> tuple[Any, int | None]:
        """The answer when stopping at a stage, and the last stage that spoke up to there.

        A vote that raises costs no answer: the last output is given, with a warning.
        """
        for last in range(min(stage, len(outputs) - 1), -1, -1):
            if outputs[last] is not ABSTAINED:
                if self.combine is None:
                    return outputs[last], last
                try:
                    return self._combined(self.combine, outputs, last), last
                except Exception as error:
                    if from_signal(error):
                        raise
                    warn(f"combine raised {describe(error)}: the last output is the answer")
                    return outputs[last], last
        return ABSTAINED, None

    @staticmethod
    def _combined(combine: Combine, outputs: Sequence[Any], last: int) -> Any:
        return combine([output for output in outputs[: last + 1] if output is not ABSTAINED])

    # ---- comparing ---------------------------------------------------------------------------

    def compare(self, outputs: Sequence[Any]) -> Comparison:
        """Which stages answered and which pairs of answers disagreed.

        What the comparator raises becomes a warning; the pair is then undecided.
        """
        if self.plain:
            try:
                return Comparison(*compare_answers(outputs, None))
            except Exception as error:  # outputs such as arrays: pair by pair below
                if from_signal(error):
                    raise
        sheet = _Sheet(self.comparator, *self._answers(outputs))
        for stage, answer in sheet.to_read():
            with sheet.reading(stage):
                sheet.keys[stage] = self.comparator.key_of(answer)
        for i, j in sheet.pairs():
            with sheet.judging(i, j):
                sheet.judged[i, j] = self.comparator.judge(sheet.keys[i], sheet.keys[j])
        return sheet.comparison()

    async def compare_async(self, outputs: Sequence[Any]) -> Comparison:
        """The same, awaiting async functions together and calling plain ones in a thread."""
        if not self.blocks:
            return self.compare(outputs)
        comparator = self.comparator
        if not comparator.is_async:
            return await asyncio.to_thread(self.compare, outputs)
        if self.combine is None:
            sheet = _Sheet(comparator, *self._answers(outputs))
        else:
            sheet = _Sheet(comparator, *await asyncio.to_thread(self._answers, outputs))

        async def read(stage: int, answer: Any) -> None:
            with sheet.reading(stage):
                key = answer if comparator.key is None else comparator.key(answer)
                sheet.keys[stage] = comparator.checked_key(await _settled(key))

        async def judge(i: int, j: int) -> None:
            with sheet.judging(i, j):
                one, two = sheet.keys[i], sheet.keys[j]
                verdict = one == two if comparator.agree is None else comparator.agree(one, two)
                sheet.judged[i, j] = comparator.read_verdict(await _settled(verdict))

        await asyncio.gather(*(read(stage, answer) for stage, answer in sheet.to_read()))
        await asyncio.gather(*(judge(i, j) for i, j in sheet.pairs()))
        return sheet.comparison()

    def _answers(self, outputs: Sequence[Any]) -> tuple[list[Any], bool]:
        """The answer after each stage that said something, and whether all could be formed."""
        answers, complete = list(outputs), True
        if self.combine is not None:
            # A stage that said nothing gave no answer, though the vote stands: no agreement.
            for stage, output in enumerate(outputs):
                if output is not ABSTAINED:
                    try:
                        answers[stage] = self._combined(self.combine, outputs, stage)
                    except Exception as error:  # `after` warns
                        if from_signal(error):
                            raise
                        answers[stage], complete = ABSTAINED, False
        return answers, complete

    def answer_of(self, outputs: Sequence[Any], stage: int, compared: Comparison) -> Any:
        """The answer when stopping at a stage that said something; combined once, in comparing."""
        if compared.answers is not None and compared.answers[stage] is not ABSTAINED:
            return compared.answers[stage]
        return outputs[stage] if self.combine is None else self.after(outputs, stage)[0]


class _Sheet:
    """One comparison under way."""

    def __init__(self, comparator: Comparator, answers: Sequence[Any], complete: bool) -> None:
        self._comparator = comparator
        self._answers = answers
        self._complete = complete
        self.keys: list[Any] = [ABSTAINED] * len(answers)
        self.judged: dict[tuple[int, int], Judged] = {}

    def to_read(self) -> list[tuple[int, Any]]:
        """The stages that answered, with their answers."""
        return [(at, one) for at, one in enumerate(self._answers) if one is not ABSTAINED]

    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of stages whose keys are to be compared."""
        read = [at for at, key in enumerate(self.keys) if key is not ABSTAINED]
        return [(i, j) for j in read for i in read if i < j]

    def reading(self, stage: int) -> _Noting:
        """Where a key is taken; if that raises, the stage has not answered."""
        return _Noting(self, stage)

    def judging(self, i: int, j: int) -> _Noting:
        """Where two keys are compared; if that raises, the pair is undecided."""
        self.judged[i, j] = Judged(None)
        return _Noting(self, j)

    def note(self, error: Exception) -> None:
        """Warn, once for each comparison."""
        if self._complete:
            warn(
                f"answers could not be counted as equal or not: comparator {self._comparator.label}"
                f" raised {describe(error)}",
                stacklevel=6,
            )
        self._complete = False

    def comparison(self) -> Comparison:
        """What has been found."""
        return Comparison(
            sum(1 << at for at, key in enumerate(self.keys) if key is not ABSTAINED),
            _mask(self.judged, False),
            _mask(self.judged, None),
            sum(judged.cost for judged in self.judged.values()),
            self._complete,
            self._answers,
        )


class _Noting:
    """What the comparator raises is noted; its misuse is raised on."""

    __slots__ = ("_sheet", "_stage")

    def __init__(self, sheet: _Sheet, stage: int) -> None:
        self._sheet, self._stage = sheet, stage

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None or isinstance(error, MisusedComparatorError) or not is_failure(error):
            return False
        self._sheet.note(error)
        return True


def _mask(judged: Mapping[tuple[int, int], Judged], verdict: bool | None) -> int:
    return sum(1 << pair_number(i, j) for (i, j), one in judged.items() if one.agree is verdict)


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
