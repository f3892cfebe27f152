"""The figures of a running cascade, whoever shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from stopwise.checks import names_settings, whole_number
from stopwise.live.cascade import Cascade
from stopwise.live.learner import Learner
from stopwise.live.pairs import pair_list

Shown = Mapping[str, Learner | Cascade] | Callable[[], Mapping[str, Learner | Cascade]]
"""Learners or cascades by the name they are shown under, or a function that gives them."""

Kind = Literal["counter", "gauge"]
"""What may fall back (a gauge), and what only grows."""

OTHER = "other"
"""The segments beyond those that are shown by name, together."""


@dataclass(frozen=True)
class Figure:
    """One figure, with a value for each of its labels.

    Attributes:
        name: in dotted form, as `stopwise.live.rounds`.
        kind: a "counter" only grows while the process lives; a "gauge" may fall.
        help: what it says, in one line.
        labels: the names of its labels.
        values: a number for each combination of labels.

    >>> Figure("stopwise.live.spent", "counter", "Cost.", ("cascade",)).values
    {}
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    values: dict[tuple[str, ...], float] = field(default_factory=dict)


@names_settings
def figures_of(shown: Shown, *, most_segments: int = 20) -> list[Figure]:
    """All figures, at this moment.

    Args:
        shown: what to look at.
        most_segments: how many segments of a cascade, in the order in which they began, are shown
            by name; the rest are summed as "other", so that the number of series stays bounded.

    >>> learner = Learner({"rule": 0, "model": 1}, "fixed", mistake_cost=4)
    >>> with learner.begin() as round: round.observe("yes"); round.observe("no")
    >>> {figure.name: figure.values for figure in figures_of({"mail": learner})}[
    ...     "stopwise.live.disagreements"]
    {('mail', 'rule', 'model'): 1.0}
    """
    most = whole_number("most_segments", most_segments, least=0)
    figures = {figure.name: figure for figure in _empty()}
    for name, one in (shown() if callable(shown) else shown).items():
        learner = one.learner if isinstance(one, Cascade) else one
        for figure, labels, value in _look(name, learner, most):
            figures[f"stopwise.live.{figure}"].values[labels] = float(value)
    return list(figures.values())


def _empty() -> list[Figure]:
    rows: list[tuple[str, Kind, tuple[str, ...], str]] = [
        ("rounds", "counter", ("segment",), "Rounds that have ended."),
        ("abandoned", "counter", (), "Rounds that ended before their depth."),
        ("calls", "counter", ("stage",), "Calls of a stage."),
        ("answers", "counter", ("stage",), "Rounds that a stage answered."),
        ("failures", "counter", ("stage",), "Calls that raised or ran out of time."),
        ("abstentions", "counter", ("stage",), "Calls that gave no answer."),
        ("comparisons", "counter", ("stage", "deeper"), "Pairs of answers that were compared."),
        ("disagreements", "counter", ("stage", "deeper"), "Pairs of answers that differed."),
        ("spent", "counter", (), "Cost of all rounds."),
        ("unrecorded", "counter", (), "Rounds that the store could not take."),
        ("store_failures", "counter", (), "Batches that could not be written at the first try."),
        ("queued", "gauge", (), "Rounds that wait to be written."),
        ("drift_alarms", "counter", (), "Alarms of a change of disagreement."),
        (
            "stop_stage",
            "gauge",
            ("segment",),
            "Number of the stage, from 0, where it pays to stop.",
        ),
    ]
    return [
        Figure(f"stopwise.live.{name}", kind, text, ("cascade", *labels))
        for name, kind, labels, text in rows
    ]


def _look(name: str, learner: Learner, most: int) -> Iterable[tuple[str, tuple[str, ...], float]]:
    report, status = learner.report(), learner.store_status
    for at, stage in enumerate(learner.stages):
        yield "calls", (name, stage), report.calls[at]
        yield "answers", (name, stage), report.answers[at]
        yield "failures", (name, stage), report.failures[at]
        yield "abstentions", (name, stage), report.abstentions[at]
    for at, (i, j) in enumerate(pair_list(len(learner.stages))):
        pair = (name, learner.stages[i], learner.stages[j])
        yield "comparisons", pair, report.compared[at]
        yield "disagreements", pair, report.disagreed[at]
    yield "abandoned", (name,), report.abandoned
    yield "spent", (name,), report.spent
    yield "unrecorded", (name,), report.unrecorded
    yield "store_failures", (name,), status.failures
    yield "queued", (name,), status.queued
    yield "drift_alarms", (name,), len(learner.alarms)
    yield from _segments(name, learner, most, report.rounds)


def _segments(
    name: str, learner: Learner, most: int, rounds: int
) -> Iterable[tuple[str, tuple[str, ...], float]]:
    """By order of appearance, which does not change: a counter must not fall."""
    segments = [segment for segment in learner.segments if segment != OTHER]
    rest = rounds
    for segment in segments[:most]:
        part = learner.report(segment).rounds
        rest -= part
        yield "rounds", (name, segment), part
        yield "stop_stage", (name, segment), learner.best_stage(segment)
    if len(segments) > most or OTHER in learner.segments:
        yield "rounds", (name, OTHER), max(rest, 0)
