"""Policies by name: the built-in ones, those of installed packages, and those of this process."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stopwise.checks import StopwiseError, fail, known_keys, parse_json_object
from stopwise.policies.base import Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "stopwise.policies"

# Written as text so that listing the names imports no rule.
_BUILT_IN = {
    "uss-ts": "stopwise.policies.uss_ts:UssTs",
    "uss-ts-literal": "stopwise.policies.uss_ts_literal:UssTsLiteral",
    "uss-ucb": "stopwise.policies.uss_ucb:UssUcb",
    "hanawal-2": "stopwise.policies.hanawal2:Hanawal2",
    "fixed": "stopwise.policies.fixed:FixedStage",
    "oracle": "stopwise.policies.oracle:Oracle",
    "uss-ts-jump": "stopwise.policies.uss_ts_jump:UssTsJump",
    "uss-ts-tempered": "stopwise.policies.uss_ts_jump:UssTsTempered",
    "uss-voi": "stopwise.policies.voi:UssVoi",
    "uss-voi-anytime": "stopwise.policies.voi:UssVoiAnytime",
    "imed": "stopwise.policies.imed:Imed",
}
_registered: dict[str, type[Policy]] = {}


def register(policy: type[Policy]) -> type[Policy]:
    """Make a policy class known by its `name` in this process; use it as a decorator.

    A package makes its policies known everywhere, also to the command line, with an entry point in
    the group `stopwise.policies`.

    >>> from dataclasses import dataclass
    >>> from stopwise.policies.fixed import FixedStage
    >>> @register
    ... @dataclass(frozen=True)
    ... class SecondStage(FixedStage):
    ...     stage: int = 1
    ...     name = "second-stage"
    >>> make_policy("second-stage")
    SecondStage(stage=1)
    """
    if not dataclasses.is_dataclass(policy):
        raise fail("policy", policy, "a dataclass, so that its settings can be written down")
    name = getattr(policy, "name", None)
    if not isinstance(name, str) or not name or any(sign in name for sign in ":,= "):
        raise fail("policy.name", name, "text without ':', ',', '=' or spaces")
    if name in _BUILT_IN:
        raise fail("policy.name", name, "a name that no built-in policy has")
    _registered[name] = policy
    return policy


def policy_names() -> list[str]:
    """All names that `make_policy` takes.

    >>> "uss-ts" in policy_names()
    True
    """
    return list(dict.fromkeys([*_BUILT_IN, *sorted(_installed()), *_registered]))


def _installed() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, rarely needed

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def policy_class(name: str) -> type[Policy]:
    """The class behind a name.

    >>> policy_class("uss-ts").__name__
    'UssTs'
    """
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]
    if name in _registered:
        return _registered[name]
    if name in (installed := _installed()):
        found = installed[name].load()
        if not (isinstance(found, type) and issubclass(found, Policy)):
            raise StopwiseError(f"policy {name}: its entry point is not a stopwise.Policy subclass")
        return found
    raise fail("policy", name, "one of " + ", ".join(policy_names()))


def make_policy(policy: str | Policy, **parameters: Any) -> Policy:
    """A policy from its name and settings; text may carry settings after a colon.

    >>> make_policy("uss-ucb:alpha=0.51")
    UssUcb(alpha=0.51)
    >>> make_policy("uss-ucb", alpha=0.51)
    UssUcb(alpha=0.51)
    >>> make_policy("uss-tsx")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: policy: got 'uss-tsx', but need one of uss-ts, ...
    """
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str):
        raise fail("policy", policy, "a policy or one of " + ", ".join(policy_names()))
    name, _, settings = policy.partition(":")
    return _build(name, {**_parse_settings(name, settings), **parameters})


def policy_to_json(policy: Policy) -> str:
    """Name and settings as JSON.

    >>> from stopwise.policies.uss_ucb import UssUcb
    >>> policy_to_json(UssUcb())
    '{"policy": "uss-ucb", "parameters": {"alpha": 0.5}}'
    """
    return json.dumps({"policy": policy.name, "parameters": dict(policy.parameters())})


def policy_from_json(text: str | bytes) -> Policy:
    """Read what `policy_to_json` wrote.

    >>> policy_from_json('{"policy": "fixed", "parameters": {"stage": 0}}')
    FixedStage(stage=0)
    """
    form = parse_json_object("policy", text)
    known_keys("policy", form, ("policy", "parameters"))
    if not isinstance(form.get("policy"), str):
        raise fail("policy", form.get("policy"), "one of " + ", ".join(policy_names()))
    parameters = form.get("parameters", {})
    if not isinstance(parameters, dict):
        raise fail("parameters", parameters, "an object of settings")
    return _build(form["policy"], parameters)


def _build(name: str, parameters: Mapping[str, Any]) -> Policy:
    policy = policy_class(name)
    fields = [field.name for field in dataclasses.fields(policy) if field.init]  # type: ignore[arg-type]
    for key in parameters:
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise StopwiseError(
                f"policy {name}: unknown setting {key!r}; its settings are: {known}"
            )
    return policy(**parameters)


def _parse_settings(name: str, settings: str) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for part in filter(None, settings.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise fail(f"policy {name}", part, "settings written as name=value, separated by ','")
        try:
            parsed[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            parsed[key.strip()] = value.strip()
    return parsed
