"""Warnings about the rows of a log: their order, their gaps, and which of them went deeper."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from stopwise.costs import FloatArray
from stopwise.logs.formatting import counted
from stopwise.logs.formatting import share as percent
from stopwise.logs.judging.warnings.log_warning import LOW_COUNT, LogWarning, difference
from stopwise.logs.reading.counting import ABSTAINED_CODE, NOT_CALLED, PatternCounts
from stopwise.logs.reading.pairs import pair_indices

DRIFT = 0.02
"""Disagreement that moved by less is not worth a word."""

SORTED = 0.2
"""Outputs whose shares moved by more (in total variation) look sorted."""


def changes_over_time(counts: PatternCounts) -> Iterator[LogWarning]:
    """Disagreement, or the outputs themselves, differ between the first and the last fifth."""
    if counts.rows < 2 * LOW_COUNT or counts.blocks < 5:
        return
    fifth = counts.blocks // 5
    first = counts.where(counts.block < fifth)
    last = counts.where(counts.block >= counts.blocks - fifth)
    drifts = []
    before, after = first.evidence(), last.evidence()
    for i, j in pair_indices(len(counts.stages)):
        gap = difference(
            before.disagreed[i, j], before.seen[i, j], after.disagreed[i, j], after.seen[i, j]
        )
        if gap is not None and abs(gap) > DRIFT:
            shares = before.disagreement[i, j], after.disagreement[i, j]
            drifts.append((abs(gap), i, j, *shares))
    moved = max((_label_shift(first, last, at) for at in range(len(counts.stages))), default=None)
    if moved is not None and moved[0] > SORTED:
        _, at, label, share, later = moved
        yield LogWarning(
            "sorted_log",
            f"the log looks sorted: {counts.stages[at]} says {counts.labels[label]!r} on"
            f" {percent(share)} of the first fifth of the rows and {percent(later)} of the"
            " last. Order tells"
            " nothing here; replay it shuffled.",
        )
    if drifts:
        _, i, j, share, later = max(drifts)
        yield LogWarning(
            "drift",
            f"disagreement of {counts.stages[i]} and {counts.stages[j]} changes over the log:"
            f" {percent(share)} in the first fifth of the rows, {percent(later)} in the last."
            " One verdict"
            " for all of it may fit neither; try --segment, or the latest rows only.",
        )


def _label_shift(
    first: PatternCounts, last: PatternCounts, at: int
) -> tuple[float, int, int, float, float]:
    """How far the outputs of a stage moved (total variation), and the label that moved most."""
    size = len(first.labels)
    shares = []
    for part in (first, last):
        here = part.codes[:, at] >= 0
        seen = np.bincount(part.codes[here, at], weights=part.number[here], minlength=size)
        shares.append((seen / max(seen.sum(), 1.0), seen.sum()))
    (a, n), (b, m) = shares
    if min(n, m) < LOW_COUNT:
        return (0.0, at, 0, 0.0, 0.0)
    # Chance alone moves shares of many labels, by about the sum of their standard errors.
    noise = float(np.sqrt((a + b) / 2 * (1 / n + 1 / m)).sum()) / 2
    label = int(np.abs(a - b).argmax())
    size_of_move = float(np.abs(a - b).sum() / 2 - 2 * noise)
    return (size_of_move, at, label, float(a[label]), float(b[label]))


def abstentions(counts: PatternCounts) -> Iterator[LogWarning]:
    """Stages that often give no answer."""
    for at, stage in enumerate(counts.stages):
        called = counts.number[counts.codes[:, at] != NOT_CALLED].sum()
        silent = counts.number[counts.codes[:, at] == ABSTAINED_CODE].sum()
        if silent and silent >= 0.01 * called:
            yield LogWarning(
                "abstentions",
                f"{stage} gave no answer on {silent:,} of {counted(called, 'item')}"
                f" ({percent(silent / called)})."
                " What that counts as is set with --abstentions: go-on (by default: the next stage"
                " that answers does), mistake or leave-out.",
            )


def partial(counts: PatternCounts) -> Iterator[LogWarning]:
    """Stages that were called on a part of the rows only."""
    for at, stage in enumerate(counts.stages):
        missing = counts.number[counts.codes[:, at] == NOT_CALLED].sum()
        if missing:
            yield LogWarning(
                "partial_log",
                f"{stage} was not called on {missing:,} of {counted(counts.rows, 'item')}"
                f" ({percent(missing / counts.rows)}); its pairs rest on the others. (If these"
                " blanks"
                " are abstentions, say --trailing-blanks abstained.)",
            )


def labels_alike(counts: PatternCounts) -> Iterator[LogWarning]:
    """Labels that differ only by upper and lower case are probably one."""
    spelled: dict[str, str] = {}
    for label in counts.labels:
        other = spelled.setdefault(label.casefold(), label)
        if other != label:
            yield LogWarning(
                "labels_differ_in_case",
                f"the labels {other!r} and {label!r} differ only in case and count as two.",
            )
            return


# ---- selective logs -------------------------------------------------------------------------


def selective_stages(counts: PatternCounts) -> dict[int, str]:
    """Stages that were called on rows unlike the others, and how that shows.

    If production stopped early for a reason that has to do with the outputs, the pairs of a deep
    stage are only seen where that reason let it through. It shows when the other stages answer, or
    disagree, otherwise on the rows that went deeper (or, of stages that are called one by one, on
    those that a stage was called on).
    """
    found: dict[int, str] = {}
    for j in range(len(counts.stages)):
        called = counts.codes[:, j] != NOT_CALLED
        with_j, without_j = counts.where(called), counts.where(~called)
        if min(with_j.rows, without_j.rows) < LOW_COUNT:
            continue
        reason = _unlike(with_j, without_j, j)
        if reason is not None:
            found[j] = (
                f"{counts.stages[j]} was called selectively: {reason}. Rows without it count as"
                " possible differences wherever something is called certain."
            )
    return found


def _unlike(called: PatternCounts, without: PatternCounts, stage: int) -> str | None:
    names = called.stages
    others = [at for at in range(len(names)) if at != stage]
    a, b = called.evidence(), without.evidence()
    for i, k in itertools.combinations(others, 2):
        if difference(a.disagreed[i, k], a.seen[i, k], b.disagreed[i, k], b.seen[i, k]) is None:
            continue
        return (
            f"{names[i]} and {names[k]} differ on {percent(a.disagreement[i, k])} of the rows"
            f" with it and on {percent(b.disagreement[i, k])} of the others"
        )
    for i in others:
        shares = [_label_counts(part, i) for part in (called, without)]
        for label in range(len(called.labels)):
            (x, n), (y, m) = ((share[label], share.sum()) for share in shares)
            if difference(int(x), int(n), int(y), int(m), extra=len(called.labels)) is not None:
                return (
                    f"{names[i]} says {called.labels[label]!r} on {percent(x / n)} of the rows"
                    f" with it and on {percent(y / m)} of the others"
                )
    return None


def _label_counts(part: PatternCounts, at: int) -> FloatArray:
    here = part.codes[:, at] >= 0
    seen = np.bincount(part.codes[here, at], weights=part.number[here], minlength=len(part.labels))
    return np.asarray(seen)
