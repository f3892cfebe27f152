"""The two files of an audit: the items to be labelled (CSV), and what is known so far (JSON).

Every run reads the labels that were filled in, adds them to the state, and only then writes the
next items; both files are written whole and moved into place, so nothing is lost at any moment.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from stopwise.arrays import IntArray
from stopwise.checks import StopwiseError, fail, known_names, parse_json_object, whole_number
from stopwise.logs.auditing.audit import AuditPlan, assess, order_by_item
from stopwise.logs.auditing.label_codes import check_names, label_codes
from stopwise.logs.auditing.labelling_page import labelling_page
from stopwise.logs.auditing.result import Audit
from stopwise.logs.formatting import counted
from stopwise.logs.reading.labels import plain_label
from stopwise.logs.reading.rows import LogRows
from stopwise.storage import read_whole, write_whole

_VERSION = 2
_FIELDS = ("version", "log", "stages", "cumulative_costs", "mistake_cost", "level", "tolerance",
           "abstentions", "seed", "labels", "outputs")  # fmt: skip
LABEL_COLUMN = "label"


@dataclass(frozen=True)
class AuditState:
    """Labels by item, what must not change while they are collected, and what is to be said."""

    form: dict[str, Any]
    labels: dict[str, str]
    seed: int
    notes: list[str]


def fingerprint(plan: AuditPlan) -> str:
    """Tells whether a log is the one the audit began with."""
    digest = hashlib.sha256(plan.rows.codes.astype("<i8").tobytes())
    digest.update("\x00".join((*plan.rows.labels, *plan.rows.items)).encode())
    return digest.hexdigest()[:16]


def load_state(path: Path, plan: AuditPlan, seed: int | None = None) -> AuditState:
    """The state in a file, or a fresh one; other stages, costs, settings or seeds are refused.

    A log that has grown is fine: labels of items that are still there, with the same outputs,
    stay; costs measured in the log may have changed with it.
    """
    check_names(plan.rows)
    fresh = {
        "version": _VERSION,
        "log": fingerprint(plan),
        "stages": list(plan.rows.stages),
        # Measured costs are sums in no fixed order: their last digits may differ between runs.
        "cumulative_costs": [float(f"{cost:.10g}") for cost in plan.rows.costs.cumulative],
        "mistake_cost": plan.rows.costs.mistake_cost,
        "level": plan.level,
        "tolerance": plan.tolerance,
        "abstentions": plan.abstentions,
    }
    if seed is not None:
        whole_number("seed", seed, least=0)
    if not path.exists():
        return AuditState(fresh, {}, seed or 0, [])
    form = parse_json_object(f"state {path}", read_whole(path))
    known_names(f"state {path}", form, _FIELDS)
    grown = form.get("log") != fresh["log"]
    may_change = {"version", "log"} | ({"cumulative_costs"} if grown else set())
    if "abstentions" not in form:  # written before it was recorded
        may_change.add("abstentions")
    for field in fresh:
        if field not in may_change and form.get(field) != fresh[field]:
            raise StopwiseError(
                f"state {path}: {field} is not what it was when this audit began; go on as before,"
                " or begin again with another --state"
            )
    if form.get("version") not in (1, _VERSION):
        raise fail(f"state {path}: version", form.get("version"), f"version {_VERSION}")
    labels = form.get("labels")
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise fail(f"state {path}: labels", labels, "an object from item to label")
    begun_with = whole_number("seed", form.get("seed"), least=0)
    if seed is not None and seed != begun_with:
        raise StopwiseError(
            f"state {path}: this audit began with --seed {begun_with}, in whose order items are"
            f" labelled, not {seed}; leave --seed out, or begin again with another --state"
        )
    notes = []
    if grown:
        _refuse_other_log(path, plan, labels, form.get("outputs"))
        notes.append(
            f"the log has changed since this audit began: {counted(len(plan.rows.items), 'item')};"
            " labels count in the order of labelling, so some wait for the new items among them"
        )
    return AuditState(fresh, dict(labels), begun_with, notes)


def _refuse_other_log(path: Path, plan: AuditPlan, labels: Any, outputs: Any) -> None:
    """Labelled items must still be in the log, with the outputs that they had."""
    rows = {item: at for at, item in enumerate(plan.rows.items)}
    for item in labels:
        before = outputs.get(item) if isinstance(outputs, dict) else None
        if item not in rows or (before is not None and before != _outputs(plan, rows[item])):
            raise StopwiseError(
                f"state {path}: the log is not what it was when this audit began (item {item!r} is"
                " gone, or has other outputs); go on as before, or begin again with another --state"
            )


def _outputs(plan: AuditPlan, row: int) -> list[str]:
    return ["" if code < 0 else plan.rows.labels[code] for code in plan.rows.codes[row]]


def read_labels(path: Path, plan: AuditPlan, state: AuditState) -> int:
    """Add the labels that were filled in to the state; how many were new."""
    if not path.exists():
        return 0
    new = 0
    for item, label in _filled_in(path, plan.rows):
        before = state.labels.get(item)
        if before is not None and before != label:
            raise StopwiseError(
                f"labels {path}: item {item!r} was labelled {before!r} before and {label!r} now;"
                " keep one of them (earlier labels are in the state file)"
            )
        new += before is None
        state.labels[item] = label
    return new


def _filled_in(path: Path, rows: LogRows) -> Iterator[tuple[str, str]]:
    """Items and labels of a file to be labelled; lines without a label are passed over."""
    text = read_whole(path).lstrip("\ufeff")
    # Where a comma is the decimal sign, spreadsheets write semicolons between columns.
    readers = [csv.DictReader(io.StringIO(text), delimiter=between) for between in ",;\t"]
    found = [one for one in readers if {"item", LABEL_COLUMN} <= set(one.fieldnames or ())]
    if not found:
        columns = list(readers[0].fieldnames or ())
        raise fail(f"labels {path}", columns, "columns 'item' and 'label'")
    reader = found[0]
    known, outputs = set(rows.items), set(rows.labels)
    for row in reader:
        item, label = str(row["item"]), plain_label(row[LABEL_COLUMN])
        if label is None:
            continue
        item = item if item in known else item.removeprefix("'")
        if item not in known:
            raise fail(f"labels {path}: item", item, "an item of the log that all stages answered")
        # An apostrophe keeps a spreadsheet from running a formula, unless outputs begin with one.
        yield item, label if label in outputs else label.removeprefix("'")


def labels_in(path: Path, rows: LogRows) -> dict[str, str]:
    """All labels of a file: one that was filled in (CSV), or what an audit has kept (JSON)."""
    check_names(rows)
    if path.suffix != ".json":
        return dict(_filled_in(path, rows))
    labels = parse_json_object(f"labels {path}", read_whole(path)).get("labels")
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise fail(f"labels {path}: labels", labels, "an object from item to label, as audit keeps")
    known = set(rows.items)
    for item in labels:
        if item not in known:
            raise fail(f"labels {path}: item", item, "an item of the log that all stages answered")
    return dict(labels)


class Collected(NamedTuple):
    """All labels so far (row number to code), the order of the items, and what is to be said."""

    truth: dict[int, int]
    order: IntArray
    notes: tuple[str, ...]


def take_in(
    plan: AuditPlan, state_path: Path, labels_path: Path, seed: int | None = None
) -> Collected:
    """Read the labels that were filled in and keep them in the state before anything else."""
    state = load_state(state_path, plan, seed)
    read_labels(labels_path, plan, state)
    truth, notes = label_codes(plan.rows, state.labels)
    rows = {item: at for at, item in enumerate(plan.rows.items)}
    form = {
        **state.form,
        "seed": state.seed,
        "labels": state.labels,
        "outputs": {item: _outputs(plan, rows[item]) for item in state.labels},
    }
    write_whole(state_path, json.dumps(form, indent=1) + "\n")
    said = (*state.notes, *plan.rows.notes, *notes)
    return Collected(truth, order_by_item(plan, state.seed), said)


def hand_out(
    plan: AuditPlan, items: tuple[int, ...], labels_path: Path, *, blind: bool = False,
    page_path: Path | None = None,
) -> None:  # fmt: skip
    """Write these items, by row number, to be labelled next."""
    write_whole(labels_path, _to_label(plan, items, blind))
    if page_path is not None:
        write_whole(page_path, labelling_page(plan, items, labels_path.name, blind=blind))


def advance(
    plan: AuditPlan, state_path: Path, labels_path: Path, *, batch: int = 20,
    seed: int | None = None, blind: bool = False, page_path: Path | None = None,
) -> Audit:  # fmt: skip
    """One step of an audit: labels in, state saved, verdict updated, next items out.

    Args:
        seed: of the order in which items are labelled; by default that of the state, or 0.
        page_path: where to write a page on which the labels can be typed in; None for none.
    """
    batch = whole_number("batch", batch, least=1)
    so_far = take_in(plan, state_path, labels_path, seed)
    audit = assess(plan, so_far.order, so_far.truth, batch)
    hand_out(plan, audit.next_items, labels_path, blind=blind, page_path=page_path)
    return replace(audit, notes=so_far.notes)


def _to_label(plan: AuditPlan, items: tuple[int, ...], blind: bool) -> str:
    """The next items as CSV, with what the stages said unless that might sway the reader."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    shown = ("shown",) if plan.rows.shown is not None else ()
    stages = () if blind else plan.rows.stages
    writer.writerow([inert(name) for name in ("item", *shown, *stages)] + [LABEL_COLUMN])
    for item in items:
        outputs = [] if blind else _outputs(plan, item)
        text_of = [] if plan.rows.shown is None else [plan.rows.shown[item]]
        cells = [plan.rows.items[item], *text_of, *outputs]
        writer.writerow([inert(cell) for cell in cells] + [""])
    return text.getvalue()


def inert(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe is put before it.

    >>> inert("=1+1"), inert("-5"), inert("plain")
    ("'=1+1", '-5', 'plain')
    """
    if not cell or cell[0] not in "=+-@\t\r":
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell


def settled_by(audit: Audit) -> str | None:
    """What "settled" rests on: a guarantee for any log, a posterior, or nothing as yet."""
    if not audit.settled:
        return None
    return "guarantee" if audit.guaranteed else "posterior"


def audit_dict(audit: Audit, plan: AuditPlan, labels_path: Path) -> dict[str, Any]:
    """What `stopwise audit --json` prints; error differences are shares of items."""
    names = audit.stages
    return {
        "version": 1,
        "stages": list(names),
        "settled": audit.settled,
        "settled_by": settled_by(audit),
        "best_stage": None if audit.best is None else names[audit.best],
        "in_question": [names[stage] for stage in audit.in_question],
        "labels": audit.labels,
        "items": audit.items,
        "items_left_out": plan.rows.left_out,
        "worth_labelling": audit.worth_labelling,
        "random_labels": audit.random_labels,
        "level": plan.level,
        "best_guess": names[audit.guess],
        "notes": list(audit.notes),
        "pairs": [
            {
                "shallow": names[pair.shallow],
                "deep": names[pair.deep],
                "differ": pair.items,
                "labelled": pair.labelled,
                "error_difference_low": pair.low,
                "error_difference_high": pair.high,
                "threshold": pair.threshold,
                "finding": pair.finding,
                "guaranteed": pair.guaranteed,
            }
            for pair in audit.pairs
        ],
        "next_items": [plan.rows.items[item] for item in audit.next_items],
        "labels_file": str(labels_path),
    }
