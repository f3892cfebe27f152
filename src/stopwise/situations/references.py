"""What an answer is held against where there is no truth: the last stage, a stage, the consensus.

All of them are functions of the final partition, so counts kept once serve every reference. What
they give is the *loss* of each stage's answer in mistakes: the chance that it differs from the
reference, times the trust in the reference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stopwise.arrays import FloatArray, IntArray
from stopwise.checks import fail, finite_number, whole_number
from stopwise.estimating.estimate import agreement_of
from stopwise.situations.keys import LEVELS, decode, partition_of
from stopwise.situations.labelled import loss_from_labels
from stopwise.situations.references_base import FinalLoss, differs_from
from stopwise.situations.sureness import last_is_surer
from stopwise.situations.transitions import Transitions

REFERENCES = ("auto", "last", "consensus")
"""By name; any stage can be one too."""

TRUST = 0.7
"""The share of differences from the last stage that are net gains, where nothing tells."""

DOUBT_OF_THREE = (0.15, 0.12, 0.35)
DOUBT_OF_MORE = (0.5, 0.0, 0.05)
"""The least doubt in the last stage, and between which leads of an earlier one it grows to 1.

With three stages two that share their errors outvote the third, and nothing in their agreement
shows it; so the consensus must be far apart from the last stage before it is believed, and has a
small part in the belief until then. With four or more it is worth half of it from the start.
"""

FAR_LEAD = (0.12, 0.35)
"""Between these leads of an earlier stage, of four or more, a chain stops to excuse the last."""

LEAD_HEARD = (0.0, 0.05)
"""Between these leads a last stage that is the less sure one comes to be doubted for it: where the
others do not outdo it, one that is less sure on what it alone says differently is no worse."""

FEWEST_FULL_RUNS = 30


@dataclass(frozen=True)
class Held:
    """A reference that has been settled on.

    Attributes:
        reference: as it was asked for: "last", "consensus", "auto", or a stage by number.
        trust: what a difference from the last stage (or the stage named) counts for.
        doubt: how far the consensus takes the place of the last stage: 0 not at all, 1 wholly.
        accuracies: of every stage, as the consensus has them; None where it was not asked.
        weights: of each reference, where labels chose among them.
        loss: the loss of each stage's answer, given the final partition.
    """

    reference: str | int
    trust: float
    doubt: float
    accuracies: tuple[float, ...] | None
    loss: FinalLoss
    weights: Mapping[str, float] | None = None


def hold_against(
    counts: Transitions, reference: str | int = "auto", trust: float | None = None
) -> Held:
    """Settle on what answers are held against.

    Args:
        reference: "last"; a stage by number; "consensus", the chance to be wrong given how all
            stages agree; or "auto", the last stage as far as the consensus does not doubt it: by
            the consensus' lead of an earlier stage over the last, and by which of the two is less
            sure than usual where they differ. Where items were labelled, the labels choose among
            all references instead.
        trust: by default 0.7 for the last stage, 1 for a stage that is named.

    >>> from stopwise.situations.binning import Binning
    >>> from stopwise.situations.observations import Observations
    >>> codes = np.array([[0, 0, 0]] * 40 + [[1, 0, 0]] * 4 + [[0, 1, 0]] * 4 + [[0, 0, 1]] * 40)
    >>> rows = Observations(("no", "yes"), codes)
    >>> held = hold_against(Transitions.of(rows, Binning.fit(rows)))
    >>> round(held.doubt, 2), held.loss(np.array([[0, 0, 1]])).round(2)
    (0.65, array([[0.25, 0.25, 0.64]]))
    """
    last = counts.stage_count - 1
    check_reference(reference, trust, counts.stage_count)
    usual = 1.0 if isinstance(reference, int) else TRUST
    trusted = usual if trust is None else float(trust)
    stage = reference if isinstance(reference, int) else last

    def against_stage(groups: IntArray) -> FloatArray:
        return trusted * differs_from(groups, stage)

    if not isinstance(reference, str) or reference == "last":
        return Held(reference, trusted, 0.0, None, against_stage)
    found = agreed(counts)
    if reference == "auto" and counts.labelled and trust is None:
        return _by_labels(counts, found)
    if found is None:  # two stages, or too few full runs: nothing to agree upon
        return Held(reference, trusted, 0.0, None, against_stage)
    doubt = found.doubt if reference == "auto" else 1.0

    def blended(groups: IntArray) -> FloatArray:
        wrong = np.where(groups < 0, 1.0, 1.0 - found.chance_right(groups))
        return doubt * wrong + (1 - doubt) * against_stage(groups)

    return Held(reference, trusted, doubt, found.accuracies, blended)


def _by_labels(counts: Transitions, found: Agreed | None) -> Held:
    groups = np.asarray([decode(key).partition for key, _ in counts.labelled], dtype=np.int64)
    right = np.asarray([group for _, group in counts.labelled], dtype=np.int64)
    number = np.asarray(list(counts.labelled.values()), dtype=np.float64)
    loss, weights = loss_from_labels(groups, right, number, found)
    accuracies = None if found is None else tuple(float(value) for value in found.accuracies)
    return Held(
        "auto", 1.0, 1 - weights[f"stage {counts.stage_count - 1}"], accuracies, loss, weights
    )


def check_reference(reference: object, trust: object, stage_count: int | None = None) -> None:
    """Refuse what answers cannot be held against; the number of stages is not always known.

    >>> check_reference("consensus", 0.5)
    >>> check_reference(2, None, stage_count=2)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: reference: got 2, but need the number of a stage, 0 to 1
    """
    if isinstance(reference, bool) or not isinstance(reference, int | str):
        raise fail("reference", reference, _ACCEPTED)
    if isinstance(reference, str):
        if reference not in REFERENCES:
            raise fail("reference", reference, _ACCEPTED)
    elif stage_count is None:
        whole_number("reference", reference, least=0)
    elif not 0 <= reference < stage_count:
        raise fail("reference", reference, f"the number of a stage, 0 to {stage_count - 1}")
    if trust is not None and not 0 < finite_number("trust", trust) <= 1:
        raise fail("trust", trust, "a number above 0 and at most 1")


_ACCEPTED = "'auto', 'last', 'consensus' or the number of a stage"


@dataclass(frozen=True)
class Agreed:
    """What the stages' agreement says of them (`stopwise.estimating`).

    Attributes:
        accuracies: of every stage, estimated.
        chain: how far each stage follows the one before it, 0 to 1: agreement then means little.
        noise: the standard error of an earlier stage's lead over the last.
        surer: whether the last stage is surer of itself than the best earlier one where the two
            differ (`stopwise.situations.sureness`), from -1 to 1.
        right: for every partition, the chance that each stage's output is right.
    """

    accuracies: tuple[float, ...]
    chain: float
    noise: float
    right: Mapping[tuple[int, ...], tuple[float, ...]]
    surer: float = 0.0

    @property
    def doubt(self) -> float:
        """How far the last stage is to be doubted: by an earlier one's lead, and by confidences.

        In a chain agreement means little, so a small lead raises no doubt there; but no chain
        explains a last stage that three others or more contradict. Confidences are heard after
        that, because they tell what agreement cannot: which of two sides is the unsure one.

        >>> Agreed((0.7, 0.8, 0.9, 0.87), 1.0, 0.0, {}).doubt    # each follows the one before it
        0.0
        >>> Agreed((0.7, 0.8, 0.9, 0.3), 1.0, 0.0, {}).doubt
        1.0
        >>> Agreed((0.7, 0.8, 0.9, 0.3), 1.0, 0.0, {}, surer=1.0).doubt    # the others are unsure
        0.0
        """
        ahead = max(self.accuracies[:-1]) - self.accuracies[-1]
        lead = ahead - self.noise
        three = len(self.accuracies) == 3
        least, starts, ends = DOUBT_OF_THREE if three else DOUBT_OF_MORE
        grown = _between(lead, starts, ends)
        far = 0.0 if three else _between(lead, *FAR_LEAD)
        apart = 1 - self.chain * (1 - far)  # how far agreement means anything
        doubt = (least + (1 - least) * grown) * apart
        if self.surer > 0:
            return doubt * (1 - self.surer)
        return doubt - self.surer * _between(ahead, *LEAD_HEARD) * apart * (1 - doubt)

    def chance_right(self, groups: IntArray) -> FloatArray:
        """The chance that each stage's output is right; by its accuracy where never counted.

        >>> Agreed((0.7, 0.8, 0.9), 0.0, 0.0, {}).chance_right(np.zeros((0, 3), dtype=int)).shape
        (0, 3)
        """
        rows = [self.right.get(tuple(row), self.accuracies) for row in groups.tolist()]
        return np.asarray(rows, dtype=np.float64).reshape(groups.shape)


def _between(value: float, starts: float, ends: float) -> float:
    """How far a value has come from one number to the other, from 0 to 1."""
    return float(np.clip((value - starts) / (ends - starts), 0.0, 1.0))


def agreed(counts: Transitions) -> Agreed | None:
    """The consensus over an unbiased sample of all items; None where there is none.

    Full runs are such a sample. Where there are too few (a log of rounds that stopped early), the
    distribution after the last stage is carried forward from situation to situation instead.
    """
    if counts.stage_count < 3:
        return None
    ends: dict[int, float] = {key: float(number) for key, number in counts.full.items()}
    if sum(ends.values()) < FEWEST_FULL_RUNS:
        if counts.reached[-1] < FEWEST_FULL_RUNS:
            return None
        ends = carried_forward(counts)
    # Partitions that only other rounds met weigh nothing, but their chances are wanted too.
    others = {key for _, key in counts.moves[-1]} | {key for key, _ in counts.labelled}
    weights = dict.fromkeys(sorted({key >> LEVELS[1] for key in others}), 0.0)
    for key, times in ends.items():
        weights[key >> LEVELS[1]] = weights.get(key >> LEVELS[1], 0.0) + times
    groups = np.asarray([partition_of(code) for code in weights], dtype=np.int64)
    number = np.fromiter(weights.values(), dtype=np.float64, count=len(weights))
    found = agreement_of(groups, number, counts.binning.label_count)
    right = {
        tuple(g): tuple(r)
        for g, r in zip(found.groups.codes.tolist(), found.right.tolist(), strict=True)
    }
    accuracies = tuple(float(value) for value in found.accuracy)
    best = int(np.argmax(accuracies[:-1]))
    differ = float(number[groups[:, best] != groups[:, -1]].sum() / number.sum())
    seen = max(sum(counts.full.values()), FEWEST_FULL_RUNS)
    surer = last_is_surer(counts, best)
    return Agreed(accuracies, found.dependence.chain, math.sqrt(differ / seen), right, surer)


def carried_forward(counts: Transitions) -> dict[int, float]:
    """How many items would end in each situation, had none stopped early.

    >>> from stopwise.situations.binning import Binning
    >>> counts = Transitions(Binning(edges=((), ()), labels=((), ())))
    >>> for path in ([5, 7], [5], [6, 8]):
    ...     counts.add(path)
    >>> carried_forward(counts)    # the item that stopped would have moved as its like did
    {7: 2.0, 8: 1.0}
    """
    here: dict[int, float] = {key: float(number) for key, number in counts.first.items()}
    for moves in counts.moves:
        leaving: dict[int, int] = {}
        for (before, _), number in moves.items():
            leaving[before] = leaving.get(before, 0) + number
        next_shares: dict[int, float] = {}
        for (before, after), number in moves.items():
            share = here.get(before, 0.0) * number / leaving[before]
            next_shares[after] = next_shares.get(after, 0.0) + share
        here = next_shares
    return here
