"""`audit`: settle what is not knowable without labels, with as few labels as possible.

Two stages differ in error only by the items on which they differ, so only those are worth a label:
gamma_i - gamma_j = p_ij E[Z], where Z is +1 if i is wrong and j right, -1 if i is right and j
wrong, 0 if both are wrong. p_ij is known; E[Z] over the differing items of the log is learned from
labels. Stage j is worth its price over i if E[Z] > lambda (C_j - C_i) /
p_ij. The items on which the stages still in question differ are put into one random order, and
labelled in that order; for every pair, its own items then come in a uniformly random order too,
so that every label counts for all the pairs it bears on. A stage that has lost to another is out,
and items on which only such stages differ are skipped. What the stages' agreement predicts of Z
makes its mean known with fewer labels (`settling`); the intervals shown for every pair hold at any
time and need no prediction (`confidence_sequence`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from stopwise.abstentions import UNKNOWN, Abstentions
from stopwise.checks import StopwiseError, fail, finite_number, names_options
from stopwise.costs import FloatArray
from stopwise.decisions import optimal_stage
from stopwise.estimating import answer_probabilities
from stopwise.logs.auditing.confidence_sequence import first_rejection, mean_bounds
from stopwise.logs.auditing.result import Audit, PairFinding
from stopwise.logs.auditing.settling import first_settled
from stopwise.logs.reading.call_order import in_call_order
from stopwise.logs.reading.live import completed
from stopwise.logs.reading.pairs import pair_indices
from stopwise.logs.reading.rows import LogRows, read_rows
from stopwise.logs.settings import LogOptions, LogSettings, settings_from
from stopwise.problem import IntArray

DEEP_PAYS, SHALLOW_ENOUGH = 1, -1


@dataclass(frozen=True)
class AuditPlan:
    """Which stages are in question in a log, and what has to be learned of each pair.

    Attributes:
        rows: the items, of all of which the answer at every stage is known.
        level: probability with which the audit ends with the truly best stage of the log.
        right: for every item and stage, how probable it is, without a label, that the answer is
            right (`stopwise.estimating`).
        tolerance: a difference in cost, in mistakes per item, that does not matter.
        strict: settle only by confidence sequences, which hold for any log and at any time.
        abstentions: what it means that a stage gives no answer.
    """

    rows: LogRows
    level: float
    right: FloatArray
    tolerance: float = 0.0
    strict: bool = False
    abstentions: Abstentions = "go on"

    @cached_property
    def differ(self) -> dict[tuple[int, int], NDArray[np.bool_]]:
        """For every pair, the items on which it differs."""
        codes = self.rows.answers
        return {(i, j): codes[:, i] != codes[:, j] for i, j in pair_indices(codes.shape[1])}

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """Stages that are not ruled out before any label: none shallower makes them useless."""
        thresholds = self.rows.costs.thresholds
        share = {pair: float(mask.mean()) for pair, mask in self.differ.items()}
        return tuple(
            j
            for j in range(len(self.rows.stages))
            if all(share[i, j] > thresholds[i, j] + self.tolerance for i in range(j))
        )

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of candidates, the shallower first."""
        return [(i, j) for i in self.candidates for j in self.candidates if i < j]

    @property
    def alpha(self) -> float:
        """The chance of error that each pair may use up.

        The best stage can only be lost in one of the pairs that it belongs to.
        """
        return (1 - self.level) / max(len(self.candidates) - 1, 1)

    def worth_labelling(self, stages: tuple[int, ...]) -> NDArray[np.bool_]:
        """Items on which at least two of these stages differ."""
        codes = self.rows.answers[:, list(stages)]
        return np.asarray((codes != codes[:, :1]).any(axis=1))

    def claims(self, pair: tuple[int, int]) -> tuple[int, float, float]:
        """How many items the pair differs on, and the means of Z to be refuted on either side.

        Above the first, the deeper stage is worth its price (or short of it by no more than the
        tolerance); not above the second, it is not worth more than that.
        """
        size = int(self.differ[pair].sum())
        scale = len(self.rows.codes) / size
        threshold = float(self.rows.costs.thresholds[pair])
        return size, (threshold - self.tolerance) * scale, (threshold + self.tolerance) * scale

    def gain(self, pair: tuple[int, int], items: IntArray, truth: IntArray) -> FloatArray:
        """Z of labelled items."""
        i, j = pair
        codes = self.rows.answers[items]
        wrong_i = (codes[:, i] != truth).astype(np.float64)
        return np.asarray(wrong_i - (codes[:, j] != truth))

    def predicted(self, pair: tuple[int, int], items: IntArray) -> FloatArray:
        """What Z of these items is expected to be, without their labels."""
        i, j = pair
        return np.asarray(self.right[items, j] - self.right[items, i])

    def decide(
        self, pair: tuple[int, int], items: IntArray, truth: IntArray
    ) -> tuple[int, int] | None:
        """When labels of these items of a pair, in random order, settle it, and for which side."""
        size, above, below = self.claims(pair)
        gains = self.gain(pair, items, truth)
        if self.strict:
            # Each claim is one-sided, and only one of the two can be false: alpha is for that.
            return first_rejection(gains, size, above, below, 2 * self.alpha)
        everything = np.flatnonzero(self.differ[pair])
        centre = float(self.predicted(pair, everything).mean())
        return first_settled(
            gains, self.predicted(pair, items) - centre, size, above, below, self.alpha
        )


@names_options(LogOptions)
def plan_audit(
    log: object,
    settings: LogSettings | None = None,
    *,
    tolerance: float = 0.0,
    strict: bool = False,
    show: str | None = None,
    **given: Unpack[LogOptions],
) -> AuditPlan:
    """Read a log and find what is in question.

    Where abstentions are left out, so are items on which some stage abstained; and, where a truth
    is named to simulate with, those without one.

    Args:
        tolerance: a difference in cost units per item that does not matter.
        strict: settle only by confidence sequences, which hold for any log and at any time; it
            takes about half as many labels again, or more.
        show: a column to show beside the items.

    >>> import stopwise as sw
    >>> plan = plan_audit(sw.example_log(), tolerance=0.01, **sw.example_settings())
    >>> plan.rows.stages, len(plan.rows.codes)
    (('tree', 'linear', 'kernel'), 1797)
    """
    settings = in_call_order(log, completed(log, settings_from(settings, given)))
    accepted = "a cost of 0 or more: a difference per item that does not matter"
    if finite_number("tolerance", tolerance, accepted) < 0:
        raise fail("tolerance", tolerance, accepted)
    rows = read_rows(log, settings, show)
    known = (rows.answers != UNKNOWN).all(axis=1)
    if rows.truth is not None:
        known &= rows.truth >= 0
    if not known.any():
        raise StopwiseError(f"{rows.name}: no row has an answer of every stage (and a truth)")
    kept = replace(rows.where(known), left_out=rows.left_out + int((~known).sum()))
    right = answer_probabilities(kept.codes, settings.no_answer)
    return AuditPlan(
        rows=kept,
        level=settings.level,
        right=right,
        tolerance=tolerance / rows.costs.mistake_cost,
        strict=strict,
        abstentions=settings.no_answer,
    )


def label_order(plan: AuditPlan, seed: int | np.random.SeedSequence) -> IntArray:
    """All items in the random order in which they would be labelled, if worth it."""
    return np.random.default_rng(seed).permutation(len(plan.rows.codes))


def order_by_item(plan: AuditPlan, seed: int) -> IntArray:
    """The same, by a random number of each item's name.

    Items that are added later change nothing in the order of the others.
    """
    numbers = [
        hashlib.sha256(f"{seed}\x00{item}".encode()).digest()[:16] for item in plan.rows.items
    ]
    return np.array(sorted(range(len(numbers)), key=numbers.__getitem__), dtype=np.int64)


def assess(plan: AuditPlan, order: IntArray, truth: Mapping[int, int], batch: int = 20) -> Audit:
    """Where the audit stands, given the labels (row number to code) that there are.

    A pair uses labels up to the first of its items that has none: using those beyond a gap, left
    perhaps because the item was hard, would spoil the random order.
    """
    lost: set[int] = set()
    findings = []
    labelled = np.zeros(len(order), dtype=bool)
    codes = np.full(len(order), -1, dtype=np.int64)
    for item, code in truth.items():
        labelled[item], codes[item] = True, code
    for pair in plan.pairs:
        own = order[plan.differ[pair][order]]
        known = own[: _first_gap(labelled[own])]
        finding = _finding(plan, pair, known, codes[known])
        findings.append(finding)
        if finding.finding == "deeper pays":
            lost.add(pair[0])
        elif finding.finding == "shallower is enough":
            lost.add(pair[1])
    left = tuple(stage for stage in plan.candidates if stage not in lost)
    guess = best_guess(plan, left or plan.candidates, order, labelled, codes)
    worth = plan.worth_labelling(left) if left else np.zeros(len(order), dtype=bool)
    chosen = order[(worth & ~labelled)[order]][: batch if len(left) > 1 else 0]
    if len(left) != 1 and not len(chosen):
        # All that differ are labelled, or stages beat each other in turn by less than the
        # tolerance: what is left to choose from costs the same, as far as anybody minds.
        left = (guess,)
    every = int(plan.worth_labelling(plan.candidates).sum())
    used = len(truth)
    return Audit(
        stages=plan.rows.stages,
        in_question=left,
        best=left[0] if len(left) == 1 else None,
        labels=used,
        items=len(plan.rows.codes),
        worth_labelling=every,
        random_labels=round(used * len(plan.rows.codes) / every) if every else 0,
        pairs=tuple(findings),
        next_items=tuple(int(item) for item in chosen),
        guess=left[0] if len(left) == 1 else guess,
        to_label=tuple(plan.rows.items[item] for item in chosen),
        guaranteed=_guaranteed(plan, findings, left),
    )


def _guaranteed(plan: AuditPlan, findings: Sequence[PairFinding], left: tuple[int, ...]) -> bool:
    """Whether every stage that is out was ruled out, by some pair, whatever the log is like."""
    out = set()
    for pair in findings:
        if pair.guaranteed and pair.finding != "open":
            out.add(pair.shallow if pair.finding == "deeper pays" else pair.deep)
    return len(left) == 1 and set(plan.candidates) - set(left) <= out


GUESS_LABELS = 10
"""With this many labels of a pair the best guess trusts them as much as the estimate. Where the two
agree little is lost if labels count early; where the estimate is wrong, much is won."""


def best_guess(
    plan: AuditPlan,
    stages: tuple[int, ...],
    order: IntArray,
    labelled: NDArray[np.bool_],
    truth: IntArray,
) -> int:
    """The stage that looks best with the labels there are, however few.

    How much more often one stage is wrong than another is predicted on all items from how the
    stages agree, and corrected by the mean error of that prediction on the labelled ones, the more
    the more labels there are.
    """
    reference = stages[0]
    in_mistakes = plan.rows.costs.in_mistakes
    totals = {reference: 0.0}
    for stage in stages[1:]:
        pair = (reference, stage)
        own = order[plan.differ[pair][order]]
        known = own[: _first_gap(labelled[own])] if len(own) else own
        mean = float(plan.predicted(pair, own).mean()) if len(own) else 0.0
        if len(known):
            residual = plan.gain(pair, known, truth[known]) - plan.predicted(pair, known)
            mean += float(residual.mean()) * len(known) / (len(known) + GUESS_LABELS)
        gain = mean * len(own) / len(order)
        totals[stage] = float(in_mistakes[stage] - in_mistakes[reference]) - gain
    return optimal_stage([totals.get(stage, np.inf) for stage in range(len(in_mistakes))])


def _first_gap(labelled: NDArray[np.bool_]) -> int:
    return len(labelled) if labelled.all() else int(labelled.argmin())


def _finding(
    plan: AuditPlan, pair: tuple[int, int], items: IntArray, truth: IntArray
) -> PairFinding:
    size, _, _ = plan.claims(pair)
    gains = plan.gain(pair, items, truth)
    low, high = mean_bounds(gains, size, plan.alpha)
    decided = plan.decide(pair, items, truth)
    share = size / len(plan.rows.codes)
    words = {None: "open", DEEP_PAYS: "deeper pays", SHALLOW_ENOUGH: "shallower is enough"}
    # The same test as with `strict`: one claim at a time.
    sure = first_rejection(gains, size, *plan.claims(pair)[1:], 2 * plan.alpha)
    return PairFinding(
        shallow=pair[0],
        deep=pair[1],
        items=size,
        labelled=len(items),
        low=low * share,
        high=high * share,
        threshold=float(plan.rows.costs.thresholds[pair]),
        finding=words[None if decided is None else decided[1]],
        guaranteed=sure is not None and decided is not None and sure[1] == decided[1],
    )
