"""Which decider a policy needs, and what it cannot be given together with."""

from __future__ import annotations

import inspect

from stopwise.checks import fail
from stopwise.live.choosing.item_decider import ItemDecider
from stopwise.live.choosing.lone_decider import LoneDecider
from stopwise.live.choosing.prices import Prices
from stopwise.live.comparing.reader import Reader
from stopwise.live.settings import LearnerSettings
from stopwise.policies.base import Policy
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.any_rule import AnyRule
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.situation import ItemPolicy, RowPolicy, SituationPolicy


def item_decider(
    policy: Policy,
    settings: LearnerSettings,
    prices: Prices,
    reader: Reader,
    rule: AnyRule | None,
    item_budget: float | None = None,
) -> ItemDecider | None:
    """What decides rounds per item, if the policy does."""
    if settings.alone and isinstance(policy, ItemPolicy):
        return _lone_decider(policy, settings, prices, reader, rule, item_budget)
    if isinstance(rule, AloneRule):
        raise fail("calls", settings.calls, "'alone', as the rule was fitted for")
    if isinstance(policy, SituationPolicy):
        if settings.half_life is not None:
            raise fail(
                "half_life", settings.half_life,
                "None: transitions of a policy that decides per item do not lose weight",
            )  # fmt: skip
        return ItemDecider(
            policy, settings.stages, lambda: prices.costs, reader, rule, settings.promise
        )
    if isinstance(policy, RowPolicy):
        raise fail(
            "policy", policy.label(),
            "one that learns from counts, as per-item does: the fit of a logistic regression is no"
            " sum over rounds, so this one would have to keep every round with its features, and"
            " two machines' could not be added up. Run it over a log (stopwise replay); live, give"
            " per-item the features, or fit per-item-logistic on a log (stopwise fit) and take its"
            " rule: rule=\"rule.json\", without a policy",
        )  # fmt: skip
    if rule is not None:
        raise fail("policy", policy.label(), "one that decides per item, where a rule is given")
    if settings.promise is not None:
        raise fail("policy", policy.label(), "one that decides per item, where agree is given")
    return None


def _lone_decider(
    policy: ItemPolicy,
    settings: LearnerSettings,
    prices: Prices,
    reader: Reader,
    rule: AnyRule | None,
    item_budget: float | None,
) -> LoneDecider:
    """The same, where stages are called alone."""
    if rule is None and item_budget is not None and item_budget < prices.cumulative[-1]:
        raise fail(
            "item_budget", item_budget,
            f"at least {prices.cumulative[-1]:g}, what a full run costs, or a rule to begin with:"
            " where stages are called alone, nothing else teaches a per-item policy",
        )  # fmt: skip
    if not isinstance(policy, PerItem):
        raise fail(
            "policy", policy.label(),
            "per-item, or one that looks at no outputs, where stages are called alone: this one"
            " looks at the outputs of the stages before",
        )  # fmt: skip
    if rule is not None and not isinstance(rule, AloneRule):
        raise fail(
            "rule", "a rule for a cascade",
            "one that was fitted with --calls alone, where stages are called alone",
        )  # fmt: skip
    if settings.half_life is not None:
        raise fail("half_life", settings.half_life, "None: whole rows do not lose weight")
    return LoneDecider(policy, settings.stages, lambda: prices.own, reader, rule)


def check_abstentions(settings: LearnerSettings, policy: Policy, reader: Reader) -> None:
    """Refuse a meaning of abstentions that a policy or a comparator has no use for."""
    if settings.abstentions != "leave out" and isinstance(policy, SituationPolicy | RowPolicy):
        raise fail(
            "abstentions", settings.abstentions,
            f"'leave out' with {policy.label()}: to a policy that decides per item an abstention is"
            " a situation like any other, from which it learns whether to go on",
        )  # fmt: skip
    if settings.abstentions == "go on" and inspect.iscoroutinefunction(reader.comparator.key):
        raise fail(
            "abstentions", settings.abstentions,
            "'leave out' or 'mistake' with a comparator whose key is async: whether an output is an"
            " answer must be known before the next stage is called",
        )  # fmt: skip
