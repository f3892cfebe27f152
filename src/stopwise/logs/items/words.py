"""What the per-item analysis says in sentences; the same for the terminal and the page."""

from __future__ import annotations

from stopwise.logs.formatting import amount, share
from stopwise.logs.items.analysis import ItemAnalysis
from stopwise.logs.items.held_out import expected_savings
from stopwise.logs.items.why import Reason
from stopwise.situations.references import Held


def headline(found: ItemAnalysis) -> str:
    """The first sentence: whether it helps, and by how much."""
    own, best = found.per_item, found.best_single
    if not found.helps:
        close = found.gain > 0.01
        reason = "that may be chance" if close else "keep one stage for all items"
        return (
            "Per item: does not help here. A rule that decides per item is"
            f" {expected_savings(own, best)}: {reason}."
        )
    gain = found.gains[0]
    sentence = (
        f"Per item: {'may help' if found.depends_on else 'helps'}. A rule that decides per item is"
        f" {expected_savings(own, best)}, the best single stage ({amount(gain.low)} to"
        f" {amount(gain.high)}; {share(found.gain)} of its cost)."
    )
    if found.depends_on:
        wrong = " or ".join(f"the {name}{' stage' * (name == 'last')}" for name in found.depends_on)
        sentence += (
            f" But if {wrong} is right where they differ, one stage for all items costs less."
        )
    return sentence


def measured(found: ItemAnalysis) -> str:
    """What was seen on rows that the rule had not."""
    own, last = found.per_item, found.always_last.cost
    saved = 1 - own.cost / last if last > 0 else 0.0
    return (
        f"On rows it has not seen, calls cost {amount(own.cost)} (± {amount(own.cost_half_width)})"
        f" per item, {share(saved)} less than always {found.stages[-1]}, and"
        f" {share(own.changed)} (± {share(own.changed_half_width)}) of the answers differ from"
        f" those of {found.stages[-1]}."
    )


def certified(found: ItemAnalysis) -> str:
    """What holds whatever the truth is."""
    held = found.held_out
    if held.certified > 0:
        return (
            f"Certified, with {share(held.level)}: at least {amount(held.certified)} per item is"
            f" saved against always {found.stages[-1]}, even if every answer that differs from it"
            " is a mistake."
        )
    return (
        f"Nothing is certified at this mistake cost: if every answer that differs from"
        f" {found.stages[-1]} were a mistake, the savings might not pay for them."
    )


def reference(held: Held, last: str) -> str:
    """What the rest of it rests on.

    Args:
        held: what answers are held against.
        last: the name of the stage that is trusted unless something tells otherwise.

    >>> import numpy as np
    >>> print(reference(Held("auto", 0.7, 0.15, (0.7, 0.8, 0.9), np.zeros_like), "large"))
    Held to 85.0 % against large (of the answers that differ from it, a net 70.0 % are taken for
    mistakes) and to 15.0 % against the consensus of the stages. 30 labels would tell (stopwise
    audit --per-item).
    """
    ahead = held.accuracies is not None and max(held.accuracies[:-1]) > held.accuracies[-1]
    if held.doubt > 0.5:
        why = (
            f"it puts an earlier stage above {last}"
            if ahead
            else f"{last} is less sure than usual where the others outvote it"
        )
        return (
            f"Held against the consensus of the stages, because {why}. That rests on errors of"
            " different stages not being copies of each other; 30 labels would tell (stopwise audit"
            " --per-item)."
        )
    mistakes = (
        f"of the answers that differ from it, a net {share(held.trust)} are taken for mistakes"
    )
    tell = "30 labels would tell (stopwise audit --per-item)."
    if held.doubt < 0.005:
        return f"Held against {last}: {mistakes}. {tell}"
    leads = f", which puts an earlier stage above {last}" if ahead else ""
    return (
        f"Held to {share(1 - held.doubt)} against {last} ({mistakes}) and to {share(held.doubt)}"
        f" against the consensus of the stages{leads}. {tell}"
    )


def calibration(found: ItemAnalysis) -> str:
    """How good the stated risks are."""
    return (
        f"Its stated risks miss what was then seen by {share(found.held_out.calibration)} on"
        " average."
    )


def hint(found: ItemAnalysis) -> str | None:
    """What would make it better, where something plainly would."""
    if not found.has_confidences:
        return (
            "The log has no confidences: columns named NAME:confidence (how sure a stage is of its"
            " output, any number that sorts) usually make the rule much better."
        )
    return None


def why_lines(reasons: tuple[Reason, ...]) -> list[tuple[str, str, str]]:
    """For each line of the rule: share of items, the line, and how often stopping there is wrong.

    >>> why_lines((Reason(0, True, 0.5, "stop after small, always", 0.02),))
    [('50.0 %', 'stop after small, always', '2.0 %')]
    """
    return [(share(r.share), r.words, share(r.changed)) for r in reasons]


def sentences(found: ItemAnalysis) -> list[str]:
    """All of it, in order."""
    lines = [headline(found), measured(found), certified(found)]
    lines.append(reference(found.rule.held, found.stages[-1]))
    lines.append(calibration(found))
    if (more := hint(found)) is not None:
        lines.append(more)
    return lines
