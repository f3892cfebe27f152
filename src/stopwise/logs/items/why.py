"""Why a rule stops where it does, in words: the situations that carry most items."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from stopwise.logs.formatting import printable
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.binning import ABSTAINED_LABEL, MISSING_BIN, OTHER_LABEL
from stopwise.situations.keys import decode

MIXED = 0.95
"""Where at least this share of a coarse situation's items is decided alike, it is shown as one."""


@dataclass(frozen=True)
class Reason:
    """One line of the rule.

    Attributes:
        stage: after which stage.
        stop: whether it stops there.
        share: of all items, those that come by and are decided by this line.
        words: the line.
        changed: of those, the expected loss of stopping there, in mistakes.
    """

    stage: int
    stop: bool
    share: float
    words: str
    changed: float


@dataclass(frozen=True)
class _Cell:
    """Items that are shown as one: which outputs agree, the bins of confidence, the labels."""

    partition: tuple[int, ...]
    low: int
    high: int
    label: int | None
    stop: bool
    number: float
    loss: float


def reasons(rule: Rule, most: int = 12) -> list[Reason]:
    """The lines that carry most items, each as a sentence.

    >>> import numpy as np
    >>> from stopwise import Costs
    >>> from stopwise.situations.observations import Observations
    >>> codes = np.array([[0, 0]] * 300 + [[1, 0]] * 150 + [[1, 1]] * 150)
    >>> rows = Observations(("keep", "refund"), codes)
    >>> rule = Rule.fit(("small", "large"), rows, Costs.from_stages([1, 5], mistake_cost=20))
    >>> for reason in reasons(rule):
    ...     print(reason.words)
    stop after small when it says keep
    go on after small when it says refund
    """
    found: list[Reason] = []
    arriving: dict[int, float] = {key: float(n) for key, n in rule.counts.first.items()}
    total = max(sum(arriving.values()), 1.0)
    for stage in range(len(rule.stages) - 1):
        cells = _cells(rule, stage, arriving)
        some_silent = any(cell.partition[-1] < 0 for cell in cells)
        for cell in cells:
            found.append(
                Reason(
                    stage=stage,
                    stop=cell.stop,
                    share=cell.number / total,
                    words=printable(_sentence(rule, stage, cell, some_silent)),
                    changed=cell.loss,
                )
            )
        arriving = _going_on(rule, stage, arriving)
    found.sort(key=lambda reason: -reason.share)
    return found[:most]


def _going_on(rule: Rule, stage: int, arriving: dict[int, float]) -> dict[int, float]:
    """How many items come to each situation after the next stage, under the rule."""
    leaving: dict[int, int] = {}
    for (before, _), number in rule.counts.moves[stage].items():
        leaving[before] = leaving.get(before, 0) + number
    next_shares: dict[int, float] = {}
    for (before, after), number in rule.counts.moves[stage].items():
        if before in arriving and not rule.stops(stage, before):
            share = arriving[before] * number / leaving[before]
            next_shares[after] = next_shares.get(after, 0.0) + share
    return next_shares


def _cells(rule: Rule, stage: int, arriving: dict[int, float]) -> list[_Cell]:
    """Situations gathered into as few cells as the decisions allow."""
    tree: dict[tuple[int, ...], dict[int, dict[int, list[tuple[bool, float, float]]]]] = {}
    for key, number in arriving.items():
        parts = decode(key)
        decision = rule.decide(stage, key)
        cell = tree.setdefault(parts.partition, {}).setdefault(parts.confidence, {})
        cell.setdefault(parts.label, []).append((decision.stop, number, decision.losses[stage]))
    result: list[_Cell] = []
    for partition, bins in tree.items():
        cells: list[_Cell] = []
        for confidence, labels in sorted(bins.items()):
            everything = [entry for entries in labels.values() for entry in entries]
            if _alike(everything):
                cells.append(_cell(partition, confidence, None, everything))
            else:
                cells += [
                    _cell(partition, confidence, label, entries)
                    for label, entries in sorted(labels.items())
                ]
        cells.sort(key=lambda c: (c.label is not None, c.label or 0, c.low))
        for _, run in groupby(cells, key=lambda c: (c.label, c.stop)):
            result += _joined(list(run))
    return result


def _alike(entries: list[tuple[bool, float, float]]) -> bool:
    total = sum(number for _, number, _ in entries)
    stopping = sum(number for stop, number, _ in entries if stop)
    return max(stopping, total - stopping) >= MIXED * total


def _cell(
    partition: tuple[int, ...],
    confidence: int,
    label: int | None,
    entries: list[tuple[bool, float, float]],
) -> _Cell:
    total = sum(number for _, number, _ in entries)
    stopping = sum(number for stop, number, _ in entries if stop)
    loss = sum(number * loss for _, number, loss in entries) / total
    return _Cell(partition, confidence, confidence, label, stopping >= total / 2, total, loss)


def _joined(run: list[_Cell]) -> list[_Cell]:
    """Neighbouring bins of confidence shown as one."""
    result = [run[0]]
    for cell in run[1:]:
        before = result[-1]
        if cell.low == before.high + 1:
            number = before.number + cell.number
            loss = (before.loss * before.number + cell.loss * cell.number) / number
            result[-1] = _Cell(
                cell.partition, before.low, cell.high, cell.label, cell.stop, number, loss
            )
        else:
            result.append(cell)
    return result


def _sentence(rule: Rule, stage: int, cell: _Cell, some_silent: bool) -> str:
    name = rule.stages[stage]
    conditions = [
        part
        for part in (
            _confidence(rule, stage, cell),
            _label(rule, stage, cell),
            _agreement(rule, cell),
        )
        if part
    ]
    if not conditions and some_silent:
        conditions = ["it answers"]
    start = f"{'stop' if cell.stop else 'go on'} after {name}"
    return f"{start} when {' and '.join(conditions)}" if conditions else f"{start}, always"


def _confidence(rule: Rule, stage: int, cell: _Cell) -> str:
    edges = rule.counts.binning.edges[stage]
    if cell.low == MISSING_BIN:
        return "it does not say how sure it is" if edges else ""
    low = edges[cell.low - 1] if cell.low else None
    high = edges[cell.high] if cell.high < len(edges) else None
    if low is not None and high is not None:
        return f"it is {low:.3g} to {high:.3g} sure"
    if low is not None:
        return f"it is at least {low:.3g} sure"
    return f"it is less than {high:.3g} sure" if high is not None else ""


def _label(rule: Rule, stage: int, cell: _Cell) -> str:
    if cell.label == ABSTAINED_LABEL or cell.partition[-1] < 0:
        return "it gives no answer"
    if cell.label is None:
        return ""
    if cell.label == OTHER_LABEL:
        return "it says something rare"
    return f"it says {rule.counts.binning.labels[stage][cell.label]}"


def _agreement(rule: Rule, cell: _Cell) -> str:
    """Whom the stage agrees with, of those before it."""
    *earlier, own = cell.partition
    if not earlier or own < 0:
        return ""
    if max(earlier) < 0:
        return f"{rule.stages[0] if len(earlier) == 1 else 'no stage before it'} gave no answer"
    agree = [rule.stages[at] for at, group in enumerate(earlier) if group == own]
    if len(earlier) == 1:
        return f"it {'agrees with' if agree else 'differs from'} {rule.stages[0]}"
    if len(agree) in (0, len(earlier)):
        return f"it agrees with {'all' if agree else 'none'} before it"
    return f"it agrees with {' and '.join(agree)} alone"
