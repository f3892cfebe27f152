"""`analyze`: a log in, a verdict with everything around it out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from stopwise.checks import StopwiseError, fail, names_options, names_settings
from stopwise.costs import Costs
from stopwise.display import frame, html_table
from stopwise.evidence import Evidence
from stopwise.logs.formatting import counted
from stopwise.logs.items import words
from stopwise.logs.items.alone import analyze_items_alone
from stopwise.logs.items.analysis import analyze_items
from stopwise.logs.judging.alone import CalledAlone, called_alone, evidence_called_alone
from stopwise.logs.judging.findings import Findings
from stopwise.logs.judging.judge_counts import judge_counts
from stopwise.logs.judging.mistake_costs import mistake_cost_ranges
from stopwise.logs.judging.over_time import parts_over_time
from stopwise.logs.judging.readings import readings_of
from stopwise.logs.judging.scoring import score
from stopwise.logs.judging.segments import judge_segments
from stopwise.logs.judging.verdict import judge
from stopwise.logs.judging.warnings.all_warnings import (
    assumed_settings,
    warnings_of,
    warnings_of_evidence,
)
from stopwise.logs.judging.warnings.content_warnings import repeated_columns, repeated_items
from stopwise.logs.judging.what_if import what_ifs
from stopwise.logs.reading.call_order import in_call_order
from stopwise.logs.reading.counting import PatternCounts, count
from stopwise.logs.reading.layouts.opening import open_log
from stopwise.logs.reading.live import completed, live_counts
from stopwise.logs.reading.log import baseline_of
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.reporting import drawing, stage_table
from stopwise.logs.reporting.as_json import analysis_dict
from stopwise.logs.reporting.headline import headline
from stopwise.logs.reporting.page import report
from stopwise.logs.settings import LogOptions, LogSettings, settings_from
from stopwise.storage import write_whole

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Analysis(Findings):
    """Everything `stopwise analyze` knows of a log, and the forms in which it shows itself.

    In a notebook it draws itself as a table; `print` shows the verdict.

    >>> from stopwise.logs import example_log, example_settings
    >>> analysis = analyze(example_log(), **example_settings())
    >>> analysis.to_frame().columns[:3]
    ['stage', 'cost', 'cumulative_cost']
    >>> analysis.to_dict()["headline_stage"], analysis.plot().get_xlabel()
    ('linear', 'cost per item when stopped there')
    >>> import tempfile
    >>> analysis.write_report(tempfile.mkdtemp() + "/report.html")
    """

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return headline(self.verdict, self.readings)

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise analyze --json` prints."""
        return analysis_dict(self)

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row for each stage."""
        return frame(stage_table.records(self))

    @names_settings
    def plot(self, ax: Axes | None = None) -> Axes:
        """Cost of every stage against how often it differs from the last, on matplotlib axes."""
        return drawing.plot_stages(self, ax)

    def write_report(self, path: str | Path) -> None:
        """Write the report, one HTML page that needs nothing else."""
        write_whole(path, report(self))

    def __str__(self) -> str:
        lines = [f"{self.name}, {counted(self.rows, 'item')}. {self.sentence}", *self._items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        at = self.readings.headline_stage
        stage = "open" if at is None else f"stop at {self.verdict.stages[at]}"
        return f"<Analysis of {self.name}: {counted(self.rows, 'item')}, {stage}>"

    def _repr_html_(self) -> str:
        columns, rows = stage_table.cells(self)
        note = ". ".join((counted(self.rows, "item"), *self._items()))
        return html_table(columns, rows, title=self.sentence, note=note)

    def _items(self) -> list[str]:
        """What deciding per item is worth, in a sentence each, where that was asked for."""
        found = [] if self.per_item is None else [words.headline(self.per_item)]
        alone = self.per_item_alone
        return [*found, *([] if alone is None else alone.sentences()[:1])]


@names_options(LogOptions)
def analyze(
    log: object,
    settings: LogSettings | None = None,
    *,
    per_item: bool = False,
    **given: Unpack[LogOptions],
) -> Analysis:
    """Analyse a log: a path, or a pandas or polars frame.

    Args:
        settings: a `LogSettings`; or give its fields by name.
        per_item: say also what a rule that decides per item would cost and save.

    >>> import polars
    >>> frame = polars.DataFrame({"fast": [0, 1] * 500, "slow": [0, 1] * 495 + [0] * 10})
    >>> analysis = analyze(frame, stages=["fast", "slow"], costs=[1, 4], mistake_cost=20)
    >>> analysis.verdict.recommended, analysis.verdict.nothing_deeper_pays
    (0, True)
    """
    chosen = completed(log, settings_from(settings, given))
    counts = live_counts(log, chosen)
    if counts is not None:
        if per_item:
            raise StopwiseError(f"per item: this needs rounds, but {counts.name} has only counts")
        return analyze_evidence(counts.evidence, counts.settings, name=counts.name)
    chosen = in_call_order(log, chosen)
    opened = open_log(log, chosen)
    analysis = analyze_counts(opened.name, count(opened), chosen)
    more = (*repeated_columns(opened), *repeated_items(opened, analysis.rows))
    if per_item:
        analysis = _with_items(analysis, log, chosen)
    if opened.truth is None:
        return replace(analysis, warnings=(*analysis.warnings, *more))
    # The truth is read here for the first time, when all else is said.
    scored, notes = score(opened, analysis.verdict)
    return replace(analysis, truth=scored, warnings=(*analysis.warnings, *more, *notes))


def _with_items(analysis: Analysis, log: object, settings: LogSettings) -> Analysis:
    """What deciding per item is worth: in a cascade, called alone, or both where nobody says."""
    in_cascade = alone = None
    if settings.calls != "alone":
        rows = read_rows(log, settings)
        in_cascade = analyze_items(rows, errors=_stated(analysis, rows.stages[-1]))
    if settings.calls != "cascade":
        ordered = in_call_order(log, replace(settings, calls="alone"))
        rows = read_rows(log, ordered)
        stated = _stated(analysis.alone or analysis, rows.stages[rows.baseline])
        alone = analyze_items_alone(rows, errors=stated)
    return replace(analysis, per_item=in_cascade, per_item_alone=alone)


def _stated(findings: Findings | CalledAlone, stage: str) -> float:
    """The errors that the report states of a stage: what is said per item starts from the same."""
    return float(findings.readings.error_rates[findings.verdict.stages.index(stage)])


def analyze_counts(name: str, counts: PatternCounts, settings: LogSettings) -> Analysis:
    """Analyse counted patterns; the truth is not among them."""
    evidence = counts.evidence(settings.no_answer)
    families = 1 + len(counts.segments)
    verdict = judge_counts(counts, settings, families)
    readings = readings_of(verdict, settings, counts)
    return Analysis(
        name=name,
        rows=counts.rows,
        verdict=verdict,
        readings=readings,
        evidence=evidence,
        mistake_cost_ranges=mistake_cost_ranges(verdict),
        what_ifs=what_ifs(verdict),
        warnings=(
            *warnings_of(counts, verdict, readings),
            *assumed_settings(settings),
        ),
        over_time=parts_over_time(counts, verdict.costs),
        segments=judge_segments(counts, settings, families),
        counts=counts,
        alone=called_alone(counts, settings, families) if settings.calls is None else None,
    )


@names_options(LogOptions)
def analyze_evidence(
    evidence: Evidence,
    settings: LogSettings | None = None,
    *,
    name: str = "evidence",
    **given: Unpack[LogOptions],
) -> Analysis:
    """Analyse evidence that was counted elsewhere: in Dask, in SQL, by a running cascade.

    Whatever needs the rows (order, abstentions, labels, truth) is not there.

    >>> parts = [Evidence.from_counts([[0, 500], [0, 0]], [[0, k], [0, 0]]) for k in (4, 6)]
    >>> analysis = analyze_evidence(parts[0] + parts[1], stages=["fast", "slow"], costs=[0, 0.1])
    >>> analysis.verdict.pairs[0].seen, analysis.verdict.nothing_deeper_pays
    (1000, True)
    """
    if not isinstance(evidence, Evidence):
        raise fail("evidence", evidence, "Evidence, such as Evidence.from_counts(...)")
    chosen = settings_from(settings, given)
    if chosen.truth is not None or chosen.segment is not None:
        raise StopwiseError("evidence has no columns: leave out truth and segment")
    if chosen.costs is None:
        raise StopwiseError("costs: not given; give each stage's own cost with costs=[1, 2, ...]")
    stages = chosen.stages or tuple(f"stage {i + 1}" for i in range(evidence.stage_count))
    if len(stages) != evidence.stage_count:
        raise fail(
            "stages", list(stages), f"{evidence.stage_count} names, as the evidence has stages"
        )
    mistake_cost = 1.0 if chosen.mistake_cost is None else chosen.mistake_cost
    if len(chosen.costs) != evidence.stage_count:
        raise fail("costs", list(chosen.costs), f"{evidence.stage_count} numbers, one per stage")
    costs = Costs.from_stages(chosen.costs, mistake_cost)
    alone = None
    if chosen.calls != "cascade":
        alone = evidence_called_alone(stages, evidence, costs, chosen)
    if alone is not None and chosen.calls == "alone":
        verdict, readings, alone = alone.verdict, alone.readings, None
    else:
        base = baseline_of(stages, chosen)
        verdict = judge(stages, evidence, costs, level=chosen.level, baseline=base)
        readings = readings_of(verdict, chosen)
    return Analysis(
        name=name,
        rows=int(evidence.seen.max()),
        verdict=verdict,
        readings=readings,
        evidence=evidence,
        mistake_cost_ranges=mistake_cost_ranges(verdict),
        what_ifs=what_ifs(verdict),
        warnings=(*warnings_of_evidence(verdict, readings), *assumed_settings(chosen)),
        alone=alone,
    )
