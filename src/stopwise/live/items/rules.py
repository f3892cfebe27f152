"""A rule that was fitted on a log, taken live."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stopwise.checks import fail
from stopwise.policies.base import Policy
from stopwise.policies.per_item.any_rule import AnyRule, read_rule
from stopwise.policies.per_item.policy import PerItem


def rule_given(given: AnyRule | str | Path | None) -> AnyRule | None:
    """A rule, or the one in a file that `stopwise fit` wrote.

    >>> rule_given(3)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: rule: got 3, but need a Rule or the file that stopwise fit wrote
    """
    if given is None or isinstance(given, AnyRule):
        return given
    if not isinstance(given, str | Path):
        raise fail("rule", given, "a Rule or the file that stopwise fit wrote")
    return read_rule(given)


def follow_rule(policy: Policy, rule: AnyRule | None) -> Policy:
    """A policy that goes on as a rule was fitted, as far as nothing else was asked of it.

    >>> from stopwise.costs import Costs
    >>> from stopwise.policies.per_item.rule import Rule
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
