"""When two outputs are the same answer: labels are compared in one plain written form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np

from stopwise.checks import StopwiseError, fail
from stopwise.logs.formatting import printable
from stopwise.problem import IntArray

_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))\.0+")


def plain_label(value: object) -> str | None:
    """The written form of an output, or None for a blank one.

    A column with gaps is often written with decimals ("1.0") beside one without ("1"), and truth
    values as True or true: these are one answer. Text is kept as it is, but for spaces around it.

    >>> [plain_label(value) for value in (1, 1.0, "1.0", " yes ", True, "TRUE", "007")]
    ['1', '1', '1', 'yes', 'true', 'true', '007']
    >>> [plain_label(value) for value in (None, "", "  ", float("nan"), "NaN")]
    [None, None, None, None, None]
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    text = str(value).strip()
    if not text or text in ("nan", "NaN"):
        return None
    if (whole := _WHOLE.fullmatch(text)) is not None:
        return "0" if whole[1] == "-0" else whole[1]
    if text.lower() in ("true", "false"):
        return text.lower()
    return text


def fold_labels(given: Iterable[str], known: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Labels that people wrote, as the stages write them: case and spaces do not matter.

    Returns:
        What each label that is written otherwise stands for, and those that no stage ever gives.

    >>> fold_labels(["Positive", "neutral", "negative"], ["positive", "negative"])
    ({'Positive': 'positive'}, ['neutral'])
    """
    known = list(known)
    exact = set(known)
    folded: dict[str, list[str]] = {}
    for label in known:
        folded.setdefault(_plain(label), []).append(label)
    renamed, unknown = {}, []
    for label in dict.fromkeys(given):
        if label in exact:
            continue
        alike = folded.get(_plain(label), [])
        if len(alike) == 1:
            renamed[label] = alike[0]
        else:
            unknown.append(label)
    return renamed, unknown


def truth_notes(renamed: dict[str, str], unknown: list[str]) -> dict[str, str]:
    """What should be said of right answers that the stages write otherwise, or never give.

    >>> truth_notes({"Yes": "yes"}, [])
    {'truth_labels_folded': "in the truth, read 'Yes' as 'yes'."}
    """
    notes = {}
    if renamed:
        pairs = ", ".join(f"{printable(a)!r} as {printable(b)!r}" for a, b in renamed.items())
        notes["truth_labels_folded"] = f"in the truth, read {pairs}."
    if unknown:
        shown = ", ".join(repr(printable(label)) for label in unknown[:5])
        notes["truth_labels_unknown"] = (
            f"no stage ever gives {shown}{', ...' if len(unknown) > 5 else ''}, which the truth"
            " has: all stages count as wrong there. Are they written with the same labels?"
        )
    return notes


def _plain(label: str) -> str:
    return " ".join(label.casefold().split())


def no_label(stage: str, found: str) -> StopwiseError:
    """Why a column whose values are no labels cannot be a stage."""
    return fail(
        f"column {stage}", found,
        "one label in each row (text, a number or a truth value), not lists or bytes",
    )  # fmt: skip


def too_many_labels(stage: str, found: int, most: int) -> StopwiseError:
    """The refusal of free text and scores."""
    return StopwiseError(
        f"stage {stage}: {found:,} or more different outputs, which looks like free text or scores;"
        f" turn them into labels first, or raise --max-labels (now {most:,})"
    )


def refuse_disjoint_labels(stages: tuple[str, ...], codes: IntArray, labels: list[str]) -> None:
    """Two stages without one label in common speak different languages; comparing is no use."""
    used = [set(np.unique(codes[codes[:, at] >= 0, at]).tolist()) for at in range(len(stages))]
    # A labelling function says one label or nothing: that it says no other is its nature. Some say
    # one of a few; then a stage that gives labels of both shows that they mean the same by them.
    partial = [bool((codes[:, at] < 0).any()) for at in range(len(used))]
    functions = [partial[at] and len(used[at]) == 1 for at in range(len(used))]
    for i in range(len(stages)):
        for j in range(i + 1, len(stages)):
            if not used[i] or not used[j] or used[i] & used[j] or functions[i] or functions[j]:
                continue
            if (
                partial[i]
                and partial[j]
                and any(used[i] & other and used[j] & other for other in used)
            ):
                continue
            few = min(len(used[i]), len(used[j])) == 1 and len(codes) < 20
            if few and _are_numbers(labels, used[i]) == _are_numbers(labels, used[j]):
                continue
            raise StopwiseError(
                f"stages {stages[i]} and {stages[j]} never give the same label"
                f" ({_some(labels, used[i])} against {_some(labels, used[j])});"
                " write their outputs with the same labels"
            )


def refuse_foreign_truth(column: str | None, truth: IntArray, known: int) -> None:
    """Right answers that no stage ever gives would make every stage wrong everywhere.

    Args:
        truth: codes; below 0 where blank, `known` or more where no stage gives that label.
    """
    given = truth[truth >= 0]
    if given.size and (given >= known).all():
        raise StopwiseError(
            f"truth: no stage ever gives a label of the column {column!r}; write them"
            " with the same labels"
        )


def _are_numbers(labels: list[str], codes: set[int]) -> bool:
    try:
        for code in codes:
            float(labels[code])
    except ValueError:
        return False
    return True


def _some(labels: list[str], codes: set[int]) -> str:
    shown = [repr(labels[code][:20]) for code in sorted(codes)[:3]]
    return ", ".join(shown) + (", ..." if len(codes) > 3 else "")
