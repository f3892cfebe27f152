"""What every file of a rule begins with: its kind, the stages, their costs, the reference."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from stopwise.checks import fail, known_names, known_version, parse_json_object
from stopwise.costs import Costs
from stopwise.situations.references import check_reference

VERSION = 1
_HEAD = ("version", "rule", "stages", "costs", "mistake_cost", "reference", "trust")


class FiledRule(ABC):
    """A rule that can be kept in a file; `print` shows what it is of, not all that it counted."""

    stages: tuple[str, ...]
    costs: Costs

    def __repr__(self) -> str:
        costs = ", ".join(
            f"{name} {cost:g}"
            for name, cost in zip(self.stages, self.costs.per_stage.tolist(), strict=True)
        )
        return f"<{type(self).__name__}: {costs}; a mistake costs {self.costs.mistake_cost:g}>"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a rule, with no more than what the file says."""
        return cls.from_dict(parse_json_object("rule", text))

    @classmethod
    @abstractmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; what is written for people beside it is passed over."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As the file holds it."""


class RuleHead(NamedTuple):
    """Names of the stages, costs, and what answers are held against, as it was asked for."""

    stages: tuple[str, ...]
    costs: Costs
    reference: str | int = "auto"
    trust: float | None = None

    def written(self, kind: str) -> dict[str, Any]:
        """The first fields of a file.

        >>> RuleHead(("small", "large"), Costs.from_stages([1, 5], 20)).written("x")["costs"]
        [1.0, 5.0]
        """
        return {
            "version": VERSION,
            "rule": kind,
            "stages": list(self.stages),
            "costs": self.costs.per_stage.tolist(),
            "mistake_cost": self.costs.mistake_cost,
            "reference": self.reference,
            "trust": self.trust,
        }


def read_head(
    form: Mapping[str, Any], kind: str, fields: tuple[str, ...], *, needed: tuple[str, ...]
) -> RuleHead:
    """Read them back; other fields than the kind has, or too few, are refused.

    >>> form = RuleHead(("small", "large"), Costs.from_stages([1, 5], 20)).written("per-item")
    >>> read_head(form, "per-item", (), needed=()).stages
    ('small', 'large')
    >>> read_head({**form, "cost": 1}, "per-item", (), needed=())
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: rule: unknown field 'cost'; did you mean 'costs'?
    """
    known_names("rule", form, (*_HEAD, *fields))
    known_version(form, VERSION, needed=True)
    if form.get("rule") != kind:
        raise fail("rule", form.get("rule"), repr(kind))
    for name in ("stages", "costs", *needed):
        if name not in form:
            raise fail("rule", sorted(form), f"the field {name!r} too")
    stages = form["stages"]
    if not isinstance(stages, list | tuple) or not all(isinstance(name, str) for name in stages):
        raise fail("stages", stages, "a list of names")
    reference, trust = form.get("reference", "auto"), form.get("trust")
    check_reference(reference, trust, len(stages))
    costs = Costs.from_stages(form["costs"], form.get("mistake_cost", 1.0))
    if costs.stage_count != len(stages):
        raise fail("stages", stages, f"{costs.stage_count} names, as there are costs")
    return RuleHead(tuple(stages), costs, reference, trust)
