"""Labels that people typed in, as codes of the stages' labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopwise.checks import StopwiseError, fail
from stopwise.logs.formatting import counted, printable
from stopwise.logs.reading.labels import fold_labels, plain_label
from stopwise.logs.reading.rows import LogRows

_ENOUGH = 3
"""From this number of labels on, if no stage gives any of them, they count as written wrongly."""


def check_names(rows: LogRows) -> None:
    """Refuse a log in which two items have one name."""
    if len(set(rows.items)) != len(rows.items):
        raise StopwiseError(
            "item: names are not unique, so labels could not be told apart; keep one row for each"
            " item, or name another column with --item"
        )


def repeated_items(rows: LogRows) -> tuple[str, ...]:
    """What a simulation should say of rows that repeat an item; with people they are refused."""
    again = len(rows.items) - len(set(rows.items))
    if not again:
        return ()
    return (
        f"{counted(again, 'row repeats', 'rows repeat')} an item; here each counts as an item of"
        " its own, but people could not label it: keep one row for each item",
    )


def refuse_no_labels(labels: object) -> None:
    """Refuse what gives no label by item; the log need not be read for that.

    >>> refuse_no_labels({"12": "cat"})
    """
    if labels is not None and not isinstance(labels, Mapping):
        raise fail("labels", labels, "the right answer by item, such as {'12': 'cat'}")


def codes_of_given(
    rows: LogRows, labels: Mapping[Any, object] | None
) -> tuple[dict[int, int], list[str]]:
    """The same as `label_codes`, of labels that a program gives: items and labels of any type."""
    check_names(rows)
    known, plain = set(rows.items), {}
    for item, value in (labels or {}).items():
        if str(item) not in known:
            raise fail("labels: item", item, "an item of the log that all stages answered")
        if (label := plain_label(value)) is not None:
            plain[str(item)] = label
    return label_codes(rows, plain)


def label_codes(rows: LogRows, labels: Mapping[str, str]) -> tuple[dict[int, int], list[str]]:
    """The code of every labelled row, and what should be said about the labels.

    Labels are compared without regard to case and spaces. One that no stage ever gives is right
    too: all stages are wrong there. But if none of the labels is one of theirs, they are refused.
    """
    known = {label: code for code, label in enumerate(rows.labels)}
    places = {item: at for at, item in enumerate(rows.items)}
    renamed, unknown = fold_labels(labels.values(), known)
    if known and len(labels) >= _ENOUGH and len(unknown) == len(set(labels.values())):
        raise StopwiseError(
            f"labels: no stage ever gives {_listed(unknown)}; the stages write"
            f" {_listed(list(known))}: write labels as they do"
        )
    notes = [f"read {printable(a)!r} as {printable(b)!r}" for a, b in renamed.items()]
    if unknown:
        notes.append(
            f"no stage ever gives {_listed(unknown)}: all of them count as wrong on those items"
        )
    truth = {
        places[item]: known.get(renamed.get(label, label), len(known))
        for item, label in labels.items()
    }
    return truth, notes


def _listed(labels: list[str], most: int = 5) -> str:
    shown = ", ".join(repr(printable(label)) for label in labels[:most])
    return shown + (", ..." if len(labels) > most else "")
