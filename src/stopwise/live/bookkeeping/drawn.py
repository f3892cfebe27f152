"""Rounds whose depth was drawn elsewhere, as by another process of a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stopwise.checks import fail, whole_number
from stopwise.live.bookkeeping.bookkeeper import Bookkeeper
from stopwise.live.choosing.stateless_decider import DrawnItem
from stopwise.live.limits import check_probability
from stopwise.live.round import Round


def begin_drawn(
    books: Bookkeeper,
    begin: Callable[[str, Mapping[str, Any] | None], Round],
    depth: int,
    probability: float,
    segment: str,
    advised: tuple[int, float] | None,
    item: DrawnItem | None,
) -> Round:
    """Open a round and put what was drawn in the place of its own draw; see `Learner.begin_drawn`.

    Args:
        books: whose.
        begin: opens a round of a segment, of an item with these features.
    """
    if books.settings.alone:
        raise fail("calls", "alone", "'cascade', where depths are drawn elsewhere")
    if whole_number("depth", depth, least=0) >= books.stage_count:
        raise fail("depth", depth, f"a stage up to {books.stage_count - 1}")
    chance = check_probability("probability", probability)
    if advised is not None:
        check_probability("advised", advised[1])
    per_item = books.items is not None
    if (item is not None) is not per_item:
        needed = "a DrawnItem" if per_item else "None"
        policy = books.ledger.chooser.policy.label()
        raise fail("item", item, f"{needed} with the policy {policy}")
    round = begin(segment, None if item is None else item.features)
    if item is not None:
        round.full_run, round.full_chance = item.full_run, item.chance
        round.rule_depth = item.stop
    round.depth, round.probability = depth, chance
    round.advised, round.advised_probability = advised or (None, 0.0)
    round.unusual |= advised is not None
    return round
