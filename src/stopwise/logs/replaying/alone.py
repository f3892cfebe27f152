"""A policy over a log whose stages can be called alone.

A stage that is called alone tells nothing of the others. So a round is either a *full run*, with a
known probability that falls as the square root of the rounds, or it calls what the policy says:
its stage alone, or, per item, one stage after the other with jumps. Only full runs are counted, so
nothing that is learned depends on what was called.

A full run calls every stage and pays for it. Its answer is that of the stage named last wherever
a policy looks at no outputs; per item it is the one that loses least, given all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.checks import StopwiseError
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import ABSTAINED, Evidence
from stopwise.logs.reading.rows import LogRows
from stopwise.policies.base import Policy
from stopwise.policies.per_item.alone.full_runs import full_run_probability
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.learning import EPOCHS, rounds_until_next
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.situation import ItemPolicy
from stopwise.situations.binning import Binning
from stopwise.situations.transitions import Transitions
from stopwise.situations.whole_rows import WholeRows

_OLDER = 1.1
"""Between two full runs a policy knows nothing new but the round; it is asked again when the
number of rounds has grown by this factor."""


class AloneRun(NamedTuple):
    """What one run came to.

    Attributes:
        answered_by: the stage whose answer each round has.
        more: what each round cost beyond its own stage called alone; less, if below 0.
        full: which rounds were full runs.
    """

    answered_by: IntArray
    more: FloatArray
    full: NDArray[np.bool_]


def run_alone(rows: LogRows, policy: Policy, order: IntArray, rng: np.random.Generator) -> AloneRun:
    """One run over the rows in this order."""
    own = Costs.from_stages(rows.own, rows.costs.mistake_cost)
    settings = (policy.kappa, policy.always_full) if isinstance(policy, PerItem) else ()
    chances = [full_run_probability(at + 1, own, *settings) for at in range(len(order))]
    full = rng.random(len(order)) < np.asarray(chances)
    if isinstance(policy, PerItem):
        answered_by, spent = _per_item(rows, policy, own, order, full)
    elif isinstance(policy, ItemPolicy):
        raise StopwiseError(
            f"policy {policy.name}: looks at the outputs of the stages before it, so it has no"
            " meaning where stages are called alone; take per-item, or a policy that looks at none"
        )
    else:
        answered_by = _one_stage(rows, policy, order, full, rng)
        spent = rows.spent[order, answered_by]
        answered_by = np.where(full, rows.baseline % len(rows.stages), answered_by)
    spent = np.where(full, rows.bills[order].sum(axis=1), spent)
    return AloneRun(answered_by, spent - rows.spent[order, answered_by], full)


def _one_stage(
    rows: LogRows,
    policy: Policy,
    order: IntArray,
    full: NDArray[np.bool_],
    rng: np.random.Generator,
) -> IntArray:
    """The stage that a policy calls in each round, having counted the full runs before it."""
    evidence = Evidence(len(rows.stages))
    answers = rows.counted_answers()[order]
    chosen = np.empty(len(order), dtype=np.int64)
    start = 0
    ends = [*(np.flatnonzero(full) + 1).tolist(), len(order)]
    for end in ends:
        while start < end:
            until = min(end, max(start + 1, int(start * _OLDER)))
            share = policy.probabilities(evidence, start + 1, rows.costs)
            chosen[start:until] = rng.choice(len(share), size=until - start, p=share / share.sum())
            start = until
        if end <= len(order) and end > 0 and full[end - 1]:
            row = [ABSTAINED if code < 0 else code for code in answers[end - 1].tolist()]
            policy.record(evidence, end, row)
    return chosen


def _per_item(
    rows: LogRows, policy: PerItem, own: Costs, order: IntArray, full: NDArray[np.bool_]
) -> tuple[IntArray, FloatArray]:
    """Answering stage and cost of each round, by a rule that is made again as full runs grow.

    Bins are cut and rules made when as many full runs have been counted as rounds where stages
    need those before them: as live.
    """
    met = rows.observations().where(order)
    bills = rows.bills[order]
    # Where there is nothing to learn, no number of mistakes pays for more than the cheapest.
    begin = 0 if full_run_probability(1, own) == 0 else rows.baseline % len(rows.stages)
    answered_by = np.full(len(order), begin, dtype=np.int64)
    spent = bills[:, begin].copy()
    seen = np.flatnonzero(full)
    number = first = policy.always_full
    binning: Binning | None = None
    while number <= len(seen):
        start = int(seen[number - 1]) + 1
        settled = number >= first * EPOCHS[-1]
        next_number = number + rounds_until_next(number, first, settled=settled, steady=True)
        end = int(seen[next_number - 1]) + 1 if next_number <= len(seen) else len(order)
        counted = met.where(seen[:number])
        if binning is None or number in {first * factor for factor in EPOCHS}:
            binning = Binning.fit(counted, whole=True)
        rule = AloneRule.from_counts(
            rows.stages, Transitions.of(counted, binning), own,
            reference=rows.held_to(policy.reference), trust=policy.trust,
        )  # fmt: skip
        part = np.arange(start, end)
        if len(part):
            found = rule.follow(met.where(part))
            answered_by[part] = found.answered_by
            spent[part] = (found.called * bills[part]).sum(axis=1)
            ended = part[full[part]]
            groups = WholeRows.of(met.where(ended), binning).groups
            likeliest = rule.answering(groups)
            answered_by[ended] = answered_by[ended] if likeliest is None else likeliest
        number = next_number
    return answered_by, spent
