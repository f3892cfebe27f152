"""The tables of an analysis: its stages, for data frames and notebooks; its segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopwise.logs.formatting import amount, share
from stopwise.logs.judging.findings import Findings


def records(findings: Findings) -> list[dict[str, Any]]:
    """One record for each stage; costs in cost units, regrets in mistakes per item."""
    verdict = findings.verdict
    table = []
    for at, name in enumerate(verdict.stages):
        record: dict[str, Any] = {
            "stage": name,
            "cost": float(verdict.cost_bounds.own[at]),
            "cumulative_cost": float(verdict.costs.cumulative[at]),
            "estimated_error_rate": float(findings.readings.error_rates[at]),
            "worst_case_regret": float(verdict.worst_case_regret[at]),
            "headline": at == findings.readings.headline_stage,
            "rule": at == verdict.recommended,
            "minimax": at == verdict.minimax_stage,
        }
        if findings.truth is not None:
            record["error_rate"] = float(findings.truth.error_rates[at])
            record["regret"] = float(findings.truth.regret_by_stage[at])
        table.append(record)
    return table


def cells(findings: Findings) -> tuple[list[str], list[Sequence[str]]]:
    """Titles and rows of the table that a notebook shows."""
    verdict = findings.verdict
    titles = ["stage", "cost", "cost up to it", "estimated errors", "worst case", "named by"]
    rows: list[Sequence[str]] = []
    for record in records(findings):
        readings = ", ".join(name for name in ("headline", "rule", "minimax") if record[name])
        rows.append(
            (
                record["stage"],
                amount(record["cost"]),
                amount(record["cumulative_cost"]),
                share(record["estimated_error_rate"]),
                amount(record["worst_case_regret"] * verdict.costs.mistake_cost),
                readings,
            )
        )
    return titles, rows


SEGMENT_TITLES = ("segment", "items", "stop at", "reading", "saves per item")


def segment_rows(findings: Findings) -> list[Sequence[str]]:
    """A row for every segment, under `SEGMENT_TITLES`."""
    rows: list[Sequence[str]] = []
    for segment in findings.segments:
        verdict, readings = segment.verdict, segment.readings
        items = f"{segment.rows:,}"
        if verdict is None or readings is None or readings.headline_stage is None:
            rows.append((segment.name, items, "-", "too few common items", ""))
            continue
        up_to = verdict.costs.cumulative
        saved = amount(up_to[verdict.baseline] - up_to[readings.headline_stage])
        stage = verdict.stages[readings.headline_stage]
        rows.append((segment.name, items, stage, readings.headline_reading, saved))
    return rows
