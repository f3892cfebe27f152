"""From what a user gives to the parts of a learner, each of them checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stopwise.checks import a_function
from stopwise.costs import Costs
from stopwise.live.comparing import make_comparator
from stopwise.live.comparing.naming import name_of
from stopwise.live.comparing.reader import Reader
from stopwise.live.items.rules import follow_rule, rule_given
from stopwise.live.keywords import LearnerKeywords
from stopwise.live.settings import (
    LearnerSettings,
    policy_text,
    stage_index,
    stage_names_and_costs,
)
from stopwise.policies.base import Policy
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.any_rule import AnyRule
from stopwise.policies.registry import DEFAULT_POLICY, make_policy


class LearnerParts(NamedTuple):
    """What a learner is made of: the costs as they were given, and a rule to begin with."""

    settings: LearnerSettings
    costs: Costs
    policy: Policy
    reader: Reader
    rule: AnyRule | None


def parts_of(
    stages: Mapping[str, float] | Sequence[float] | Costs,
    policy: str | Policy,
    mistake_cost: float,
    measured: bool,
    options: LearnerKeywords,
) -> LearnerParts:
    """The parts of a learner; what each argument means is said there.

    >>> parts_of({"rule": 0, "model": 1}, DEFAULT_POLICY, 4.0, False, {}).policy.name
    'uss-ts-jump'
    """
    combine = options.get("combine")
    if combine is not None:
        a_function("combine", combine, "a function of a list of outputs, or None")
    names, per_stage, known = stage_names_and_costs(stages, mistake_cost)
    rule = rule_given(options.get("rule"))
    calls = options.get("calls")
    if calls is None and isinstance(rule, AloneRule):
        calls = "alone"
    agree = options.get("agree")
    given = rule is not None or agree is not None
    made = make_policy("per-item" if given and policy == DEFAULT_POLICY else policy)
    made = follow_rule(made, rule)
    compare = make_comparator(options.get("comparator", "exact"))
    settings = LearnerSettings(
        stages=names,
        costs=per_stage,
        mistake_cost=known.mistake_cost,
        policy=policy_text(made),
        measured=bool(measured),
        comparator=compare.label,
        combine=None if combine is None else name_of(combine),
        half_life=options.get("half_life"),
        full_run_rate=options.get("full_run_rate", 0.0),
        mode=options.get("mode", "enforce"),
        run_to=stage_index("run_to", options.get("run_to", -1), names),
        segment_strength=options.get("segment_strength", 10.0),
        agree=agree,
        level=options.get("level", 0.95),
        look_rate=options.get("look_rate", 0.1),
        abstentions=options.get("abstentions", "leave out"),
        calls=calls,
    )
    return LearnerParts(settings, known, made, Reader(compare, combine), rule)
