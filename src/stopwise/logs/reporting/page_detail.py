"""The part of the report that is for the engineer."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stopwise.logs.formatting import amount, round_share, share
from stopwise.logs.judging.readings import ASSUMPTIONS, ESTIMATED, RULE_OF_THUMB
from stopwise.logs.reporting import plots, plots_detail
from stopwise.logs.reporting.page_parts import section, table
from stopwise.logs.reporting.svg import stage_colour

if TYPE_CHECKING:
    from stopwise.logs.judging.findings import Findings


def ladders(analysis: Findings) -> str:
    """One ladder for every stage that may be stopped at."""
    verdict = analysis.verdict
    figures = "".join(
        f"<figure{' class=chosen' if i == verdict.recommended else ''}><figcaption>Stopping at"
        f" {escape(verdict.stages[i])}{' (recommended)' if i == verdict.recommended else ''}"
        f"</figcaption>{picture}</figure>"
        for i, picture in plots.ladders(verdict)
    )
    return section(
        "Stage ladder: is going deeper worth its price?",
        '<p class="note">Each dot is a deeper stage: how much more it costs, and on which share of'
        " items its answer differs. To be worth its price it would have to fix at least what the"
        " dashed line says. A band below the line (green): it cannot, whatever the truth. On or"
        " above it (orange): not knowable without labels.</p>"
        f'<div class="grid">{figures}</div>',
    )


def readings(analysis: Findings) -> str:
    """Where each reading stops, and on what assumption."""
    verdict, found = analysis.verdict, analysis.readings
    rows = []
    bold = []
    for name, assumption in ASSUMPTIONS.items():
        stage = found.stage_of(name)
        if stage is None and name == RULE_OF_THUMB:
            continue
        nothing = found.why_not if name == ESTIMATED else "more than one may be the best"
        rows.append(
            (name, verdict.stages[stage] if stage is not None else nothing or "", assumption)
        )
        bold.append(name == found.headline_reading)
    return section(
        "Four readings of this log", table(("reading", "stops at", "assumes"), rows, bold=bold)
    )


def stages(analysis: Findings) -> str:
    """The table of stages."""
    verdict = analysis.verdict
    readings = analysis.readings
    titles = ["stage", "own cost", "cost up to it", "wrong, estimated", "worst case per item"]
    if analysis.truth is not None:
        titles += ["true error rate", "true regret per item"]
    rows = []
    mistake_cost = verdict.costs.mistake_cost
    for at, name in enumerate(verdict.stages):
        own = amount(verdict.cost_bounds.own[at])
        if verdict.cost_bounds.measured:
            low, high = verdict.cost_bounds.low[at], verdict.cost_bounds.high[at]
            own += f" ({amount(low)} to {amount(high)})"
        row = [
            name + (" (minimax)" if at == verdict.minimax_stage else ""),
            own,
            amount(verdict.costs.cumulative[at]),
            share(float(readings.error_rates[at])) if readings.why_not is None else "-",
            amount(float(verdict.worst_case_regret[at]) * mistake_cost),
        ]
        if analysis.truth is not None:
            row.append(share(float(analysis.truth.error_rates[at])))
            row.append(amount(float(analysis.truth.regret_by_stage[at]) * mistake_cost))
        rows.append(row)
    bold = [at == readings.headline_stage for at in range(len(rows))]
    return section(
        "Stages",
        table(titles, rows, bold=bold, colours=[stage_colour(at) for at in range(len(rows))])
        + '<p class="note">The worst case of a stage is what it may cost more than the best stage,'
        " under the truth that is worst for it; it needs no assumption. The estimate of how often"
        " a stage is wrong comes from how the stages agree among themselves: it holds as far as"
        " their errors are not copies of each other.</p>",
    )


def pairs(analysis: Findings) -> str:
    """The table of pairs."""
    verdict = analysis.verdict
    rows = [
        (
            verdict.stages[pair.shallow],
            verdict.stages[pair.deep],
            f"{pair.seen:,}",
            share(pair.disagreement),
            f"{share(pair.low)} to {share(pair.high)}",
            share(pair.may_differ_high),
            f"{pair.threshold:.4g}" if pair.threshold > 1 else share(pair.threshold),
            share(pair.credible_level),
            pair.verdict,
        )
        for pair in verdict.pairs
    ]
    titles = ("shallower", "deeper", "seen together", "differ", "interval", "may differ, at most",
              "worth it above", "credible that it cannot pay", "verdict")  # fmt: skip
    return section("Pairs", table(titles, rows))


def matrix(analysis: Findings) -> str | None:
    """Disagreement by direction."""
    if analysis.counts is None:
        return None
    picture, reading = plots_detail.matrix(analysis.counts)
    rows = [
        (f"{a} says {x}", f"{b} says {y}", share(value))
        for a, x, b, y, value in plots_detail.frequent_switches(analysis.counts)
    ]
    switches = table(("shallower stage", "deeper stage", "of items"), rows)
    return section(
        "Who disagrees with whom, and in which direction",
        f'<div class="two"><div class="plot">{picture}</div><div>{switches}</div></div>'
        f'<p class="note">{escape(reading)}</p>',
    )


def over_time(analysis: Findings) -> str | None:
    """Change over the rows."""
    if len(analysis.over_time) < 2:
        return None
    return section(
        "Over the log",
        '<div class="grid">'
        f"<figure><figcaption>Disagreement, part by part</figcaption>"
        f"{plots_detail.disagreement_over_time(analysis)}</figure>"
        f"<figure><figcaption>Where USS-TS would stop, having seen this much</figcaption>"
        f"{plots_detail.stage_share_over_time(analysis)}</figure></div>",
    )


def method(analysis: Findings) -> str:
    """How it was computed, folded away."""
    verdict = analysis.verdict
    half = ", half of it for the measured costs" if verdict.cost_bounds.measured else ""
    return (
        "<details><summary>How this was computed</summary>"
        "<p>For any truth, the error rates of two stages differ by at most the share of items on"
        " which their answers differ. So if a deeper stage costs more than that share of a mistake,"
        " it cannot be worth its price: this is what <i>certain</i> means, and it needs no"
        " assumption on who is right. The opposite, that a shallower stage would not have been"
        " enough, can never be certain without labels.</p>"
        "<p>Bounds are Clopper-Pearson bounds at a joint level of"
        f" {round_share(verdict.level)} over all {len(verdict.pairs)} pairs (Bonferroni{half})."
        " They take the rows to be independent and like those to come."
        " <i>May differ</i> also counts items on which one of the two answers is not known.</p>"
        "<p>The estimate takes the truth of every item to be unknown and finds, in turn, the most"
        " probable truths and how often each stage is right (the model of Dawid and Skene with one"
        " number per stage). Copies of one stage share one vote, and a part of the belief goes to"
        " the deeper stages, more where stages follow each other.</p>"
        "<p>The rule stops at the first stage that every deeper one differs from on a smaller"
        " share of items than its extra cost is of a mistake. It finds the best stage when weak"
        " dominance holds; whether it does cannot be seen without labels.</p></details>"
    )
