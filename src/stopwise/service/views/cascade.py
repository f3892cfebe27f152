"""Page 2: one cascade: shares over time, pairs against their thresholds, the law of the depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.costs import Costs
from stopwise.logs.judging.verdict import Pair, Verdict
from stopwise.logs.reporting.words import pair_sentence
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.cascades.verdicts import (
    NOT_JUDGED,
    call_costs,
    costs_now,
    evidence_of,
    judged_of,
    matter_of,
    more_sentences,
    sentence_of,
    standing_of,
    title_of,
)
from stopwise.service.views.items import ItemsView, items_view
from stopwise.service.views.over_time import OverTime, over_time

if TYPE_CHECKING:
    from stopwise.service.core import Service


@dataclass(frozen=True)
class PairLine:
    """Two stages.

    Attributes:
        disagreement: with `low` to `high`; None while they were never compared.
        threshold: what the disagreement has to stay below for the deeper one not to pay;
            `threshold_low` at the lower bounds of what calls cost, where that is measured, is what
            "certain" rests on.
        verdict: "certain", "too few rows", "not knowable", "not compared yet", or "not judged yet"
            while other two stages were not compared.
        sentence: the same as `analyze` says it; None while they were never compared.
        more_rounds: about how many more would make it certain; None if it is, or if none would.
    """

    shallow: str
    deep: str
    seen: int
    disagreed: int
    disagreement: float | None
    low: float | None
    high: float | None
    threshold: float
    threshold_low: float
    verdict: str
    more_rounds: int | None
    sentence: str | None = None


@dataclass(frozen=True)
class CascadeView:
    """All that page 2 shows, of one segment or of all.

    Attributes:
        costs: of a call of each stage.
        stopping: what stopping at each costs where requests go on after an abstention, on average;
            None where they do not: then it is the calls up to it.
        law: the probability of each depth if a request were enforced now; of all segments together,
            each as often as its requests came.
        recommended, reading: the stage of the headline and the reading that it rests on.
        sentence: the verdict, in one sentence; `title` and `reason` are its two parts.
        more: where readings disagree and what is not knowable without labels, in sentences.
        standing, matter: what is certain or not knowable, and of what that is said.
        by_policy: where the policy goes that draws the depths: the rule under weak dominance.
        measured: whether what calls cost is measured, so that thresholds rest on bounds of it.
        segments: every segment and its number of requests.
        items: how requests are decided per item; None where depths are drawn.
    """

    name: str
    mode: str
    epoch: str
    stages: tuple[str, ...]
    costs: tuple[float, ...]
    stopping: tuple[float, ...] | None
    mistake_cost: float
    measured: bool
    run_to: str
    segment: str | None
    segments: tuple[tuple[str, int], ...]
    rounds: int
    requests: int
    sentence: str
    title: str
    reason: str
    more: tuple[str, ...]
    recommended: str | None
    reading: str | None
    policy: str
    by_policy: str | None
    certain: bool
    standing: str
    matter: str
    law: tuple[float, ...]
    pairs: tuple[PairLine, ...]
    over_time: OverTime
    items: ItemsView | None


def cascade_view(
    service: Service, cascade: RunningCascade, segment: str | None = None, hours: int = 168
) -> CascadeView:
    """Read a cascade, over the last hours."""
    config = cascade.config
    sums = service.rounds.sums(cascade.name, epoch=cascade.epoch, segment=segment)
    judged = judged_of(cascade, sums, segment)
    names = config.stage_names
    segments = segments_of(service, cascade)
    title, reason = title_of(cascade, judged, sums)
    return CascadeView(
        name=cascade.name,
        mode=cascade.mode,
        epoch=cascade.epoch,
        stages=names,
        costs=call_costs(cascade, sums),
        stopping=tuple(float(cost) for cost in cascade.learner.costs.cumulative)
        if config.goes_on
        else None,
        mistake_cost=config.mistake_cost,
        measured=config.priced,
        run_to=names[config.run_to],
        segment=segment,
        segments=segments,
        rounds=int(sums.get("rounds", 0)),
        requests=int(sums.get("requests", 0)),
        sentence=sentence_of(cascade, judged, sums),
        title=title,
        reason=reason,
        more=tuple(more_sentences(cascade, judged)),
        recommended=None if judged is None else names[judged.stage],
        reading=None if judged is None else judged.readings.headline_reading,
        policy=config.policy,
        by_policy=None if judged is None or config.per_item else names[judged.verdict.recommended],
        certain=judged is not None and judged.nothing_deeper_pays,
        standing=standing_of(judged),
        matter=matter_of(judged),
        law=mean_law(cascade, segments) if segment is None else tuple(cascade.law(segment)),
        pairs=pair_lines(
            cascade, None if judged is None else judged.verdict, costs_now(cascade, sums), segment
        ),
        over_time=over_time(service, cascade, segment, hours),
        items=items_view(cascade, segment),
    )


def segments_of(service: Service, cascade: RunningCascade) -> tuple[tuple[str, int], ...]:
    """Every segment and its number of requests."""
    found = service.rounds.segments(cascade.name, cascade.epoch)
    return tuple((name, int(number)) for name, number in found.items())


def mean_law(cascade: RunningCascade, segments: tuple[tuple[str, int], ...]) -> tuple[float, ...]:
    """The law of the depth over all segments, each as often as its requests came."""
    total = sum(number for _, number in segments)
    if not total:
        return tuple(cascade.law(""))
    laws = [(number / total, cascade.law(name)) for name, number in segments]
    return tuple(sum(part * law[stage] for part, law in laws) for stage in range(len(laws[0][1])))


def pair_lines(
    cascade: RunningCascade, verdict: Verdict | None, costs: Costs, segment: str | None
) -> tuple[PairLine, ...]:
    """Every two stages, the shallower first."""
    names = cascade.config.stage_names
    evidence = evidence_of(cascade, segment)
    thresholds = costs.thresholds
    known = {(pair.shallow, pair.deep): pair for pair in verdict.pairs} if verdict else {}
    lines = []
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            pair = known.get((i, j))
            seen, disagreed = int(evidence.seen[i, j]), int(evidence.disagreed[i, j])
            lines.append(
                PairLine(
                    shallow=names[i],
                    deep=names[j],
                    seen=seen,
                    disagreed=disagreed,
                    disagreement=disagreed / seen if seen else None,
                    low=pair.low if pair else None,
                    high=pair.may_differ_high if pair else None,
                    threshold=float(thresholds[i, j]),
                    threshold_low=pair.threshold_low if pair else float(thresholds[i, j]),
                    verdict=pair.verdict if pair else NOT_JUDGED if seen else "not compared yet",
                    more_rounds=_more_rounds(pair) if pair else None,
                    sentence=pair_sentence(verdict, pair) if verdict and pair else None,
                )
            )
    return tuple(lines)


def _more_rounds(pair: Pair) -> int | None:
    """How many rounds are missing, of those that would make it certain."""
    if pair.certain or pair.more_rows_settle is None or pair.more_rows_settle <= pair.seen:
        return None
    return pair.more_rows_settle - pair.seen
