"""What has been seen of the items so far, and what it cost: no output is read before it is paid."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from stopwise.arrays import IntArray
from stopwise.costs import Calls, FloatArray
from stopwise.situations.observations import ABSTAINED, NOT_CALLED, Observations


class OutputSource(Protocol):
    """Where outputs come from: a log that has them all, or stages that are called."""

    def __len__(self) -> int:
        """How many items there are."""
        ...

    def call(self, stage: int, items: IntArray) -> tuple[IntArray, FloatArray]:
        """A stage's outputs on items, as codes (-1: abstained), and its confidences or nan."""
        ...


class FromRows:
    """Outputs out of complete rows.

    >>> rows = Observations(("no", "yes"), np.array([[0, 1], [1, 1]]))
    >>> FromRows(rows).call(0, np.array([1]))
    (array([1]), array([nan]))
    """

    def __init__(self, rows: Observations) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def call(self, stage: int, items: IntArray) -> tuple[IntArray, FloatArray]:
        """The outputs, as the rows have them."""
        codes = self._rows.codes[items, stage]
        if self._rows.confidences is None:
            return codes, np.full(len(items), np.nan)
        return codes, self._rows.confidences[items, stage]


class Seen:
    """The outputs that were paid for.

    Args:
        source: gives outputs.
        own_costs: each stage's own cost.
        calls: "cascade" if a stage needs those before it, "alone" if each can be called alone.

    Attributes:
        codes: outputs by item and stage; -2 where not called.
        confidences: beside them; not a number where there is none.
        spent: for every item, the cost of its calls.

    >>> rows = Observations(("no", "yes"), np.array([[0, 1, 1], [1, 1, 1]]))
    >>> seen = Seen(FromRows(rows), np.array([1.0, 2.0, 4.0]), "cascade")
    >>> seen.reach(np.array([0]), 2)
    >>> seen.spent, seen.answers(1)
    (array([7., 0.]), array([ 1, -2]))
    """

    def __init__(self, source: OutputSource, own_costs: FloatArray, calls: Calls) -> None:
        self._source = source
        self.own_costs = np.asarray(own_costs, dtype=np.float64)
        self.calls = calls
        shape = (len(source), len(self.own_costs))
        self.codes = np.full(shape, NOT_CALLED, dtype=np.int64)
        self.confidences = np.full(shape, np.nan)
        self.spent = np.zeros(len(source))

    @property
    def last(self) -> int:
        """The number of the last stage."""
        return len(self.own_costs) - 1

    def step_cost(self, start: int, stage: int) -> float:
        """What it costs to get a stage's answer from where an item stands."""
        first = start + 1 if self.calls == "cascade" else stage
        return float(self.own_costs[first : stage + 1].sum())

    @property
    def cost_of_last(self) -> float:
        """What the last stage's answer costs one item from the start."""
        return self.step_cost(-1, self.last)

    def reach(self, items: IntArray, stage: int) -> None:
        """Call a stage, in a cascade those before it too; what was called is not called again."""
        for at in range(stage + 1) if self.calls == "cascade" else (stage,):
            new = items[self.codes[items, at] == NOT_CALLED]
            if len(new):
                self.codes[new, at], self.confidences[new, at] = self._source.call(at, new)
                self.spent[new] += self.own_costs[at]

    def answers(self, stage: int) -> IntArray:
        """The answer of items that stop at a stage; an abstention leaves the one before it."""
        if self.calls == "alone":
            return self.codes[:, stage].copy()
        standing = np.full(len(self.codes), ABSTAINED, dtype=np.int64)
        for at in range(stage + 1):
            standing = np.where(self.codes[:, at] >= 0, self.codes[:, at], standing)
        return np.where(self.codes[:, stage] == NOT_CALLED, NOT_CALLED, standing)

    def differs(self, stage: int, items: IntArray) -> FloatArray:
        """1 where the answer at a stage is not the last stage's; both must have been called."""
        different = self.answers(stage)[items] != self.answers(self.last)[items]
        return np.asarray(different, dtype=np.float64)
