"""`analyze`: a log in, a verdict with everything around it out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stopwise.checks import StopwiseError, fail
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.logs.judging.findings import LogWarning
from stopwise.logs.judging.mistake_costs import Window, sweep
from stopwise.logs.judging.row_warnings import selective_stages
from stopwise.logs.judging.scoring import Score, score
from stopwise.logs.judging.verdict import CostBounds, Verdict, doubt_of, judge, unseen_pairs
from stopwise.logs.judging.warnings import warnings_of, warnings_of_evidence
from stopwise.logs.judging.what_if import WhatIf, what_ifs
from stopwise.logs.reading.counting import ABSTAINED_CODE, NOT_CALLED, Counts, MeasuredCosts, count
from stopwise.logs.reading.layouts import open_log
from stopwise.logs.settings import Settings
from stopwise.policies.uss_ts import UssTs


@dataclass(frozen=True)
class Part:
    """One of the parts of equal length into which the rows are cut, in their order.

    Attributes:
        rows: rows up to the end of this part.
        disagreement: share of disagreements of every pair within it; nan where never seen.
        stage_share: what USS-TS, having seen all rows up to here, would do.
    """

    rows: int
    disagreement: FloatArray
    stage_share: FloatArray


@dataclass(frozen=True)
class Segment:
    """The verdict on the rows with one value of the segment column."""

    name: str
    rows: int
    verdict: Verdict | None


@dataclass(frozen=True)
class Analysis:
    """Everything `stopwise analyze` knows of a log.

    Attributes:
        name: what to call the log.
        answered, abstained: how often each stage did; None from evidence alone.
        pair_labels: for every pair, how often which label met which; None from evidence alone.
        truth: how the verdict holds against the truth, if there is one.
    """

    name: str
    rows: int
    verdict: Verdict
    evidence: Evidence
    sweep: tuple[Window, ...]
    what_ifs: tuple[WhatIf, ...]
    warnings: tuple[LogWarning, ...]
    over_time: tuple[Part, ...] = ()
    segments: tuple[Segment, ...] = ()
    counts: Counts | None = None
    truth: Score | None = None

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise analyze --json` prints."""
        from stopwise.logs.reporting.as_json import analysis_dict

        return analysis_dict(self)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        from stopwise.logs.reporting.words import headline

        return headline(self)

    def write_report(self, path: str | Path) -> None:
        """Write the report, one HTML page that needs nothing else."""
        from stopwise.logs.reporting.page import report

        Path(path).write_text(report(self), encoding="utf-8")


def analyze(log: object, settings: Settings | None = None, **given: Any) -> Analysis:
    """Analyse a log: a path, or a pandas or polars frame.

    Args:
        settings: a `Settings`, or its fields by name.

    >>> import polars
    >>> frame = polars.DataFrame({"fast": [0, 1] * 500, "slow": [0, 1] * 495 + [0] * 10})
    >>> analysis = analyze(frame, stages=["fast", "slow"], costs=[1, 4], mistake_cost=20)
    >>> analysis.verdict.recommended, analysis.verdict.nothing_deeper_pays
    (0, True)
    """
    settings = settings_from(settings, given)
    opened = open_log(log, settings)
    counts = count(opened)
    analysis = analyze_counts(opened.name, counts, settings)
    if opened.truth is None:
        return analysis
    # The truth is read here for the first time, when all else is said.
    return replace(analysis, truth=score(opened, analysis.verdict))


def settings_from(settings: Settings | None, given: dict[str, Any]) -> Settings:
    """Settings given whole or by name, not both."""
    if settings is None:
        return Settings.of(**given)
    if given:
        raise fail("settings", sorted(given), "either settings or single fields, not both")
    return settings


def analyze_counts(name: str, counts: Counts, settings: Settings) -> Analysis:
    """Analyse counted patterns; the truth is not among them."""
    costs, bounds = costs_of(counts.costs, len(counts.stages), settings)
    evidence = counts.evidence()
    selective = selective_stages(counts)
    families = 1 + len(counts.segments)
    verdict = judge(
        counts.stages,
        evidence,
        costs,
        level=settings.level,
        doubt=doubt_of(counts.codes, counts.number, selective),
        cost_bounds=bounds,
        families=families,
    )
    return Analysis(
        name=name,
        rows=counts.rows,
        verdict=verdict,
        evidence=evidence,
        sweep=sweep(verdict),
        what_ifs=what_ifs(verdict),
        warnings=(
            *warnings_of(counts, verdict, evidence, selective),
            *_assumed(settings),
        ),
        over_time=_over_time(counts, costs),
        segments=_segments(counts, costs, bounds, settings, families),
        counts=counts,
    )


def analyze_evidence(
    evidence: Evidence, settings: Settings | None = None, *, name: str = "evidence", **given: Any
) -> Analysis:
    """Analyse evidence that was counted elsewhere: in Dask, in SQL, by a running cascade.

    Whatever needs the rows (order, abstentions, labels, truth) is not there.

    >>> parts = [Evidence.from_counts([[0, 500], [0, 0]], [[0, k], [0, 0]]) for k in (4, 6)]
    >>> analysis = analyze_evidence(parts[0] + parts[1], stages=["fast", "slow"], costs=[0, 0.1])
    >>> analysis.verdict.pairs[0].seen, analysis.verdict.nothing_deeper_pays
    (1000, True)
    """
    settings = settings_from(settings, given)
    if settings.truth is not None or settings.segment is not None:
        raise StopwiseError("evidence has no columns: leave out truth and segment")
    if settings.costs is None:
        raise StopwiseError("costs: not given; give each stage's own cost with --costs 1,2,...")
    stages = settings.stages or tuple(f"stage {i + 1}" for i in range(evidence.stage_count))
    if len(stages) != evidence.stage_count:
        raise fail(
            "stages", list(stages), f"{evidence.stage_count} names, as the evidence has stages"
        )
    costs, bounds = costs_of(None, evidence.stage_count, settings)
    verdict = judge(stages, evidence, costs, level=settings.level, cost_bounds=bounds)
    return Analysis(
        name=name,
        rows=int(evidence.seen.max()),
        verdict=verdict,
        evidence=evidence,
        sweep=sweep(verdict),
        what_ifs=what_ifs(verdict),
        # How many labels there are is not known here, so the weaker wording (3) is the true one.
        warnings=(*warnings_of_evidence(verdict, evidence, labels=3), *_assumed(settings)),
    )


def costs_of(
    measured: MeasuredCosts | None, count: int, settings: Settings
) -> tuple[Costs, CostBounds]:
    """Costs as given, or the means measured in the log with intervals (Student's t).

    >>> import numpy as np
    >>> measured = MeasuredCosts(np.array([4.0, 4.0]), np.array([8.0, 20.0]), np.array([16., 104.]))
    >>> costs, bounds = costs_of(measured, 2, Settings(level=0.9))
    >>> costs.cumulative, [round(low, 3) for low in bounds.low]
    ((2.0, 7.0), [2.0, 2.589])
    """
    mistake_cost = 1.0 if settings.mistake_cost is None else settings.mistake_cost
    if measured is None:
        assert settings.costs is not None
        costs = Costs.from_stages(settings.costs, mistake_cost)
        if costs.stage_count != count:
            raise fail("costs", list(settings.costs), f"{count} numbers, one for each stage")
        return costs, CostBounds(settings.costs, settings.costs, measured=False)
    from scipy.special import stdtrit

    mean = measured.total / measured.number
    spread = np.maximum(measured.squares / measured.number - mean**2, 0.0)
    error = np.sqrt(spread / np.maximum(measured.number - 1, 1))
    # Half of 1 - level is for the costs (see verdict.pair_tail), split over stages and sides.
    width = -stdtrit(measured.number - 1, (1 - settings.level) / (4 * count)) * error
    low, high = np.maximum(mean - width, 0.0), mean + width
    return (
        Costs.from_stages(mean.tolist(), mistake_cost),
        CostBounds(tuple(low.tolist()), tuple(high.tolist()), measured=True),
    )


def _assumed(settings: Settings) -> list[LogWarning]:
    if settings.mistake_cost is not None:
        return []
    return [
        LogWarning(
            "mistake_cost_assumed",
            "no mistake cost was given, so a wrong answer is taken to cost 1 in the units of the"
            " costs; see the sweep for other values.",
        )
    ]


def _over_time(counts: Counts, costs: Costs) -> tuple[Part, ...]:
    parts = []
    so_far = Evidence(len(counts.stages))
    rows = 0
    for block in range(counts.blocks):
        here = counts.where(counts.block == block)
        if not here.rows:
            continue
        evidence = here.evidence()
        so_far.merge(evidence)
        rows += here.rows
        share = np.abs(UssTs().probabilities(so_far, max(rows, 1), costs))
        parts.append(Part(rows, evidence.disagreement, share))
    return tuple(parts)


def _segments(
    counts: Counts, costs: Costs, bounds: CostBounds, settings: Settings, families: int
) -> tuple[Segment, ...]:
    """A verdict a segment; costs are those of the whole log."""
    segments = []
    for at, name in enumerate(counts.segments):
        part = counts.where(counts.segment == at)
        evidence = part.evidence()
        verdict = None
        if not unseen_pairs(evidence).any():
            verdict = judge(
                counts.stages,
                evidence,
                costs,
                level=settings.level,
                doubt=doubt_of(part.codes, part.number, selective_stages(part)),
                cost_bounds=bounds,
                families=families,
            )
        segments.append(Segment(name, part.rows, verdict))
    return tuple(sorted(segments, key=lambda segment: -segment.rows))


def stage_counts(counts: Counts) -> dict[str, list[int]]:
    """How often each stage answered, abstained and was not called."""
    codes, number = counts.codes, counts.number
    return {
        "answered": [int(n) for n in number @ (codes >= 0)],
        "abstained": [int(n) for n in number @ (codes == ABSTAINED_CODE)],
        "not_called": [int(n) for n in number @ (codes == NOT_CALLED)],
    }


def no_infinity(value: float) -> float | None:
    """JSON has no infinity; an open end is null."""
    return None if math.isinf(value) or math.isnan(value) else value
