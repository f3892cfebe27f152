"""The report: one HTML page that needs nothing else, for a manager first and an engineer below."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stopwise.logs.formatting import amount, counted, round_share, share
from stopwise.logs.judging.verdict import CERTAIN, NOT_KNOWABLE, TOO_FEW_ROWS, Verdict
from stopwise.logs.reporting import headline, page_detail, plots, words
from stopwise.logs.reporting.items_page import items_alone_section, items_section
from stopwise.logs.reporting.page_parts import section, table, with_code
from stopwise.logs.reporting.page_style import STYLE
from stopwise.logs.reporting.stage_table import SEGMENT_TITLES, segment_rows
from stopwise.logs.reporting.svg import GOOD, GREY, OPEN

if TYPE_CHECKING:
    from stopwise.logs.judging.findings import Findings

PLAIN_NAMES = {
    "abstentions": "Stages that give no answer",
    "costs_more_than_a_mistake": "Costs more than a mistake",
    "drift": "Changes over the log",
    "few_rows": "Few rows",
    "labels_differ_in_case": "Labels alike",
    "mistake_cost_assumed": "Mistake cost assumed",
    "more_rows_would_tell": "More rows would tell",
    "conflicting_truths": "Conflicting truths",
    "costs_fall": "Costs fall",
    "outlier_stage": "Worse than a cheaper stage",
    "repeated_columns": "Repeated columns",
    "repeated_items": "Repeated items",
    "suspicious_answers": "Answers that look like none",
    "missing_bills": "Answers without a cost",
    "truth_labels_folded": "Truth written otherwise",
    "truth_labels_unknown": "Truth that nobody says",
    "partial_log": "Partial log",
    "selective_log": "Selective log",
    "sorted_log": "Sorted log",
}


_SURE = {
    "certain": ("Certain", "that it is the best stage, whatever the truth"),
    "estimated": ("Estimated", "from how the stages agree; labels would make it certain"),
    "rule-of-thumb": ("By rule of thumb", "nothing can be estimated here; labels would tell"),
    "weak-dominance": ("If weak dominance holds", "which cannot be seen without labels"),
    "minimax": ("Smallest worst case", "whoever is right"),
}


def report(analysis: Findings) -> str:
    """The page as text."""
    sections = [
        _head(analysis),
        page_detail.readings(analysis),
        None if analysis.per_item is None else items_section(analysis.per_item),
        None if analysis.per_item_alone is None else items_alone_section(analysis.per_item_alone),
        _knowable(analysis),
        _truth(analysis),
        _mistake_costs(analysis),
        _warnings(analysis),
        _what_ifs(analysis),
        _segments(analysis),
        page_detail.ladders(analysis),
        page_detail.stages(analysis),
        page_detail.pairs(analysis),
        page_detail.matrix(analysis),
        page_detail.over_time(analysis),
        page_detail.method(analysis),
    ]
    title = escape(f"Where to stop: {_file_name(analysis)}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>"
        + "".join(filter(None, sections))
        + "</main></body></html>\n"
    )


def _file_name(analysis: Findings) -> str:
    """The last part of the log's name: a report that is passed on should not show folders."""
    return analysis.name.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _head(analysis: Findings) -> str:
    verdict, readings = analysis.verdict, analysis.readings
    base = verdict.baseline
    at = readings.headline_stage
    tiles = [("Stop at", "open", "more than one stage may be the best")]
    if at is not None:
        total, spent = verdict.costs.cumulative[base], verdict.costs.cumulative[at]
        way = (
            f"{verdict.stages[base]} alone" if verdict.alone else f"going to {verdict.stages[base]}"
        )
        saved = f"{share((total - spent) / total)} of {way}" if total > 0 else f"against {way}"
        if verdict.cost_bounds.calls is None:
            saved += f"; {amount(verdict.cost_bounds.own[base] - spent)} of it called alone"
        pair = verdict.pair(at, base) if at != base else None
        tiles = [
            (
                "Call alone" if verdict.alone else "Stop at",
                verdict.stages[at],
                f"stage {at + 1} of {len(verdict.stages)}",
            ),
            ("Saves per item", amount(total - spent), saved),
            (
                "Answers that change",
                f"≤ {share(pair.may_differ_high)}" if pair else "none",
                f"against always {verdict.stages[base]}"
                + (f"; {share(pair.disagreement)} in this log" if pair else ""),
            ),
        ]
    tiles.append(("How sure", *_SURE[readings.headline_reading]))
    cells = "".join(
        f'<div class="tile"><div class="k">{escape(k)}</div><div class="v">{escape(v)}</div>'
        f'<div class="n">{escape(n)}</div></div>'
        for k, v, n in tiles
    )
    said = (
        headline.check_sentence(verdict, readings),
        headline.disagreement_sentence(verdict, readings),
        headline.missing_sentence(verdict),
        headline.alone_sentence(analysis.alone, verdict, readings)
        if analysis.alone is not None
        else None,
    )
    doubt = "".join(f'<p class="doubt">{with_code(text)}</p>' for text in said if text)
    costs = "measured in the log" if verdict.cost_bounds.measured else "as given"
    what, why = headline.title_and_reason(verdict, readings)
    return (
        f'<header><p class="eyebrow">{_question(verdict)} · '
        f"{escape(_file_name(analysis))} · {counted(analysis.rows, 'item')}</p>"
        f'<h1>{escape(what)}</h1><p class="lead">{escape(why)}</p>{doubt}'
        f'<div class="tiles">{cells}</div>'
        f'<p class="note">A wrong answer is taken to cost {amount(verdict.costs.mistake_cost)};'
        f" costs are {costs}, all in the same units. No labels were used to find this."
        f" Everything called certain holds with {round_share(verdict.level)}, all together."
        f"{_ALONE if verdict.alone else ''}</p></header>"
    )


_ALONE = (
    " Each stage is called alone and costs what it costs by itself: stages stand in the order of"
    " their costs, and a deeper stage is a more expensive one."
)


def _question(verdict: Verdict) -> str:
    return "Which stage should be called?" if verdict.alone else "Where should this cascade stop?"


def _knowable(analysis: Findings) -> str:
    verdict = analysis.verdict
    items = [
        (pair.verdict, words.pair_sentence(verdict, pair))
        for pair in words.key_pairs(verdict, analysis.readings)
    ]
    cards = []
    for certain, title, colour in (
        (CERTAIN, "Certain, whatever the truth", GOOD),
        (TOO_FEW_ROWS, "Too few rows to be certain", GREY),
        (NOT_KNOWABLE, "Not knowable without labels", OPEN),
    ):
        own = [escape(text) for kind, text in items if kind == certain]
        if not own and certain == TOO_FEW_ROWS:
            continue
        body = "".join(f"<li>{text}</li>" for text in own) or "<li>Nothing, on this log.</li>"
        cards.append(
            f'<div class="card" style="border-top-color:{colour}"><h3>{title}</h3>'
            f"<ul>{body}</ul></div>"
        )
    extra = [
        headline.shallower_sentence(verdict, analysis.readings),
        words.minimax_sentence(verdict),
    ]
    if len(verdict.pairs) > len(items):
        extra.append("Pairs of other stages are listed further below.")
    notes = "".join(f"<p>{with_code(text)}</p>" for text in extra if text)
    return section(
        "What is certain, and what is not knowable",
        f'<div class="two">{"".join(cards)}</div>{notes}',
    )


def _truth(analysis: Findings) -> str | None:
    if analysis.truth is None:
        return None
    text = words.truth_sentence(analysis.verdict, analysis.readings, analysis.truth)
    return section(
        "Held against the truth",
        f"<p><b>{escape(text)}</b></p>"
        f'<div class="plot">{plots.frontier(analysis)}</div>'
        '<p class="note">Every stage by what one item costs up to it and how often it is wrong.'
        " On the dashed line everything costs as much as the best stage, mistakes included; other"
        " stages lie above it. The truth was read after the verdict was made.</p>",
    )


def _mistake_costs(analysis: Findings) -> str:
    verdict = analysis.verdict
    rows = [
        (
            words.range_text(window),
            verdict.stages[window.stage],
            words.range_kind(window, verdict),
        )
        for window in analysis.mistake_cost_ranges
    ]
    now = [w.start <= verdict.costs.mistake_cost < w.end for w in analysis.mistake_cost_ranges]
    return section(
        "If a mistake cost more, or less",
        f'<div class="plot">{plots.strip(analysis)}</div>'
        '<p class="note">Solid: nothing deeper pays, for certain. Hatched: that is not certain.'
        " Whether a shallower stage would be enough is never certain without labels.</p>"
        + table(("mistake cost", "stage", "how sure"), rows, bold=now),
    )


def _warnings(analysis: Findings) -> str | None:
    if not analysis.warnings:
        return None
    items = "".join(
        f'<li><b title="{escape(w.code)}">{escape(PLAIN_NAMES.get(w.code, w.code))}</b>'
        f" {escape(w.message)}</li>"
        for w in analysis.warnings
    )
    return section("Before you act on it", f'<ul class="warnings">{items}</ul>')


def _what_ifs(analysis: Findings) -> str | None:
    if not words.key_changes(analysis):
        return None
    items = "".join(
        f"<li>{escape(words.what_if_sentence(analysis.verdict, change))}</li>"
        for change in words.key_changes(analysis)
    )
    return section(words.WHAT_IF_TITLE, f"<ul>{items}</ul>")


def _segments(analysis: Findings) -> str | None:
    if not analysis.segments:
        return None
    return section("By segment", table(SEGMENT_TITLES, segment_rows(analysis)))
