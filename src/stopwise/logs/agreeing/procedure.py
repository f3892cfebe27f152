"""The procedure behind a promise of agreement: look at a few, plan, then answer and test.

1. The first stage is called on every item, and a few items, drawn at random, run to the end.
2. From these the risk of a difference is estimated after every stage, a price of differences and
   a design of looks are chosen, and items are called as far as the plan says.
3. Items are taken in the order of risk for cost saved; each is looked at with the design's chance,
   else answered where it stands. What looks find refines the order of those to come. When more
   differences were found than the design allows, the next design of the ladder goes on if that is
   worth its looks (`taking.py`); else all items not yet taken go to the last stage.

The plan and the ladder are fixed before step 3, and in it an item's place depends only on what was
seen before its own coin was thrown, so `looks.py` applies as it stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.costs import FloatArray
from stopwise.logs.agreeing.describing import Describer
from stopwise.logs.agreeing.looks import Design, designs
from stopwise.logs.agreeing.planning import best_design
from stopwise.logs.agreeing.regression import fit_logistic, risks
from stopwise.logs.agreeing.seen import Seen
from stopwise.logs.agreeing.taking import SHARES, Taking, ladder
from stopwise.situations.observations import NOT_CALLED

_FIRST = (1.2, 2.0)
"""How many items run to the end at first, in roots of their number; more with stages between."""

_PARTS = 15
_FEWEST_TAKEN = 50


@dataclass(frozen=True)
class ItemOutcomes:
    """What became of every item.

    Attributes:
        stages: the stage whose answer each item has.
        looked: whether the last stage was called to look.
        design: of the looks.
        found: differences that looks found, up to the one that ended the taking.
        price: of a difference, by which items were sent on.
    """

    stages: IntArray
    looked: NDArray[np.bool_]
    design: Design
    found: int
    price: float


class _Risks:
    """Risks after each stage, learned from the items that were looked at."""

    def __init__(self, seen: Seen, features: Mapping[str, NDArray[Any]] | None) -> None:
        self._seen = seen
        self._features = features
        self._describers: dict[int, Describer] = {}
        self._weights: dict[int, FloatArray] = {}
        self._columns: dict[int, FloatArray] = {}
        self._described: dict[int, NDArray[np.bool_]] = {}

    def learn(self, looked: IntArray) -> None:
        """Fit all stages again, from where they stood."""
        for stage in range(self._seen.last):
            items = looked[self._seen.codes[looked, stage] != NOT_CALLED]
            known = np.flatnonzero(self._seen.codes[:, stage] != NOT_CALLED)
            if stage not in self._describers:
                self._describers[stage] = Describer(self._seen, stage, known, self._features)
            self._weights[stage] = fit_logistic(
                self._rows(stage, items),
                self._seen.differs(stage, items),
                self._describers[stage].penalty,
                self._weights.get(stage),
            )

    def after(self, stage: int, items: IntArray) -> FloatArray:
        """The risks of items that stand at a stage."""
        return risks(self._rows(stage, items), self._weights[stage])

    def _rows(self, stage: int, items: IntArray) -> FloatArray:
        """The numbers of situations; made once, because calls that were made do not change."""
        describer = self._describers[stage]
        if stage not in self._columns:
            item_count = len(self._seen.codes)
            self._columns[stage] = np.empty((item_count, len(describer.penalty)))
            self._described[stage] = np.zeros(item_count, dtype=np.bool_)
        new = items[~self._described[stage][items]]
        if len(new):
            self._columns[stage][new] = describer.rows(new)
            self._described[stage][new] = True
        return self._columns[stage][items]


def keep_promise(
    seen: Seen,
    allowed: int,
    alpha: float,
    random: np.random.Generator,
    features: Mapping[str, NDArray[Any]] | None = None,
) -> ItemOutcomes:
    """Answer all items so that more than `allowed` differ with a chance of at most `alpha`.

    Args:
        seen: the items, nothing called yet; afterwards, every call that was made.
        allowed: how many answers may differ from the last stage's.
        alpha: the chance with which the promise may be broken.
        random: where the coins come from; must know nothing of the items.
    """
    item_count = len(seen.codes)
    everyone = np.arange(item_count)
    seen.reach(everyone, 0)
    looked = np.zeros(item_count, dtype=np.bool_)
    looked[_draw_first(item_count, seen.last, random)] = True
    for stage in range(1, seen.last + 1):
        seen.reach(np.flatnonzero(looked), stage)
    model = _Risks(seen, features)
    model.learn(np.flatnonzero(looked))
    if seen.last == 1:
        _look_at_the_hopeless(seen, looked, model, allowed, random)

    first, others = np.flatnonzero(looked), np.flatnonzero(~looked)
    known = [model.after(stage, first) for stage in range(seen.last)]
    possible = designs(allowed, SHARES[0] * alpha)
    design, plan = best_design(possible, known, model.after(0, others), seen)
    at = np.zeros(item_count, dtype=np.int64)
    for stage in range(seen.last):
        here = others[at[others] == stage]
        goes = plan.choose(stage, model.after(stage, here))
        for target in range(stage + 1, seen.last):
            on = here[goes == target]
            seen.reach(on, target)
            at[on] = target

    taking = _take(seen, model, at, looked, ladder(design, allowed, alpha), random)
    stages = np.full(item_count, seen.last, dtype=np.int64)
    early = taking.answered_early()
    stages[early] = at[early]
    seen.reach(np.flatnonzero(stages == seen.last), seen.last)
    return ItemOutcomes(stages, looked, taking.design, taking.found, plan.price)


def _draw_first(item_count: int, last: int, random: np.random.Generator) -> IntArray:
    """Items that run to the end before anything is decided; with stages between, some more."""
    wanted = int(_FIRST[last > 1] * math.sqrt(item_count))
    return np.asarray(random.permutation(item_count)[: min(max(wanted, 1), item_count)])


def _look_at_the_hopeless(
    seen: Seen, looked: NDArray[np.bool_], model: _Risks, allowed: int, random: np.random.Generator
) -> None:
    """Learn from items that will not be answered early anyway: looking at them costs nothing."""
    others = np.flatnonzero(~looked)
    risk = model.after(0, others)
    order = np.argsort(risk, kind="stable")
    within = int((np.cumsum(risk[order]) <= 1.3 * allowed).sum()) + len(looked) // 20
    hopeless = others[order[within:]]
    more = random.permutation(hopeless)[: min(200, len(hopeless) // 3)]
    if len(more):
        looked[more] = True
        seen.reach(more, seen.last)
        model.learn(np.flatnonzero(looked))


def _take(
    seen: Seen,
    model: _Risks,
    at: IntArray,
    looked: NDArray[np.bool_],
    rungs: tuple[Design, ...],
    random: np.random.Generator,
) -> Taking:
    """Take items by risk for cost saved, as long as a design goes on or the next is worth it.

    The looks are marked in `looked`.
    """
    saved = np.asarray([seen.step_cost(stage, seen.last) for stage in range(seen.last)])

    def look(items: IntArray) -> NDArray[np.bool_]:
        seen.reach(items, seen.last)
        looked[items] = True
        differs = np.zeros(len(items), dtype=np.bool_)
        for stage in range(seen.last):
            here = at[items] == stage
            differs[here] = seen.differs(stage, items[here]) > 0
        return differs

    def risks_of(items: IntArray) -> FloatArray:
        risk = np.empty(len(items))
        for stage in range(seen.last):
            here = at[items] == stage
            risk[here] = model.after(stage, items[here])
        return risk

    taking = Taking(rungs, look, random)
    left = np.flatnonzero(~looked)
    portion = max(_FEWEST_TAKEN, len(left) // _PARTS)
    while len(left):
        risk = risks_of(left)
        order = np.argsort(risk / np.maximum(saved[at[left]], 1e-300), kind="stable")
        left, risk = left[order], risk[order]
        goes_on = taking.end == len(taking.items)
        while not goes_on and _worth_climbing(taking, risk, saved[at[left]], risks_of, saved, at):
            goes_on = taking.climb()
        if not goes_on:
            break
        items, left = left[:portion], left[portion:]
        taking.take(items)
        model.learn(np.flatnonzero(looked))
    # What was taken behind the end of every design is called like all others.
    return taking


def _worth_climbing(
    taking: Taking,
    risk: FloatArray,
    worth: FloatArray,
    risks_of: Callable[[IntArray], FloatArray],
    saved: FloatArray,
    at: IntArray,
) -> bool:
    """Whether the next design is expected to save more than its additional looks cost.

    Args:
        risk: of the items not yet taken, in the order in which they would be.
        worth: what an early answer saves on each of them.
    """
    if taking.rung + 1 == len(taking.rungs):
        return False
    now, next_rung = taking.design, taking.rungs[taking.rung + 1]
    met = (taking.found / now.rate + float(risks_of(taking.items).sum())) / 2
    more = int(np.searchsorted(np.cumsum(risk), next_rung.differences - met))
    beyond = float(saved[at[taking.items[taking.end :]]].sum())
    gain = (1 - next_rung.rate) * (float(worth[:more].sum()) + beyond)
    looks = (next_rung.rate - now.rate) * float(saved[at[taking.items[: taking.end]]].sum())
    return gain > looks
