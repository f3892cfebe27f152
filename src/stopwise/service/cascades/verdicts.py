"""What is certain of a running cascade and what is not knowable, in the words of `analyze`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.logs.formatting import counted, share
from stopwise.logs.judging.readings import Readings, readings_of
from stopwise.logs.judging.verdict import Doubt, Verdict, judge
from stopwise.logs.reading.costs import CostBounds, costs_of
from stopwise.logs.reading.counting import NOT_CALLED, PatternCounts
from stopwise.logs.reporting.headline import (
    check_sentence,
    disagreement_sentence,
    headline,
    shallower_sentence,
    title_and_reason,
)
from stopwise.logs.settings import LogSettings
from stopwise.service.cascades.cost_bounds import mean_costs, with_measured_costs
from stopwise.service.cascades.counting import PATTERN, UNTIL
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.database.rounds import Rounds

NOT_KNOWABLE = "not knowable without labels"
NOT_JUDGED = "not judged yet"
"""While some two stages were never compared."""


@dataclass(frozen=True)
class JudgedCascade:
    """A cascade judged as `analyze` judges a log: the verdict and the readings of it.

    Attributes:
        beyond: stages of which nothing is known, since requests do not go that deep: the verdict is
            on the stages before them.
    """

    verdict: Verdict
    readings: Readings
    beyond: tuple[str, ...] = ()

    @property
    def stage(self) -> int:
        """The stage of the first sentence."""
        found = self.readings.headline_stage
        return self.verdict.recommended if found is None else found

    @property
    def nothing_deeper_pays(self) -> bool:
        """Whether it is certain that no stage deeper than that one is worth its price."""
        return not self.beyond and self.certain_so_far

    @property
    def certain_so_far(self) -> bool:
        """The same of the stages that are known."""
        deeper = [pair for pair in self.verdict.pairs if pair.shallow == self.stage]
        return bool(deeper) and all(pair.certain for pair in deeper)

    @property
    def answers_changed_at_most(self) -> float:
        """Upper bound on the share of answers that stopping there changes, of the last known."""
        last = len(self.verdict.stages) - 1
        return 0.0 if self.stage == last else self.verdict.pair(self.stage, last).may_differ_high


def evidence_of(cascade: RunningCascade, segment: str | None = None) -> Evidence:
    """The evidence of a segment, or of all together."""
    learner = cascade.learner
    if segment is not None:
        return learner.evidence(segment)
    total = Evidence(len(cascade.config.stages))
    for name in learner.segments:
        total.merge(learner.evidence(name))
    return total


def call_costs(cascade: RunningCascade, sums: Mapping[str, float]) -> tuple[float, ...]:
    """What a call of each stage costs, as given or on average; see `judged_of`.

    The rule's own means start from a guess (`typical_tokens`) that counts as one call.
    """
    own = tuple(float(cost) for cost in cascade.learner.own_costs.per_stage)
    return own if _of_the_rule(cascade) else mean_costs(own, sums)


def costs_now(cascade: RunningCascade, sums: Mapping[str, float]) -> Costs:
    """The same as `Costs`, with what is called where requests go on."""
    if _of_the_rule(cascade):
        return cascade.learner.costs
    return Costs.from_stages(call_costs(cascade, sums), cascade.config.mistake_cost)


def _of_the_rule(cascade: RunningCascade) -> bool:
    """Whether costs are those that the rule uses: given, or those of going on, from its counts."""
    return cascade.config.goes_on or not cascade.config.priced


def judged_of(
    cascade: RunningCascade, sums: Mapping[str, float], segment: str | None = None
) -> JudgedCascade | None:
    """The verdict and its readings, or None while some two stages were never compared.

    Args:
        sums: of the same epoch and segment. Where abstentions are left out, a round in which one of
            two stages gave none counts as one on which they may differ, so that "certain" holds
            whatever it was.
    """
    evidence = _compared_part(cascade, evidence_of(cascade, segment))
    if evidence is None:
        return None
    stage_count = evidence.stage_count
    half = np.zeros((stage_count, stage_count), dtype=np.int64)
    for i in range(stage_count):
        for j in range(i + 1, stage_count):
            half[i, j] = int(sums.get(f"half:{i}:{j}", 0))
    doubt = Doubt(
        (evidence.seen + half).astype(np.int64), (evidence.disagreed + half).astype(np.int64)
    )
    names, costs = cascade.config.stage_names, costs_now(cascade, sums)
    stages, beyond = names[:stage_count], names[stage_count:]
    if beyond:
        costs = Costs.from_cumulative(costs.cumulative[:stage_count], costs.mistake_cost)
    counts = patterns_of(stages, sums)
    settings = LogSettings(
        reading=cascade.config.reading,
        costs=call_costs(cascade, sums)[:stage_count],
        mistake_cost=cascade.config.mistake_cost,
        abstentions=cascade.config.abstentions,
    )
    bounds = _bounds_of(counts, settings, cascade.config.goes_on)
    if cascade.config.priced:  # means of what calls cost are not exact
        bounds = with_measured_costs(bounds, sums, settings.level)
    verdict = judge(stages, evidence, costs, doubt=doubt, cost_bounds=bounds)
    if counts is not None and counts.evidence(settings.no_answer) != evidence:
        counts = None  # evidence from elsewhere has no patterns: then the pairs alone are read
    return JudgedCascade(verdict, readings_of(verdict, settings, counts), beyond)


def _compared_part(cascade: RunningCascade, evidence: Evidence) -> Evidence | None:
    """The evidence of the first stages of which every two were compared; None if there is no such.

    That is all stages, or those up to `run_to` where requests go no deeper.
    """
    for stage_count in (evidence.stage_count, _reach(cascade) + 1):
        seen = evidence.seen[:stage_count, :stage_count]
        if stage_count > 1 and bool((seen[np.triu_indices(stage_count, 1)] > 0).all()):
            if stage_count == evidence.stage_count:
                return evidence
            disagreed = evidence.disagreed[:stage_count, :stage_count]
            switches = int(evidence.switched), int(evidence.switched_twice)
            return Evidence.from_counts(seen, disagreed, *switches)
    return None


def _reach(cascade: RunningCascade) -> int:
    """The deepest stage that requests go to in the present mode."""
    config = cascade.config
    return len(config.stages) - 1 if cascade.mode == "enforce" else config.run_to


def _bounds_of(counts: PatternCounts | None, settings: LogSettings, goes_on: bool) -> CostBounds:
    """Costs as given; where the next stage is called if one gives no answer, how often at most.

    Without patterns nothing is known of how often that is: then it may be always, so that nothing
    is called certain.
    """
    assert settings.costs is not None
    own = settings.costs
    if not goes_on:
        return CostBounds(own, own, False, own)
    if counts is not None:
        return costs_of(counts, settings)[1]
    return CostBounds(own, own, False, own, kept_low=np.zeros((len(own), len(own))))


def patterns_of(stages: tuple[str, ...], sums: Mapping[str, float]) -> PatternCounts | None:
    """How often each pattern of agreeing answers was seen; None where none was counted.

    >>> found = patterns_of(("a", "b", "c"), {"pattern:0:1:1": 3, "pattern:0:-1": 2, "rounds": 5})
    >>> found.codes.tolist(), found.number.tolist()
    ([[0, -1, -2], [0, 1, 1]], [2, 3])
    >>> patterns_of(("a", "b", "c"), {"pattern:-1:0<1": 3}).counted.tolist()
    [[True, False, False]]
    """
    rows: list[list[int]] = []
    number: list[int] = []
    counted: list[list[bool]] = []
    for name, value in sorted(sums.items()):
        if name.startswith(PATTERN):
            pattern, limited, until = name.removeprefix(PATTERN).partition(UNTIL)
            codes = [int(code) for code in pattern.split(":")]
            rows.append((codes + [NOT_CALLED] * len(stages))[: len(stages)])
            counted.append([not limited or at < int(until) for at in range(len(stages))])
            number.append(int(value))
    if not rows:
        return None
    return PatternCounts(
        stages=stages,
        labels=tuple(str(at) for at in range(len(stages))),
        codes=np.array(rows),
        number=np.array(number),
        block=np.zeros(len(rows), dtype=np.int64),
        blocks=1,
        segment=np.full(len(rows), -1),
        segments=(),
        billed=None,
        counted=None if all(map(all, counted)) else np.array(counted),
    )


def renew_headlines(rounds: Rounds, cascade: RunningCascade) -> None:
    """Let the cascade know the stage of the headline, of all requests and of each segment.

    It reads tables and estimates, so it is not done where requests wait.
    """
    found: dict[str | None, int] = {}
    for segment in (None, *cascade.learner.segments):
        sums = rounds.sums(cascade.name, epoch=cascade.epoch, segment=segment)
        judged = judged_of(cascade, sums, segment)
        if judged is not None:
            found[segment] = judged.stage
    cascade.headlines = found


def sentence_of(
    cascade: RunningCascade, judged: JudgedCascade | None, sums: Mapping[str, float]
) -> str:
    """The verdict in one sentence.

    Args:
        sums: as in `judged_of`: where there is no verdict yet, they tell why.
    """
    if judged is None:
        title, reason = _nothing_yet(cascade, sums)
        return f"{title}: {reason[0].lower()}{reason[1:]}"
    if judged.beyond:
        return title_of(cascade, judged, sums)[1]
    return headline(judged.verdict, judged.readings)


def title_of(
    cascade: RunningCascade, judged: JudgedCascade | None, sums: Mapping[str, float]
) -> tuple[str, str]:
    """The same in two parts: what to do, and the sentences that say why."""
    if judged is None:
        return _nothing_yet(cascade, sums)
    title, reason = title_and_reason(judged.verdict, judged.readings)
    if judged.beyond:
        known = judged.verdict.stages[-1]
        said = headline(judged.verdict, judged.readings)
        return f"Up to {known}: {title}", f"Of the stages up to {known}: {said}"
    return title, reason


def _nothing_yet(cascade: RunningCascade, sums: Mapping[str, float]) -> tuple[str, str]:
    """Why there is no verdict, and what brings one."""
    if _reach(cascade) == 0:
        first = cascade.config.stage_names[0]
        reason = (
            f"In the mode {cascade.mode} every request stops at {first}, the first stage"
            " (`run_to`), so that no two stages answer the same one. A deeper `run_to` compares"
            " the stages up to it."
        )
        return "Nothing can be said", reason
    return "Nothing can be said yet", f"{_what_is_missing(cascade, sums)}{_failing(cascade, sums)}"


def _what_is_missing(cascade: RunningCascade, sums: Mapping[str, float]) -> str:
    config, requests = cascade.config, int(sums.get("requests", 0))
    if not requests:
        if config.served:
            return (
                "No request has come in yet. Send one to `/v1/chat/completions` with the model name"
                f" `{config.name}`."
            )
        path = f"/api/v1/cascades/{config.name}/rounds"
        return f"No round has been reported yet. Begin one with a POST to `{path}`."
    if not sums.get("rounds", 0):
        part = f" In shadow, {share(config.sample)} are." if cascade.mode == "shadow" else ""
        return f"{counted(requests, 'request')} came in, of which none was compared.{part}"
    names, seen = config.stage_names[: _reach(cascade) + 1], evidence_of(cascade).seen
    missing = [
        f"{one} and {two}"
        for i, one in enumerate(names)
        for j, two in enumerate(names)
        if i < j and not seen[i, j]
    ]
    both = f" ({'; '.join(missing)})" if len(missing) < 4 else ""
    return f"Not every two stages have answered the same request{both}."


def _failing(cascade: RunningCascade, sums: Mapping[str, float]) -> str:
    """Stages that never came back: then there is nothing to wait for."""
    said = ""
    for at, name in enumerate(cascade.config.stage_names):
        calls, failed = int(sums.get(f"calls:{at}", 0)), int(sums.get(f"failed:{at}", 0))
        if calls and calls == failed:
            said += f" {name} has failed in each of its {counted(calls, 'call')}."
    return said


def more_sentences(cascade: RunningCascade, judged: JudgedCascade | None) -> list[str]:
    """Stages that are not known, where the readings disagree, what is not knowable."""
    if judged is None:
        return []
    said = (disagreement_sentence, check_sentence, shallower_sentence)
    texts = [say(judged.verdict, judged.readings) for say in said]
    if judged.beyond:
        known = judged.verdict.stages[-1]
        texts.insert(0, (
            f"Of {', '.join(judged.beyond)} nothing is known: in the mode {cascade.mode} requests"
            f" go no deeper than {known} (`run_to`). With a deeper `run_to`, or enforced, what is"
            " deeper is compared too."
        ))  # fmt: skip
    return [text for text in texts if text is not None]


def standing_of(judged: JudgedCascade | None) -> str:
    """How sure it is that no deeper stage pays: as `certain`, and why not where it is not."""
    if judged is None:
        return NOT_JUDGED
    if judged.certain_so_far:
        return f"certain up to {judged.verdict.stages[-1]}" if judged.beyond else "certain"
    deeper = [pair.verdict for pair in judged.verdict.pairs if pair.shallow == judged.stage]
    if deeper and "not knowable" not in deeper:
        return "not certain yet"
    return NOT_KNOWABLE


def matter_of(judged: JudgedCascade | None) -> str:
    """What is certain, or not knowable: the words that follow `standing_of`."""
    if judged is None:
        return ""
    if judged.stage == len(judged.verdict.stages) - 1:
        return "whether an earlier stage would be enough"
    if standing_of(judged) == NOT_KNOWABLE:
        return "whether a deeper stage is worth its price"
    return "that no deeper stage is worth its price"


def open_question(judged: JudgedCascade | None) -> str | None:
    """What is not knowable without labels."""
    return None if judged is None else shallower_sentence(judged.verdict, judged.readings)
