"""Where an audit stands: what the labels so far settle, and what to label next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stopwise.display import frame, html_table
from stopwise.logs.formatting import counted, round_share

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class PairFinding:
    """What is known of a pair: gamma_i - gamma_j lies between low and high, at any time.

    Attributes:
        threshold: what it has to exceed for the deeper stage to be worth its price.
        finding: "deeper pays", "shallower is enough" or "open".
        guaranteed: whether that follows from the bounds alone, so that it holds for any log, or
            all differing items are labelled; otherwise it is a posterior statement.
    """

    shallow: int
    deep: int
    items: int
    labelled: int
    low: float
    high: float
    threshold: float
    finding: str
    guaranteed: bool = False


@dataclass(frozen=True, repr=False)
class Audit:
    """Where an audit stands.

    Attributes:
        in_question: stages that may still be the best one.
        best: the one that is, once settled.
        labels: how many labels were used.
        worth_labelling: items on which stages in question differed, at the start.
        random_labels: about how many labels of items drawn at random from the whole log would
            have given the same certainty.
        next_items: row numbers to be labelled next, in order.
        to_label: the names of these items.
        guess: the best guess with the labels there are; the stage itself once it is settled.
        notes: what should be said about the labels and the log.
        guaranteed: whether what is settled holds for any log (`strict`, or every pair that rules a
            stage out does); otherwise its probability is that of a posterior.

    >>> import stopwise as sw
    >>> begun = sw.audit(sw.example_log(), {}, **sw.example_settings())
    >>> begun.settled, begun.labels, len(begun.in_question) > 1
    (False, 0, True)
    >>> begun.to_label[0] == str(begun.next_items[0])
    True
    >>> begun.to_frame().columns[:2]
    ['shallow', 'deep']
    """

    stages: tuple[str, ...]
    in_question: tuple[int, ...]
    best: int | None
    labels: int
    items: int
    worth_labelling: int
    random_labels: int
    pairs: tuple[PairFinding, ...]
    next_items: tuple[int, ...]
    to_label: tuple[str, ...] = ()
    guess: int = 0
    notes: tuple[str, ...] = ()
    guaranteed: bool = False

    @property
    def settled(self) -> bool:
        """Whether one stage is left."""
        return self.best is not None

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row for each pair in question."""
        return frame([self._record(pair) for pair in self.pairs])

    def __str__(self) -> str:
        labels = counted(self.labels, "label")
        if self.best is not None:
            kind = "for any log" if self.guaranteed else "by its posterior"
            known = kind if self.labels else "without a label"
            return f"{self.stages[self.best]} is the best stage: settled {known}, with {labels}"
        names = " or ".join(self.stages[at] for at in self.in_question)
        return f"Not settled with {labels}: {names}; best guess {self.stages[self.guess]}"

    def __repr__(self) -> str:
        state = "settled" if self.settled else "not settled"
        return f"<Audit of {counted(self.items, 'item')}, {state}>"

    def _repr_html_(self) -> str:
        records = [self._record(pair) for pair in self.pairs]
        columns = list(records[0]) if records else ["shallow", "deep", "finding"]
        rows = [list(record.values()) for record in records]
        after = f"To label next: {', '.join(self.to_label[:5])}." if self.to_label else ""
        return html_table(columns, rows, title=str(self), note=" ".join((*self.notes, after)))

    def _record(self, pair: PairFinding) -> dict[str, Any]:
        return {
            "shallow": self.stages[pair.shallow],
            "deep": self.stages[pair.deep],
            "items": pair.items,
            "labelled": pair.labelled,
            "gain low": pair.low,
            "gain high": pair.high,
            "gain needed": pair.threshold,
            "finding": pair.finding,
        }


BY_POSTERIOR = " by its posterior"
"""After a finding that bounds alone do not settle."""


def why_settled(audit: Audit, level: float) -> str:
    """What "settled" rests on, in words.

    >>> audit = Audit(("a", "b"), (1,), 1, 10, 90, 20, 50, (), ())
    >>> why_settled(audit, 0.99)[:61]
    'settled after 10 labels, with a posterior probability of 99 %'
    """
    if not audit.labels:
        return "settled without a label: nothing deeper can be worth its price on this log"
    after = f"settled after {counted(audit.labels, 'label')}"
    if audit.guaranteed:
        return f"{after}, with a guarantee of {round_share(level)} that holds for any log"
    return (
        f"{after}, with a posterior probability of {round_share(level)} or more; this is no"
        " guarantee for any log"
    )
