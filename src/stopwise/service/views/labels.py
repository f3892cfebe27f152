"""Page 5: what to label next, in the order of the audit, and how many more until settled."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.logs.auditing.result import BY_POSTERIOR, Audit, why_settled
from stopwise.logs.settings import LogSettings
from stopwise.service.cascades.auditing import audit_of
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.cascades.verdicts import costs_now, judged_of
from stopwise.service.database.rounds import StoredRound
from stopwise.service.views.disagreements import SideBySide, side_by_side

if TYPE_CHECKING:
    from stopwise.service.core import Service

_MOST = 50_000


@dataclass(frozen=True)
class Choice:
    """One of the different answers of a round, with the stages that gave it."""

    group: int
    text: str
    stages: tuple[str, ...]


@dataclass(frozen=True)
class LabelsView:
    """What page 5 shows.

    Attributes:
        settled: whether one stage is left; `best` is that one, and `why` says what that rests on.
        in_question: stages that may still be the best.
        labelled: how many labels there are; `left`: at most how many more settle everything;
            `expected`: about how many settle it in all, by the estimate of the verdict, if known.
        findings: (shallow, deep, "deeper pays" | "shallower is enough" | "open", labels used); what
            bounds alone do not settle is so "by its posterior".
        item: the next round to label; None if there is none.
        choices: its different answers; in a random order and without stages if `blind`.
        gone: rounds that should be labelled next but whose texts were not kept or have expired.
    """

    name: str
    settled: bool
    best: str | None
    why: str
    in_question: tuple[str, ...]
    labelled: int
    left: int
    expected: int | None
    findings: tuple[tuple[str, str, str, int], ...]
    item: SideBySide | None
    choices: tuple[Choice, ...]
    blind: bool
    gone: int


def labels_view(service: Service, cascade: RunningCascade, *, blind: bool = True) -> LabelsView:
    """Read where the audit stands."""
    audit = current_audit(service, cascade)
    names = cascade.config.stage_names
    if audit is None:
        return LabelsView(
            cascade.name, False, None, "", names, 0, 0, None, (), None, (), blind, 0
        )  # fmt: skip
    item, gone = None, 0
    for round_id in audit.to_label:
        stored = service.rounds.item(cascade.name, round_id)
        if stored is not None:
            item = side_by_side(stored, names)
            break
        gone += 1
    return LabelsView(
        name=cascade.name,
        settled=audit.settled,
        best=None if audit.best is None else names[audit.best],
        why=why_settled(audit, LogSettings.level) if audit.settled else "",
        in_question=tuple(names[stage] for stage in audit.in_question),
        labelled=audit.labels,
        left=0 if audit.settled else max(0, audit.worth_labelling - audit.labels),
        expected=None if audit.settled else _expected(service, cascade),
        findings=tuple(
            (
                names[pair.shallow],
                names[pair.deep],
                pair.finding + BY_POSTERIOR * (pair.finding != "open" and not pair.guaranteed),
                pair.labelled,
            )
            for pair in audit.pairs
        ),
        item=item,
        choices=_choices(item, blind) if item is not None else (),
        blind=blind,
        gone=gone,
    )


def _expected(service: Service, cascade: RunningCascade) -> int | None:
    judged = judged_of(cascade, service.rounds.sums(cascade.name, epoch=cascade.epoch))
    return None if judged is None else judged.readings.labels_to_settle


def current_audit(service: Service, cascade: RunningCascade) -> Audit | None:
    """The audit over the rounds that had ended when the first label was given."""
    # A label of an earlier epoch is older than every round of this one: it would end the sample
    # before it begins.
    labels = service.labels.all(cascade.name, cascade.epoch)
    until = min((label.at for label in labels.values()), default=None)
    rounds: list[StoredRound] = []
    after = (0.0, "")
    while len(rounds) < _MOST:
        part = service.rounds.rounds(cascade.name, cascade.epoch, after=after, limit=5000)
        rounds += [stored for stored in part if until is None or stored.at <= until]
        if len(part) < 5000 or len(rounds) < len(part):
            break
        after = (part[-1].at, part[-1].id)
    sums = service.rounds.sums(cascade.name, epoch=cascade.epoch)
    secret = service.trail.secret("audit")
    return audit_of(cascade, rounds, labels, costs=costs_now(cascade, sums), secret=secret)


def _choices(item: SideBySide, blind: bool) -> tuple[Choice, ...]:
    groups: dict[int, list[str]] = {}
    texts: dict[int, str] = {}
    for answer in item.answers:
        if answer.group is not None:
            groups.setdefault(answer.group, []).append(answer.stage)
            texts.setdefault(answer.group, answer.text)
    choices = [
        Choice(group, texts[group], () if blind else tuple(stages))
        for group, stages in groups.items()
    ]
    if blind:
        # The same order whenever the page is opened, and no hint at the order of stages.
        random.Random(item.round_id).shuffle(choices)
    return tuple(choices)
