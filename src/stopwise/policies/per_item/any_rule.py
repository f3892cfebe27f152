"""A rule of any kind, and reading one from the file that it is kept in."""

from __future__ import annotations

from pathlib import Path

from stopwise.checks import one_of, parse_json_object
from stopwise.policies.per_item.alone.rule import ALONE, AloneRule
from stopwise.policies.per_item.logistic.rule import LOGISTIC, LogisticRule
from stopwise.policies.per_item.rule import PER_ITEM, Rule
from stopwise.storage import read_whole

AnyRule = Rule | LogisticRule | AloneRule
"""A rule that `stopwise fit` makes: a table of situations, regressions, or for stages alone."""

_KINDS: dict[object, type[AnyRule]] = {PER_ITEM: Rule, LOGISTIC: LogisticRule, ALONE: AloneRule}


def read_rule(path: str | Path) -> AnyRule:
    """The rule in a file that `stopwise fit` wrote; what is wrong with the file is one line.

    >>> read_rule("nowhere.json")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: rule nowhere.json: there is no such file
    """
    text = read_whole(path, "rule")
    form = parse_json_object(f"rule {path}", text)
    kind = form.get("rule")
    return _KINDS[one_of("rule", kind, tuple(map(str, _KINDS)))].from_dict(form)
