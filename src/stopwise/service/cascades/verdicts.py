"""What is certain of a running cascade and what is not knowable, in the words of `analyze`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stopwise.evidence import Evidence
from stopwise.logs.judging.readings import Readings, readings_of
from stopwise.logs.judging.verdict import Doubt, Verdict, judge
from stopwise.logs.reporting.headline import headline, shallower_sentence
from stopwise.logs.settings import LogSettings
from stopwise.service.cascades.running import RunningCascade


def evidence_of(cascade: RunningCascade, segment: str | None = None) -> Evidence:
    """The evidence of a segment, or of all together."""
    learner = cascade.learner
    if segment is not None:
        return learner.evidence(segment)
    total = Evidence(len(cascade.config.stages))
    for name in learner.segments:
        total.merge(learner.evidence(name))
    return total


def verdict_of(
    cascade: RunningCascade, sums: Mapping[str, float], segment: str | None = None
) -> Verdict | None:
    """The verdict, or None while some two stages were never compared.

    Args:
        sums: of the same epoch and segment. A round in which one of two stages gave no answer
            counts as one on which they may differ, so that "certain" holds whatever it was.
    """
    evidence = evidence_of(cascade, segment)
    count = evidence.stage_count
    if bool((evidence.seen[np.triu_indices(count, 1)] == 0).any()):
        return None
    half = np.zeros((count, count), dtype=np.int64)
    for i in range(count):
        for j in range(i + 1, count):
            half[i, j] = int(sums.get(f"half:{i}:{j}", 0))
    doubt = Doubt(
        (evidence.seen + half).astype(np.int64), (evidence.disagreed + half).astype(np.int64)
    )
    return judge(cascade.config.stage_names, evidence, cascade.learner.costs, doubt=doubt)


def sentence_of(cascade: RunningCascade, verdict: Verdict | None) -> str:
    """The verdict in one sentence."""
    if verdict is None:
        return "Nothing can be said yet: not every two stages have answered the same request."
    return headline(verdict, _rule(verdict))


def standing_of(verdict: Verdict | None) -> str:
    """How sure it is that no deeper stage pays: as `certain`, and why not where it is not."""
    if verdict is None:
        return "not compared yet"
    if verdict.nothing_deeper_pays:
        return "certain"
    deeper = [pair.verdict for pair in verdict.pairs if pair.shallow == verdict.recommended]
    if deeper and "not knowable" not in deeper:
        return "not certain yet"
    return "not knowable without labels"


def open_question(verdict: Verdict | None) -> str | None:
    """What is not knowable without labels."""
    return None if verdict is None else shallower_sentence(verdict, _rule(verdict))


def _rule(verdict: Verdict) -> Readings:
    """What is shown is where the cascade itself goes: the rule, under weak dominance."""
    return readings_of(verdict, LogSettings(reading="weak-dominance"))
