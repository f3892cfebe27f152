"""What has happened so far, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stopwise.checks import names_settings
from stopwise.costs import Calls, Costs
from stopwise.display import COLOURS, frame, html_table, new_axes
from stopwise.evidence import Evidence
from stopwise.live.choosing.readings import every_reading
from stopwise.live.counters.tally import Tally
from stopwise.live.items.figures import ItemFigures, figures_of_items
from stopwise.live.items.promise import PromiseFigures, figures_of_promise
from stopwise.live.pairs import pair_list
from stopwise.policies.per_item.agreement_guard import AgreementGuard

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class LiveReport:
    """Counts of the rounds that have ended. A notebook shows it as a table.

    Attributes:
        stages: their names.
        rounds: how many; `abandoned` of them before their depth.
        calls: how often each stage was called.
        answers: how many rounds each stage answered.
        failures: how often each stage raised or ran out of time.
        abstentions: how often each stage was called and gave no answer.
        unrecorded: rounds that are not among them because the store could not take them; their cost
            is in `spent`.
        spent: the cost of all rounds.
        compared: how often each pair of answers was compared, and `disagreed` how often they
            differed, in the order (0, 1), (0, 2), (1, 2), (0, 3), ...
        advised: in the modes shadow and advise, how often each stage was advised.
        advised_cost: what the advice would have cost.
        saved: `spent` less that, over the rounds that had advice; where stages are called alone,
            what the last stage alone would have cost them, less that.
        advised_agreement: how often the advised answer agreed with the one given; None if unknown.
            This is agreement, not accuracy: without labels nobody knows who was right.
        items: where rounds are decided per item, what full runs say of all of them: agreement with
            full runs and savings, unbiased, with intervals; None elsewhere.
        promise: how a promise of agreement stands; None where none was made.
        saved_alone: for stages that can be called without those before them: what the last stage
            alone would have cost for all these rounds, at its present cost, less `spent`. Below 0
            where it would have been cheaper. None where costs are not known here.
        saved_through: what calling all stages would have cost, less `spent`; None likewise.
        way: "cascade" or "alone", as `calls` was set; None where it was not, and both savings are
            shown.
        in_mistakes: what stopping at each stage costs, in mistakes; empty where that is not known.

    >>> from stopwise.live import Learner
    >>> learner = Learner({"rule": 0, "model": 1}, "fixed", mistake_cost=4)
    >>> with learner.begin() as round: round.observe("yes"); round.observe("no")
    >>> print(learner.report())
    1 round, 0 abandoned, spent 1
    rule: 1 call, 0 answers, 0 failures, 0 abstentions
    model: 1 call, 1 answer, 0 failures, 0 abstentions
    saved 0 against calling all stages, 0 against model alone
    >>> learner.report().to_frame()["calls"].to_list(), learner.report().rows()[0]["stage"]
    ([1, 1], 'rule')
    >>> [text.get_text() for text in learner.report().plot().get_yticklabels()]
    ['rule', 'model']
    """

    stages: tuple[str, ...]
    rounds: int
    abandoned: int
    calls: tuple[int, ...]
    answers: tuple[int, ...]
    failures: tuple[int, ...]
    spent: float
    advised: tuple[int, ...]
    advised_cost: float
    saved: float
    advised_agreement: float | None
    abstentions: tuple[int, ...] = ()
    unrecorded: int = 0
    items: ItemFigures | None = None
    compared: tuple[int, ...] = ()
    disagreed: tuple[int, ...] = ()
    promise: PromiseFigures | None = None
    saved_alone: float | None = None
    saved_through: float | None = None
    way: Calls | None = None
    in_mistakes: tuple[float, ...] = ()

    @property
    def readings(self) -> dict[str, int | None]:
        """Where each reading of the evidence stops, as `stopwise analyze` has them.

        None where nothing is certain; empty where costs are not known here. A pair that was never
        compared rules nothing out.

        >>> from stopwise.live import Learner
        >>> Learner({"rule": 0, "model": 1}, mistake_cost=4).report().readings
        {'certain': None, 'weak-dominance': 1, 'estimated': 1, 'minimax': 1}
        """
        if not self.in_mistakes:
            return {}
        size = len(self.stages)
        seen, disagreed = (np.zeros((size, size), dtype=np.int64) for _ in range(2))
        for at, (i, j) in enumerate(pair_list(size)):
            seen[i, j], disagreed[i, j] = self.compared[at], self.disagreed[at]
        costs = Costs.from_cumulative(self.in_mistakes)
        return every_reading(Evidence.from_counts(seen, disagreed), costs)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; readings by the names of the stages.

        >>> report_of(Tally(2), ("a", "b")).to_dict()["calls"]
        [0, 0]
        """
        form = asdict(self)
        form["readings"] = {
            reading: None if at is None else self.stages[at]
            for reading, at in self.readings.items()
        }
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in form.items()
        }

    def rows(self) -> list[dict[str, Any]]:
        """The counts of every stage, a record each."""
        return [
            {
                "stage": name,
                "calls": self.calls[at],
                "answers": self.answers[at],
                "failures": self.failures[at],
                "abstentions": self.abstentions[at],
                "advised": self.advised[at],
            }
            for at, name in enumerate(self.stages)
        ]

    def to_frame(self) -> polars.DataFrame:
        """The counts of every stage, as a polars frame."""
        return frame(self.rows())

    @names_settings
    def plot(self, ax: Axes | None = None) -> Axes:
        """How often each stage was called and how often it answered, as bars."""
        axes = new_axes(ax, height=0.9 + 0.5 * len(self.stages))
        places = range(len(self.stages))
        axes.barh(places, self.calls, height=0.7, color=COLOURS[4], label="called")
        axes.barh(places, self.answers, height=0.4, color=COLOURS[0], label="answered")
        axes.set_yticks(list(places), self.stages)
        axes.invert_yaxis()
        axes.set_xlabel("rounds")
        axes.set_title(self._summary(), fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower right")
        return axes

    def __repr__(self) -> str:
        return f"<LiveReport: {self._summary()}>"

    def _summary(self) -> str:
        text = f"{_number(self.rounds, 'round')}, {self.abandoned} abandoned, spent {self.spent:g}"
        if self.unrecorded:
            text += f", {_number(self.unrecorded, 'round')} not recorded"
        if sum(self.advised):
            if self.way == "alone":
                text += f", the advice would save {self.saved:g} against {self.stages[-1]} alone"
            else:
                text += f", {self.saved:g} of it saved by the advice"
        if self.items is not None:
            text += f"; {self.items}"
        if self.promise is not None:
            text += f"; {self.promise}"
        return text

    def __str__(self) -> str:
        lines = [
            f"{row['stage']}: {_number(row['calls'], 'call')}, {_number(row['answers'], 'answer')},"
            f" {_number(row['failures'], 'failure')}, {_number(row['abstentions'], 'abstention')}"
            for row in self.rows()
        ]
        return "\n".join([self._summary(), *lines, *self._savings()])

    def _savings(self) -> list[str]:
        """What was saved, against what the stages can be called instead."""
        through, alone = self.saved_through, self.saved_alone
        if through is None or alone is None or any(self.advised):
            return []
        ways = {
            "cascade": f"{_rounded(through)} against calling all stages",
            "alone": f"{_rounded(alone)} against {self.stages[-1]} alone",
        }
        return [f"saved {ways[self.way] if self.way else ', '.join(ways.values())}"]

    def _repr_html_(self) -> str:
        rows = self.rows()
        return html_table(
            list(rows[0]), [list(row.values()) for row in rows], title=self._summary()
        )


def _rounded(value: float) -> str:
    """Sums of costs carry rounding; what is next to nothing is 0."""
    return f"{round(value, 9) + 0.0:g}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def report_of(
    tally: Tally,
    stages: Sequence[str],
    promise: AgreementGuard | None = None,
    last_cost: float | None = None,
    all_cost: float | None = None,
    way: Calls | None = None,
    in_mistakes: Sequence[float] = (),
) -> LiveReport:
    """Read a tally.

    Args:
        tally: what was counted.
        stages: their names.
        promise: of agreement, where one was made.
        last_cost: what a call of the last stage costs.
        all_cost: what a call of every stage costs.
        way: how stages are called, where that was said.
        in_mistakes: what stopping at each stage costs, in mistakes.

    >>> report_of(Tally(2), ("a", "b")).calls
    (0, 0)
    """
    at, values = tally.layout, tally.values
    lengths = tally.of_stages(at.lengths)
    known, paid = values[at.advised_known], values[at.advised_paid]
    items = figures_of_items(values, at.items)
    if way == "alone" and last_cost is not None:
        paid = values[at.advised_rounds] * last_cost
        if items is not None:  # savings are stated against the last stage alone, and need no sample
            items = replace(items, saved=None, saved_interval=None)
    return LiveReport(
        stages=tuple(stages),
        rounds=tally.rounds,
        abandoned=values[at.abandoned],
        calls=tuple(
            sum(lengths[stage:]) - skipped
            for stage, skipped in enumerate(tally.of_stages(at.skipped))
        ),
        answers=tuple(tally.of_stages(at.stops)),
        failures=tuple(tally.of_stages(at.failures)),
        abstentions=tuple(tally.of_stages(at.abstained)),
        spent=tally.spent,
        advised=tuple(tally.of_stages(at.advised)),
        advised_cost=float(values[at.advised_cost]),
        saved=float(paid - values[at.advised_cost]),
        advised_agreement=values[at.advised_same] / known if known else None,
        items=items,
        compared=tuple(tally.seen),
        disagreed=tuple(tally.disagreed),
        promise=None if promise is None else figures_of_promise(values, at.promise, promise),
        saved_alone=None if last_cost is None else tally.rounds * last_cost - tally.spent,
        saved_through=None if all_cost is None else tally.rounds * all_cost - tally.spent,
        way=way,
        in_mistakes=tuple(in_mistakes),
    )
