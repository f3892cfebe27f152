"""A problem as JSON: what a file may hold, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stopwise.checks import StopwiseError, fail, known_names, known_version, parse_json_object
from stopwise.costs import Costs, FloatArray
from stopwise.problem.patterns import SUM_TOLERANCE, IntArray, json_patterns

_VERSION = 1
_FIELDS = ("version", "costs", "cumulative", "mistake_cost", "stages", "patterns", "rows")


class ProblemForm(NamedTuple):
    """What a file says of a problem; `rows` are pattern indices, or None."""

    costs: Costs
    patterns: list[tuple[Any, Any, Any]]
    stages: Sequence[str] | None
    rows: list[Any] | None


def read_problem(text: str | bytes) -> ProblemForm:
    """Read what `write_problem` wrote, or a person; unknown fields are refused.

    >>> pattern = '{"truth": 0, "outputs": [0, 1], "p": 1}'
    >>> read_problem('{"costs": [0.1, 0.2], "patterns": [' + pattern + ']}').costs.cumulative
    (0.1, 0.30000000000000004)
    """
    form = parse_json_object("problem", text)
    known_names("problem", form, _FIELDS)
    known_version(form, _VERSION)
    for field in ("costs", "patterns"):
        if field not in form:
            raise StopwiseError(f"problem: the field {field!r} is missing")
    cumulative = form.get("cumulative", False)
    if not isinstance(cumulative, bool):
        raise fail("cumulative", cumulative, "true or false")
    build = Costs.from_cumulative if cumulative else Costs.from_stages
    rows = form.get("rows")
    if rows is not None and not isinstance(rows, list):
        raise fail("rows", rows, "a list of pattern indices, one for each item")
    return ProblemForm(
        costs=build(form["costs"], form.get("mistake_cost", 1.0)),
        patterns=list(json_patterns(form["patterns"])),
        stages=form.get("stages"),
        rows=rows,
    )


def check_rows(form: ProblemForm, stated: FloatArray, shares: FloatArray) -> None:
    """Refuse rows that do not fit the patterns: merged ones, or other shares than stated."""
    if len(stated) != len(form.patterns):
        raise StopwiseError("rows: need patterns that are all different")
    for at, (p, share) in enumerate(zip(stated, shares, strict=True)):
        if abs(p - share) > SUM_TOLERANCE:
            raise fail(f"patterns[{at}].p", float(p), f"its share of the rows, {share:.9g}")


def write_problem(
    costs: Costs,
    stages: Sequence[str],
    patterns: Sequence[Mapping[str, Any]],
    rows: IntArray | None,
) -> str:
    """One line of JSON; labels that JSON cannot hold, such as tuples, are refused."""
    for pattern in patterns:
        for label in (pattern["truth"], *pattern["outputs"]):
            if not isinstance(label, (str, bool, int, float)):
                raise fail("labels", label, "text, a number or a boolean, to be written as JSON")
    form: dict[str, Any] = {
        "version": _VERSION,
        "stages": list(stages),
        "costs": list(costs.cumulative),
        "cumulative": True,
        "mistake_cost": costs.mistake_cost,
        "patterns": list(patterns),
    }
    if rows is not None:
        form["rows"] = rows.tolist()
    return json.dumps(form)
