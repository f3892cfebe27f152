"""`promise`: the last stage's answers on at least a given share of a log's items, for less."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.checks import fail, finite_number, names_options, one_of, whole_number
from stopwise.costs import CALLS, Calls
from stopwise.display import frame, html_table
from stopwise.logs.agreeing.procedure import ItemOutcomes, keep_promise
from stopwise.logs.agreeing.seen import FromRows, Seen
from stopwise.logs.formatting import amount, counted, round_share, share
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.settings import LogOptions, LogSettings, settings_from
from stopwise.situations.observations import NOT_CALLED, Observations

if TYPE_CHECKING:
    import polars

RESERVE = 2 / 3
"""The part of 1 - level that the test may use.

With all of it, the promise would be broken in 1 - level of all runs on average, so that in half of
all lists of runs somebody would count more than that.
"""


@dataclass(frozen=True, repr=False)
class Promise:
    """What a promise of agreement came to on a log.

    Attributes:
        stages: names, cheapest first.
        agree: the share of items on which the answer must be the last stage's.
        level: how sure that is.
        calls: "cascade" or "alone", as asked for.
        answered_by: for every item, the stage whose answer it has.
        looked: for every item, whether the last stage was called to look.
        look_rate: the chance with which an item was looked at, once the plan stood.
        found, found_most: differences that looks found, and how many the design allows; with one
            more, the items not yet taken go to the last stage.
        cost, cost_of_last: cost of an item's calls, on average; and with the last stage for all.
        agreement: the share of these items that have the last stage's answer. The procedure does
            not know it; the log, which has all outputs, does.
        left_out: rows on which some stage was not called.

    >>> import polars
    >>> frame = polars.DataFrame({"fast": [0, 1] * 1000, "slow": [0, 1] * 1000})
    >>> from stopwise import promise
    >>> kept = promise(frame, 0.9, stages=["fast", "slow"], costs=[1, 20])
    >>> kept.rows, kept.agreement, kept.cost < kept.cost_of_last
    (2000, 1.0, True)
    >>> kept.to_frame().columns[:2], kept.to_dict()["agree"], len(kept.sentences()) > 0
    (['answered_by', 'looked'], 0.9, True)
    """

    name: str
    stages: tuple[str, ...]
    agree: float
    level: float
    calls: Calls
    seed: int
    answered_by: IntArray
    looked: NDArray[np.bool_]
    look_rate: float
    found: int
    found_most: int
    cost: float
    cost_of_last: float
    agreement: float
    left_out: int
    spent: NDArray[np.float64]

    @property
    def rows(self) -> int:
        """How many items were answered."""
        return len(self.answered_by)

    @property
    def stage_shares(self) -> tuple[float, ...]:
        """For each stage, the share of items that have its answer."""
        counts = np.bincount(self.answered_by, minlength=len(self.stages))
        return tuple(float(count) / self.rows for count in counts)

    @property
    def last_calls_avoided(self) -> float:
        """The share of items on which the last stage was not called."""
        return 1 - self.stage_shares[-1]

    @property
    def cost_avoided(self) -> float:
        """The share of the last stage's cost that was not spent; below 0 if it did not pay."""
        return 1 - self.cost / self.cost_of_last if self.cost_of_last > 0 else 0.0

    @property
    def kept(self) -> bool:
        """Whether the promise was kept on these items, as the log tells."""
        allowed = allowed_differences(self.agree, self.rows)
        return round((1 - self.agreement) * self.rows) <= allowed

    def __str__(self) -> str:
        last = self.stages[-1]
        what = f"{last} alone" if self.calls == "alone" else f"always going to {last}"
        if self.cost_avoided > 0:
            saving = f"{share(self.cost_avoided)} less than {what}"
        else:
            saving = f"no less than {what} ({amount(self.cost_of_last)})"
        return (
            f"Equal to {last} on at least {round_share(self.agree)} of"
            f" {counted(self.rows, 'item')}, with {round_share(self.level)} confidence, at"
            f" {amount(self.cost)} per item: {saving}, with {share(self.last_calls_avoided)}"
            f" of the calls of {last} avoided"
        )

    def __repr__(self) -> str:
        rows = counted(self.rows, "item")
        return f"<Promise of {self.agree} on {rows}: {self.cost_avoided:.1%} less>"

    def sentences(self) -> list[str]:
        """What there is to say besides, in words."""
        last = self.stages[-1]
        ended = (
            f"at difference number {self.found:,} that was found, the others went to {last}"
            if self.found > self.found_most
            else f"{self.found:,} differences were found, and {self.found_most:,} would be allowed"
        )
        text = [
            f"{counted(int(self.looked.sum()), 'item was', 'items were')} looked at: {last} was"
            f" called on them to learn and to test, and answers them. Items were taken by"
            f" risk, each looked at with a chance of {share(self.look_rate)}; {ended}."
        ]
        if self.cost_avoided <= 0:
            text.append(
                f"It does not pay here: too few early answers are sure to be those of {last}."
            )
        text.append(
            f"On this log, which has all outputs, {share(self.agreement)} of the answers are"
            f" those of {last}: the promise was {'kept' if self.kept else 'broken'}."
        )
        return text

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row per item: the stage that answered, whether it was a look."""
        names = np.asarray(self.stages, dtype=object)[self.answered_by].tolist()
        looked = self.looked.tolist()
        return frame(
            [
                {"answered_by": name, "looked": look, "cost": cost}
                for name, look, cost in zip(names, looked, self.spent.tolist(), strict=True)
            ]
        )

    def _repr_html_(self) -> str:
        rows = [list(pair) for pair in zip(self.stages, map(share, self.stage_shares), strict=True)]
        return html_table(["stage", "answers"], rows, title=str(self))

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise analyze --agree --json` prints."""
        return {
            "version": 1,
            "name": self.name,
            "agree": self.agree,
            "level": self.level,
            "calls": self.calls,
            "seed": self.seed,
            "rows": self.rows,
            "rows_left_out": self.left_out,
            "stages": list(self.stages),
            "stage_shares": list(self.stage_shares),
            "cost": self.cost,
            "cost_of_last": self.cost_of_last,
            "cost_avoided": self.cost_avoided,
            "last_calls_avoided": self.last_calls_avoided,
            "looked": int(self.looked.sum()),
            "look_rate": self.look_rate,
            "found": self.found,
            "found_most": self.found_most,
            "agreement": self.agreement,
            "kept": self.kept,
        }


@names_options(LogOptions)
def promise(
    log: object,
    agree: float = 0.95,
    settings: LogSettings | None = None,
    *,
    seed: int = 0,
    **given: Unpack[LogOptions],
) -> Promise:
    """Answer a log's items like the last stage on a share of them, and call it as little as may be.

    Outputs of the last stage are looked at only where the procedure calls it, and every such call
    counts. Confidences in columns `NAME:confidence` and features make it cheaper; the promise does
    not rest on them.

    Args:
        agree: the share of items on which the answer must be the last stage's.
        seed: of the coins. Repeating with other seeds until one likes the result breaks the level.
        given: as for `analyze`; `level` is how sure the promise is, and `calls` says whether a
            stage needs those before it ("cascade", as if not given) or not ("alone").

    >>> import polars
    >>> random = np.random.default_rng(1)
    >>> sure, slow = random.random(4000), random.integers(0, 2, 4000)
    >>> fast = np.where(random.random(4000) < 0.4 * (1 - sure), 1 - slow, slow)
    >>> frame = polars.DataFrame({"fast": fast, "fast:confidence": sure, "slow": slow})
    >>> kept = promise(frame, 0.95, stages="fast,slow", costs="1,20", level=0.95)
    >>> kept.kept, kept.last_calls_avoided > 0.3
    (True, True)
    """
    chosen = settings_from(settings, given)
    rows = read_rows(log, replace(chosen, calls=None))  # it deals with both ways itself
    return promise_rows(
        rows.observations(),
        np.asarray(rows.own),
        agree,
        chosen.level,
        stages=rows.stages,
        calls=chosen.calls or "cascade",
        seed=seed,
        name=rows.name,
        left_out=rows.left_out,
        bills=rows.bills,
    )


def promise_rows(
    rows: Observations,
    own_costs: NDArray[np.float64],
    agree: float = 0.95,
    level: float = 0.95,
    *,
    stages: tuple[str, ...] | None = None,
    calls: Calls = "cascade",
    seed: int = 0,
    name: str = "rows",
    left_out: int = 0,
    bills: NDArray[np.float64] | None = None,
) -> Promise:
    """The same for complete rows that have been read.

    Args:
        bills: what each stage cost on each item; by default, its own cost.

    >>> rows = Observations(("a", "b"), np.array([[0, 0], [1, 1]] * 500))
    >>> promise_rows(rows, np.array([1.0, 9.0])).agreement
    1.0
    """
    one_of("calls", calls, CALLS)
    allowed, alpha = check_promise(agree, level, len(rows))
    seen = Seen(FromRows(rows), own_costs, calls)
    random = np.random.default_rng(whole_number("seed", seed, least=0))
    outcome = keep_promise(seen, allowed, alpha, random, rows.features)
    spent, cost_of_last = seen.spent, seen.cost_of_last
    if bills is not None:
        spent = np.where(seen.codes != NOT_CALLED, bills, 0.0).sum(axis=1)
        needed = bills if calls == "cascade" else bills[:, -1:]
        cost_of_last = float(needed.sum(axis=1).mean())
    return Promise(
        name=name,
        stages=stages or tuple(str(stage + 1) for stage in range(rows.stage_count)),
        agree=agree,
        level=level,
        calls=calls,
        seed=seed,
        answered_by=outcome.stages,
        looked=outcome.looked,
        look_rate=outcome.design.rate,
        found=outcome.found,
        found_most=outcome.design.found,
        cost=float(spent.mean()),
        cost_of_last=cost_of_last,
        agreement=_agreement(rows, calls, outcome),
        left_out=left_out,
        spent=spent,
    )


def allowed_differences(agree: float, item_count: int) -> int:
    """How many of the items may have another answer than the last stage's.

    >>> allowed_differences(0.95, 1000), allowed_differences(0.9, 29)
    (50, 2)
    """
    # 1 - 0.9 is a little less than 0.1: whole numbers must not be lost to that.
    return math.floor((1 - agree) * item_count + 1e-9 * item_count)


def check_promise(agree: float, level: float, item_count: int) -> tuple[int, float]:
    """The differences that are allowed, and the chance of more that the test may use."""
    share_asked = finite_number("agree", agree, "a number above 0 and below 1, such as 0.95")
    if not 0 < share_asked < 1:
        raise fail("agree", agree, "a number above 0 and below 1, such as 0.95")
    sure = finite_number("level", level, "a number between 0.5 and 1, such as 0.95")
    if not 0.5 <= sure < 1:
        raise fail("level", level, "a number between 0.5 and 1, such as 0.95")
    if item_count < 2:
        raise fail("rows", item_count, "at least 2 complete rows")
    return allowed_differences(share_asked, item_count), RESERVE * (1 - sure)


def _agreement(rows: Observations, calls: Calls, outcome: ItemOutcomes) -> float:
    """The share of answers that are the last stage's, from all outputs: only the log knows it."""
    everything = Seen(FromRows(rows), np.zeros(rows.stage_count), calls)
    everyone = np.arange(len(rows))
    for stage in range(rows.stage_count):
        everything.reach(everyone, stage)
    different = np.zeros(len(rows))
    for stage in range(rows.stage_count - 1):
        here = everyone[outcome.stages == stage]
        different[here] = everything.differs(stage, here)
    return float(1 - different.mean())
