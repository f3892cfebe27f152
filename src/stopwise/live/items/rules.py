"""Reading a rule that was fitted on a log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stopwise.checks import StopwiseError, fail, parse_json_object
from stopwise.policies.base import Policy
from stopwise.policies.per_item.alone.rule import ALONE, AloneRule
from stopwise.policies.per_item.logistic.rule import LogisticRule
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.rule import Rule

AnyRule = Rule | LogisticRule | AloneRule
"""A rule that `stopwise fit` makes: a table of situations, regressions, or for stages alone."""


def read_rule(given: AnyRule | str | Path | None) -> AnyRule | None:
    """A rule, or the one in a file that `stopwise fit` wrote.

    >>> read_rule("nowhere.json")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: rule nowhere.json: there is no such file
    """
    if given is None or isinstance(given, AnyRule):
        return given
    if not isinstance(given, str | Path):
        raise fail("rule", given, "a Rule or the file that stopwise fit wrote")
    try:
        text = Path(given).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StopwiseError(f"rule {given}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StopwiseError(f"rule {given}: cannot be read ({error})") from None
    form = parse_json_object(f"rule {given}", text)
    if form.get("rule") == "per-item-logistic":
        return LogisticRule.from_dict(form)
    if form.get("rule") == ALONE:
        return AloneRule.from_dict(form)
    return Rule.from_dict(form)


def follow_rule(policy: Policy, rule: AnyRule | None) -> Policy:
    """A policy that goes on as a rule was fitted, as far as nothing else was asked of it.

    >>> from stopwise.costs import Costs
    >>> from stopwise.situations.binning import Binning
    >>> from stopwise.situations.transitions import Transitions
    >>> counts = Transitions(Binning(edges=((), ()), labels=((), ())))
    >>> rule = Rule(("small", "large"), counts, Costs.from_stages([1, 5]), trust=0.5)
    >>> follow_rule(PerItem(), rule).trust
    0.5
    """
    if rule is None or not isinstance(policy, PerItem):
        return policy
    return replace(
        policy,
        reference=rule.reference if policy.reference == "auto" else policy.reference,
        trust=rule.trust if policy.trust is None else policy.trust,
    )
