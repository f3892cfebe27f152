"""The answers of many items, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stopwise.costs import FloatArray
from stopwise.live.batching.columns import join
from stopwise.live.running.answer import Answer
from stopwise.problem import IntArray


@dataclass(frozen=True)
class Batch:
    """Answers of many items, as columns.

    Attributes:
        answers: one for each item; an array where stages gave arrays. None where there is none.
        stages: the stage, 0-based, that answered; -1 where none did.
        depths: the stage at which each item was to stop, with `probabilities`; -1 where it was not
            begun, because the budget was spent.
        costs: of each item.
        errors: why items have no answer, by their place: `NoAnswerError` or `BudgetError`.

    >>> from stopwise import Cascade, Stage
    >>> stages = [Stage("rule", str.islower, 1), Stage("model", str.isalpha, 5)]
    >>> cascade = Cascade(stages, "fixed:stage=1", mistake_cost=20)
    >>> batch = cascade.answer_many(["a", "B", "3"]).collect()
    >>> batch.answers, batch.stages.tolist(), batch.costs.tolist()
    ([True, True, False], [1, 1, 1], [6.0, 6.0, 6.0])
    >>> one_by_one = Batch.of_answers([cascade.answer("a")], cascade.learner.stages)
    >>> Batch.joined([batch, one_by_one]).answers
    [True, True, False, True]
    """

    answers: Sequence[Any]
    stages: IntArray
    depths: IntArray
    probabilities: FloatArray
    costs: FloatArray
    singles: Callable[[int], Answer] = field(repr=False)
    errors: Mapping[int, Exception] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.stages)

    def __iter__(self) -> Iterator[Answer]:
        return (self.singles(at) for at in range(len(self)))

    @classmethod
    def of_answers(cls, answers: Sequence[Answer], names: Sequence[str]) -> Batch:
        """A batch of answers that were given one by one, of stages with these names."""
        at = {name: number for number, name in enumerate(names)} | {None: -1}
        return cls(
            [one.answer for one in answers],
            np.array([at[one.stage] for one in answers], dtype=np.int64),
            np.array([at[one.depth] for one in answers], dtype=np.int64),
            np.array([one.probability for one in answers], dtype=np.float64),
            np.array([one.cost for one in answers], dtype=np.float64),
            answers.__getitem__,
            {place: one.error for place, one in enumerate(answers) if one.error is not None},
        )

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """Several batches as one."""
        if len(batches) == 1:
            return batches[0]
        starts = np.cumsum([0, *map(len, batches)])

        def single(at: int) -> Answer:
            which = int(np.searchsorted(starts, at, side="right")) - 1
            return batches[which].singles(at - int(starts[which]))

        def column(name: str, kind: type) -> Any:
            return np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in batches)])

        return cls(
            join([batch.answers for batch in batches]),
            column("stages", np.int64),
            column("depths", np.int64),
            column("probabilities", np.float64),
            column("costs", np.float64),
            single,
            {
                int(start) + at: error
                for start, batch in zip(starts[:-1], batches, strict=True)
                for at, error in batch.errors.items()
            },
        )
