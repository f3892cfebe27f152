"""Rules of every kind are read in one way, and what their files share is checked alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.any_rule import AnyRule, read_rule
from stopwise.policies.per_item.logistic.rule import LogisticRule
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.observations import Observations

KINDS: tuple[type[AnyRule], ...] = (Rule, LogisticRule, AloneRule)
ROWS = Observations(("no", "yes"), np.array([[0, 0], [1, 0]] * 40))


def fitted(kind: type[AnyRule]) -> AnyRule:
    return kind.fit(("small", "large"), ROWS, Costs.from_stages([1, 5]), reference=1, trust=0.5)


def written(path: Path, form: dict[str, Any]) -> Path:
    path.write_text(json.dumps(form), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_comes_back_as_the_rule_that_it_was(kind: type[AnyRule], tmp_path: Path) -> None:
    form = fitted(kind).to_dict()
    back = read_rule(written(tmp_path / "rule.json", form))
    assert type(back) is kind
    assert back.to_dict() == form
    assert (back.reference, back.trust) == (1, 0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("field", "value"),
    [("reference", 2), ("reference", True), ("reference", "x"), ("reference", [1]),
     ("trust", 0), ("trust", 1.5), ("trust", "much"), ("stages", "small")],
)  # fmt: skip
def test_what_all_files_share_is_checked_in_all(
    kind: type[AnyRule], field: str, value: object, tmp_path: Path
) -> None:
    path = written(tmp_path / "rule.json", {**fitted(kind).to_dict(), field: value})
    with pytest.raises(StopwiseError, match=field):
        read_rule(path)


@pytest.mark.parametrize("kind", [None, "per-items", ["per-item"], 1])
def test_an_unknown_kind_is_refused_with_those_that_are_known(kind: object, tmp_path: Path) -> None:
    path = written(tmp_path / "rule.json", {**fitted(Rule).to_dict(), "rule": kind})
    with pytest.raises(StopwiseError, match="'per-item', 'per-item-logistic' or 'per-item-alone'"):
        read_rule(path)


@pytest.mark.parametrize("kind", KINDS)
def test_each_stage_needs_its_cost(kind: type[AnyRule], tmp_path: Path) -> None:
    path = written(tmp_path / "rule.json", {**fitted(kind).to_dict(), "costs": [1, 5, 9]})
    with pytest.raises(StopwiseError, match="stages"):
        read_rule(path)
