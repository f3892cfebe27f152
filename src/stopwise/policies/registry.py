"""Policies by name: the built-in ones, those of installed packages, and those of this process."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stopwise.checks import (
    StopwiseError,
    any_of,
    fail,
    known_names,
    known_version,
    one_of,
    parse_json_object,
)
from stopwise.policies.base import Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "stopwise.policies"

REQUIRED = "(must be given)"
"""Stands where a setting has no usual value."""

DEFAULT_POLICY = "uss-ts-jump"
"""Of live cascades and replays. Randomised, so that every decision has an exact probability to log;
no horizon to know; and its regret grows like a logarithm wherever we looked, where that of `uss-ts`
can grow with the rounds (docs/policies.md)."""

_VERSION = 1

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
    "per-item": "stopwise.policies.per_item.policy:PerItem",
    "per-item-logistic": "stopwise.policies.per_item.logistic.policy:PerItemLogistic",
    "uss-pd": "stopwise.policies.contextual.uss_pd:UssPd",
    "agree-in-a-row": "stopwise.policies.per_item.agree_in_a_row:AgreeInARow",
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
    name = _check_class(policy)
    if name in _BUILT_IN:
        raise fail("policy.name", name, "a name that no built-in policy has")
    _registered[name] = policy
    return policy


def _check_class(policy: Any) -> str:
    """Refuse what is no policy class; return its name."""
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise fail("policy", policy, "a subclass of stopwise.Policy")
    if not dataclasses.is_dataclass(policy):
        raise fail("policy", policy, "a dataclass, so that its settings can be written down")
    name = getattr(policy, "name", None)
    if not (isinstance(name, str) and name and name.isprintable()) or set(name) & set(":,= "):
        raise fail("policy.name", name, "text without ':', ',', '=' or spaces")
    return name


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
        return _load(name, installed[name])
    one_of("policy", name, policy_names())
    raise AssertionError("a name that is known has a class")


def _load(name: str, point: EntryPoint) -> type[Policy]:
    """The class of an installed package; whatever is wrong there is said in one line."""
    try:
        found = point.load()
    except Exception as error:  # foreign code may raise anything on import
        raise StopwiseError(
            f"policy {name}: its entry point {point.value} does not load"
            f" ({type(error).__name__}: {error})"
        ) from error
    try:
        own_name = _check_class(found)
    except StopwiseError as error:
        raise StopwiseError(f"policy {name}: its entry point {point.value}: {error}") from None
    if own_name != name:
        raise StopwiseError(
            f"policy {name}: its entry point {point.value} names itself {own_name!r};"
            " the two names must be the same"
        )
    return found  # type: ignore[no-any-return]


def make_policy(policy: str | Policy, **settings: Any) -> Policy:
    """A policy from its name and settings; text may carry settings after a colon.

    >>> make_policy("uss-ucb:alpha=0.51")
    UssUcb(alpha=0.51)
    >>> make_policy("uss-ucb", alpha=0.51)
    UssUcb(alpha=0.51)
    >>> make_policy("uss-tsx")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: policy: got 'uss-tsx', but need 'uss-ts', ...
    """
    if isinstance(policy, Policy):
        if settings:
            raise fail("policy", policy, "a name, where settings are given beside it")
        return policy
    if not isinstance(policy, str):
        raise fail("policy", policy, "a policy, or " + any_of(policy_names()))
    name, _, written = policy.partition(":")
    parsed = _parse_settings(name, written)
    for key in settings:
        if key in parsed:
            raise StopwiseError(f"policy {name}: setting {key!r} is given twice")
    return _build(name, {**parsed, **settings})


def policy_to_json(policy: Policy) -> str:
    """Name and settings as JSON.

    >>> from stopwise.policies.uss_ucb import UssUcb
    >>> policy_to_json(UssUcb())
    '{"version": 1, "policy": "uss-ucb", "settings": {"alpha": 0.5}}'
    """
    form = {"version": _VERSION, "policy": policy.name, "settings": dict(policy.settings())}
    try:
        return json.dumps(form)
    except (TypeError, ValueError):
        raise fail(
            f"policy {policy.name}", form["settings"], "settings that JSON can hold"
        ) from None


def policy_from_json(text: str | bytes) -> Policy:
    """Read what `policy_to_json` wrote; up to version 0.2 it called the settings parameters.

    >>> policy_from_json('{"policy": "fixed", "settings": {"stage": 0}}')
    FixedStage(stage=0)
    """
    form = parse_json_object("policy", text)
    known_names("policy", form, ("version", "policy", "settings", "parameters"))
    if "settings" in form and "parameters" in form:
        raise StopwiseError("policy: give settings or, as up to version 0.2, parameters; not both")
    known_version(form, _VERSION)
    if not isinstance(form.get("policy"), str):
        raise fail("policy", form.get("policy"), any_of(policy_names()))
    key = "parameters" if "parameters" in form else "settings"
    settings = form.get(key, {})
    if not isinstance(settings, dict):
        raise fail(key, settings, "an object of settings")
    return _build(form["policy"], settings)


def same_policy_text(one: str, two: str) -> bool:
    """Whether two texts of `policy_to_json`, perhaps of different versions, are the same policy.

    >>> old = '{"version": 1, "policy": "fixed", "parameters": {"stage": 0}}'
    >>> same_policy_text(old, policy_to_json(policy_from_json(old)))
    True
    >>> same_policy_text(old, old.replace("0}", "1}"))
    False
    """
    if one == two:
        return True
    try:
        return policy_from_json(one) == policy_from_json(two)
    except StopwiseError:  # a policy that this process does not know, or no JSON at all
        return False


def _build(name: str, settings: Mapping[str, Any]) -> Policy:
    policy = policy_class(name)
    usual = policy_settings(policy)
    known_names(f"policy {name}", settings, usual, "setting")
    for key, default in usual.items():
        if default is REQUIRED and key not in settings:
            raise StopwiseError(f"policy {name}: the setting {key!r} must be given: {name}:{key}=")
    return policy(**settings)


def policy_settings(policy: type[Policy]) -> dict[str, Any]:
    """The settings of a policy class with their usual values, or `REQUIRED`.

    >>> policy_settings(policy_class("uss-ucb"))
    {'alpha': 0.5}
    """
    usual = {}
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        if not field.init:
            continue
        if field.default_factory is not dataclasses.MISSING:
            usual[field.name] = field.default_factory()
        else:
            usual[field.name] = REQUIRED if field.default is dataclasses.MISSING else field.default
    return usual


def _parse_settings(name: str, written: str) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for part in filter(None, written.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise fail(f"policy {name}", part, "settings written as name=value, separated by ','")
        key = key.strip()
        if key in parsed:
            raise StopwiseError(f"policy {name}: setting {key!r} is given twice")
        parsed[key] = _parse_value(value.strip())
    return parsed


def _parse_value(text: str) -> Any:
    """JSON, or a number as people write it (.5, +2), or plain text.

    >>> _parse_value("0.5"), _parse_value(".5"), _parse_value("[1, 2]"), _parse_value("last")
    (0.5, 0.5, [1, 2], 'last')
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, or none that Python reads
        number = re.fullmatch(r"[+-]?\d{0,300}\.?\d{1,300}", text)
        return float(text) if number else text
