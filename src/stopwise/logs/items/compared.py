"""How a rule and the simple ways to stop beside it show themselves: a table, a line of each way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stopwise.display import frame, html_table
from stopwise.logs.formatting import amount, counted, share
from stopwise.logs.items.held_out import WayToStop

if TYPE_CHECKING:
    import polars


class ComparedWays:
    """What shows ways to stop beside each other; the rule that decides per item comes first.

    >>> rule = WayToStop("per item", 1.5, 0.02, 2.5, 3.0, (0.9, 0.1), 0.1, 0.01)
    >>> last = WayToStop("always last", 6.0, 0.0, 6.0, 6.0, (0.0, 1.0), 0.0, 0.0)
    >>> class Shown(ComparedWays): rows, per_item, ways = 1000, rule, (last,)
    >>> Shown()
    <Shown of 1,000 items: calls cost 1.5 per item, 2.0 % of the answers changed>
    >>> Shown().to_frame()["cost"].to_list()
    [1.5, 6.0]
    """

    rows: int
    per_item: WayToStop
    ways: tuple[WayToStop, ...]

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row for each way to stop, the rule first."""
        return frame([_record(way) for way in (self.per_item, *self.ways)])

    def __repr__(self) -> str:
        own = self.per_item
        return (
            f"<{type(self).__name__} of {counted(self.rows, 'item')}: calls cost"
            f" {amount(own.cost)} per item, {share(own.changed)} of the answers changed>"
        )

    def _repr_html_(self) -> str:
        ways = (self.per_item, *self.ways)
        return html_table(
            ["way to stop", "calls cost", "answers changed", "calls and expected mistakes"],
            [
                (way.name, amount(way.cost), share(way.changed), amount(way.expected_total))
                for way in ways
            ],
            title="Per item, on rows that the rule has not seen",
        )


def _record(way: WayToStop) -> dict[str, Any]:
    return {
        "name": way.name,
        "cost": way.cost,
        "changed": way.changed,
        "expected_total": way.expected_total,
        "error_rate": way.error_rate,
        "total": way.total,
    }
