"""Learning as it goes: rounds in, counts and from time to time a new rule out.

Rounds are kept raw until the bins are settled: bins are cut again as rounds grow fourfold, and all
rounds so far are counted again by the new bins (a new epoch). After that only counts are kept, so
memory is bounded. The rule is made again whenever rounds have grown by three fifths, and more
seldom at the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stopwise.agreement import partitions
from stopwise.arrays import IntArray
from stopwise.checks import fail
from stopwise.costs import Costs
from stopwise.decisions import optimal_stages
from stopwise.policies.per_item.situation import (
    ItemLearner,
    ItemPolicy,
    RowPolicy,
    SituationPolicy,
    StoppingRule,
)
from stopwise.situations.binning import Binning
from stopwise.situations.keys import situations
from stopwise.situations.observations import NOT_CALLED, Observations
from stopwise.situations.references import Held
from stopwise.situations.transitions import Transitions

GROWTH = (4.0, 2.0, 1.6)
"""The rule is made again when rounds have grown by this factor: after the bins were cut once, twice
and from then on. What the first few hundred rounds lose by it does not show in ten thousand."""

EPOCHS = (1, 4, 16, 64)
"""Bins are cut when rounds reach these multiples of the rounds that are always full."""


@dataclass
class Learned:
    """Everything that a situation policy has learned: what rounds have left behind.

    Attributes:
        round: rounds so far.
        counts: under the present bins; None until the first are cut.
        history: the rounds themselves, as long as bins may still be cut again.
        full: which of them were full runs.
        settled: the bins are given and are not cut again, as where a rule was fitted on a log.
        steady: see `rounds_until_next`.
        ahead: all rows of a run over a log, so that their situations are made at once.
    """

    policy: SituationPolicy
    stages: tuple[str, ...]
    costs: Costs
    round: int = 0
    counts: Transitions | None = None
    history: list[Observations] = field(default_factory=list)
    full: list[NDArray[np.bool_]] = field(default_factory=list)
    settled: bool = False
    steady: bool = False
    ahead: Observations | None = None
    _rule: StoppingRule | None = None
    _due: bool = False
    _keys_ahead: IntArray | None = None
    _keys_from: int = 0

    def __post_init__(self) -> None:
        if not self.policy.learns:
            none = ((),) * len(self.stages)
            self.counts = Transitions(Binning(edges=none, labels=none))
            self._rule = self.policy.rule(self.stages, self.counts, self.costs)

    @property
    def rule(self) -> StoppingRule | None:
        """The rule of the last `refresh`; made when first asked for, which a run's last never is.

        None until the first bins are cut.
        """
        if self._due and self.counts is not None:
            self._rule = self.policy.rule(self.stages, self.counts, self.costs)
            self._due = False
        return self._rule

    def until_next(self) -> int:
        """How many rounds may pass before something is to be made again."""
        if not self.policy.learns:
            return 100_000
        return rounds_until_next(
            self.round, self.policy.first_rounds, settled=self.settled, steady=self.steady
        )

    def record(self, rows: Observations, full: NDArray[np.bool_]) -> None:
        """Count finished rounds; `full` says which were full runs."""
        _ = self.rule  # of the counts as they are, before they count on
        keys = None if self.counts is None else self._keys(rows)
        self.round += len(rows)
        if not self.policy.learns:
            return
        if not self.settled and self.round <= self.policy.first_rounds * EPOCHS[-1]:
            self.history.append(rows)
            self.full.append(full)
        if keys is not None and self.counts is not None:
            self.counts.add_keys(np.where(rows.codes == NOT_CALLED, -1, keys), full)

    def depths(self, rows: Observations) -> IntArray:
        """Where items would stop; at the first stage as long as there is no rule."""
        rule = self.rule
        if rule is None or self.counts is None:
            return np.zeros(len(rows), dtype=np.int64)
        return rule.depths_of(self._keys(rows))

    def answering(self, rows: Observations) -> IntArray:
        """Of rows that called every stage: whose answer loses least against the reference."""
        held = getattr(self.rule, "held", None)
        if held is None:
            return np.full(len(rows), rows.stage_count - 1, dtype=np.int64)
        return least_loss(held, rows)

    def _keys(self, rows: Observations) -> IntArray:
        """The situations of the next rows under the present bins."""
        assert self.counts is not None
        if self.ahead is None:
            return situations(rows, self.counts.binning)
        if self._keys_ahead is None:
            fixed = self.settled or not self.policy.learns
            cutting_rounds = (
                [] if fixed else [self.policy.first_rounds * factor for factor in EPOCHS]
            )
            end = next((cut for cut in cutting_rounds if cut > self.round), len(self.ahead))
            self._keys_from = self.round
            part = self.ahead.where(slice(self.round, end))
            self._keys_ahead = situations(part, self.counts.binning)
        start = self.round - self._keys_from
        return self._keys_ahead[start : start + len(rows)]

    def refresh(self) -> None:
        """Cut new bins if it is time to; the rule is made again from what is counted now."""
        if not self.policy.learns:
            return
        cutting_rounds = [self.policy.first_rounds * factor for factor in EPOCHS]
        if not self.settled and (self.round in cutting_rounds or self.counts is None):
            rows, full = joined(self.history), np.concatenate(self.full)
            self.counts = Transitions.of(rows, Binning.fit(rows), full=full)
            self._keys_ahead = None
            if self.round >= cutting_rounds[-1]:
                self.history, self.full = [], []
        self._due = True


def rounds_until_next(round: int, first_rounds: int, *, settled: bool, steady: bool = False) -> int:
    """After this many rounds, how many more may pass before something is to be made again.

    Args:
        settled: the bins are not cut again.
        steady: no more seldom at the start: where only full runs are counted, so that each stands
            for many rounds, and under a promise, whose price follows the rounds.

    >>> [rounds_until_next(at, 32, settled=False) for at in (0, 32, 128, 4000)]
    [32, 96, 128, 2400]
    >>> [rounds_until_next(at, 32, settled=False, steady=True) for at in (32, 128)]
    [19, 76]
    """
    if round < first_rounds and not settled:
        return first_rounds - round
    cutting_rounds = [] if settled else [first_rounds * factor for factor in EPOCHS]
    cuts = sum(cut <= round for cut in cutting_rounds)
    growth = GROWTH[-1] if settled or steady else GROWTH[min(cuts, len(GROWTH)) - 1]
    grown = max(int(round * growth), round + 1)
    return min([grown, *cutting_rounds[cuts : cuts + 1]]) - round


def least_loss(held: Held, rows: Observations) -> IntArray:
    """The stage whose answer loses least, given all outputs; the deepest of equals.

    >>> from stopwise.situations.references import hold_against
    >>> codes = np.array([[0, 0, 0]] * 40 + [[1, 0, 0]] * 4 + [[0, 1, 0]] * 4 + [[0, 0, 1]] * 40)
    >>> rows = Observations(("no", "yes"), codes)
    >>> held = hold_against(Transitions.of(rows, Binning.fit(rows)))
    >>> least_loss(held, rows.where(np.array([0, 87]))).tolist()      # two against one
    [2, 1]
    """
    groups = partitions(np.where(rows.codes < 0, -1, rows.codes))
    # There are few ways in which outputs agree: as one number each, every one is asked for once.
    number = (groups + 1) @ (np.int64(16) ** np.arange(rows.stage_count))
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return np.asarray(optimal_stages(held.loss(groups[first]))[which])


def joined(parts: list[Observations]) -> Observations:
    """Rows one after the other; of their labels, later ones may only have more.

    >>> rows = Observations(("a",), np.zeros((1, 2), dtype=int))
    >>> len(joined([rows, rows]))
    2
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    confidences = None
    if first.confidences is not None:
        confidences = np.concatenate([p.confidences for p in parts if p.confidences is not None])
    features = {
        name: np.concatenate([np.asarray(part.features[name]) for part in parts])
        for name in first.features
    }
    return Observations(
        max((part.labels for part in parts), key=len),
        np.concatenate([part.codes for part in parts]),
        confidences,
        features,
    )


class ItemRun(NamedTuple):
    """What came of a run over a log.

    Attributes:
        depths: how deep each round went: what is paid for.
        full: which rounds were full runs.
        learned: what was learned.
        answering: whose answer each round gives: that of the stage it stopped at, but after the
            last stage that of the stage that is likeliest right, given all outputs.
    """

    depths: IntArray
    full: NDArray[np.bool_]
    learned: ItemLearner
    answering: IntArray


def run_over(
    policy: ItemPolicy,
    stages: tuple[str, ...],
    rows: Observations,
    costs: Costs,
    rng: np.random.Generator,
) -> ItemRun:
    """Run a policy over complete rows as if live.

    In each round the policy is shown the stages that it called and no more. Between two makings of
    the rule all rounds are decided at once, which changes nothing: the rule is the same for all.

    >>> from stopwise.policies.per_item.policy import PerItem
    >>> rows = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 500))
    >>> costs = Costs.from_stages([1, 5], mistake_cost=20)
    >>> run = run_over(PerItem(), ("small", "large"), rows, costs, np.random.default_rng(0))
    >>> run.depths[-4:].tolist(), run.learned.round     # "no" is never changed, "yes" always
    ([0, 1, 0, 1], 1000)
    """
    draws = rng.random(len(rows))
    full = draws < policy.full_run_probabilities(np.arange(1, len(rows) + 1), costs)
    last = rows.stage_count - 1
    depths = np.full(len(rows), last, dtype=np.int64)
    answering = depths.copy()
    learned: ItemLearner
    if isinstance(policy, RowPolicy):
        learned = policy.learner(stages, costs)
    elif isinstance(policy, SituationPolicy):
        learned = Learned(policy, stages, costs, ahead=rows)
    else:
        raise fail("policy", policy.label(), "one that learns from situations or from rows")
    start = 0
    while start < len(rows):
        end = min(start + learned.until_next(), len(rows))
        part = rows.where(slice(start, end))
        own = np.where(full[start:end], last, learned.depths(part))
        depths[start:end] = answering[start:end] = own
        ended = np.flatnonzero(own == last)
        if len(ended):
            answering[start + ended] = learned.answering(part.where(ended))
        learned.record(called(part, own), full[start:end])
        learned.refresh()
        start = end
    return ItemRun(depths, full, learned, answering)


def learn_over(
    policy: ItemPolicy,
    stages: tuple[str, ...],
    rows: Observations,
    costs: Costs,
    rng: np.random.Generator,
) -> tuple[IntArray, NDArray[np.bool_], ItemLearner]:
    """The first three of `run_over`: depths, which were full runs, what was learned."""
    run = run_over(policy, stages, rows, costs, rng)
    return run.depths, run.full, run.learned


def called(rows: Observations, depths: IntArray) -> Observations:
    """The rows as a cascade leaves them that stopped at these depths.

    >>> rows = Observations(("a", "b"), np.array([[0, 1], [1, 1]]))
    >>> called(rows, np.array([0, 1])).codes.tolist()
    [[0, -2], [1, 1]]
    """
    beyond = np.arange(rows.stage_count)[None] > depths[:, None]
    return Observations(
        rows.labels,
        np.where(beyond, NOT_CALLED, rows.codes),
        None if rows.confidences is None else np.where(beyond, np.nan, rows.confidences),
        rows.features,
    )
