"""What every file of a rule begins with: its kind, the stages and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stopwise.checks import fail, known_keys, known_version
from stopwise.costs import Costs

VERSION = 1
_HEAD = ("version", "rule", "stages", "costs", "mistake_cost")


class RuleHead(NamedTuple):
    """Names of the stages, and costs."""

    stages: tuple[str, ...]
    costs: Costs


def written_head(kind: str, stages: tuple[str, ...], costs: Costs) -> dict[str, Any]:
    """The first fields of a file.

    >>> written_head("per-item", ("small", "large"), Costs.from_stages([1, 5], 20))["costs"]
    [1.0, 5.0]
    """
    return {
        "version": VERSION,
        "rule": kind,
        "stages": list(stages),
        "costs": costs.per_stage.tolist(),
        "mistake_cost": costs.mistake_cost,
    }


def read_head(
    form: Mapping[str, Any], kind: str, fields: tuple[str, ...], *, needed: tuple[str, ...]
) -> RuleHead:
    """Read them back; other fields than the kind has, or too few, are refused.

    >>> form = written_head("per-item", ("small", "large"), Costs.from_stages([1, 5], 20))
    >>> read_head(form, "per-item", (), needed=()).stages
    ('small', 'large')
    >>> read_head({**form, "cost": 1}, "per-item", (), needed=())
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: rule: unknown field 'cost'; known are ...
    """
    known_keys("rule", form, (*_HEAD, *fields))
    known_version(form, VERSION, needed=True)
    if form.get("rule") != kind:
        raise fail("rule", form.get("rule"), repr(kind))
    for name in ("stages", "costs", *needed):
        if name not in form:
            raise fail("rule", sorted(form), f"the field {name!r} too")
    stages = form["stages"]
    if not isinstance(stages, list | tuple) or not all(isinstance(name, str) for name in stages):
        raise fail("stages", stages, "a list of names")
    return RuleHead(tuple(stages), Costs.from_stages(form["costs"], form.get("mistake_cost", 1.0)))
