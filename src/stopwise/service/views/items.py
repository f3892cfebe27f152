"""Where requests are decided per item: what the rule does, how good it is, why one stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stopwise.live.items.figures import ItemFigures
from stopwise.logs.formatting import amount, share
from stopwise.logs.items.why import Reason, reasons
from stopwise.service.cascades.running import RunningCascade

_MOST = 12  # lines of the rule that are shown


@dataclass(frozen=True)
class ItemsView:
    """How requests of a cascade are decided per item.

    Attributes:
        chance: the probability that the next request is a full run.
        lines: of the rule, those that carry most requests; none before there is a rule.
        figures: what full runs say of all requests; None before the first.
    """

    chance: float
    lines: tuple[Reason, ...]
    figures: ItemFigures | None


def items_view(cascade: RunningCascade, segment: str | None = None) -> ItemsView | None:
    """Read the rule; None where depths are drawn before the first call."""
    items = cascade.items
    if items is None:
        return None
    rule = items.rule
    return ItemsView(
        chance=items.full_chance(cascade.config.full_run_rate),
        lines=() if rule is None else tuple(reasons(rule, _MOST)),
        figures=cascade.learner.report(segment).items,
    )


def why_of(form: Mapping[str, Any], names: Sequence[str]) -> str:
    """Why a round stopped where it did, in one sentence; empty where its depth was drawn.

    Args:
        form: what is kept of the round.
        names: of the stages.

    >>> item = {"chance": 0.25, "stop": 0, "steps": [[True, 0.02, 0.2, 1.5, 40]]}
    >>> why_of({"depth": 0, "mode": "enforce", "item": item}, ("small", "large"))
    'Stopped after small: its risk of 0.02 mistakes costs 0.2, going on 1.5 (by 40 like it).'
    >>> why_of({"depth": 1, "mode": "enforce", "full_run": True, "item": item}, ("small", "large"))
    'A full run, drawn with probability 25.0 %; the rule would stop after small.'
    """
    item = form.get("item")
    if item is None:
        return ""
    stop, last = item["stop"], len(names) - 1
    would = "" if stop is None or stop == last else f"; the rule would stop after {names[stop]}"
    if form["mode"] != "enforce":
        return f"All stages were asked: nothing is enforced{would}."
    if form.get("full_run"):
        return f"A full run, drawn with probability {share(item['chance'])}{would}."
    at = form["depth"] if stop is None else stop
    if at < len(item["steps"]):
        _, risk, here, deeper, rows = item["steps"][at]
        done = "Stopped" if stop is not None else "Ended"
        return (
            f"{done} after {names[at]}: its risk of {risk:.2g} mistakes costs {amount(here)},"
            f" going on {amount(deeper)} (by {rows:,} like it)."
        )
    return f"Went on to {names[form['depth']]}: no earlier answer was sure enough."
