"""Labels for a per-item rule: which items to label, and what the labels bought.

A label says whom to believe where stages differ; where they all agree it says nothing that a rule
could use. So the items are drawn at random among those whose outputs differ. (Drawing more of
rare partitions, or of those that decide most, was tried on real logs and bought nothing more.) The
labels choose the reference and its trust (`stopwise.situations.labelled`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from stopwise.agreement import partitions
from stopwise.arrays import IntArray
from stopwise.checks import names_options, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.display import html_table
from stopwise.logs.auditing.audit import AuditPlan, order_by_item, plan_audit
from stopwise.logs.auditing.label_codes import codes_of_given, refuse_no_labels
from stopwise.logs.reading.rows import LogRows
from stopwise.logs.settings import LogOptions
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.binning import Binning
from stopwise.situations.observations import Observations
from stopwise.situations.references import hold_against
from stopwise.situations.transitions import Transitions

ENOUGH = 30
"""Labels that settle most of what matters for a rule."""


@dataclass(frozen=True)
class LabelsBought:
    """What labels changed for a per-item rule.

    Attributes:
        labels: on items whose outputs differ; others tell a rule nothing.
        before, after: the cost per item, calls and mistakes, of the rule made without and with the
            labels, both as estimated with them.
        believed: how much each stage, and the consensus, is believed where outputs differ.
        trust: how often the stage that is believed most was right, of these labels.

    >>> bought = LabelsBought(30, 2.0, 1.5, {"small": 0.1, "large": 0.9}, 0.8)
    >>> bought.sentence()
    '30 labels: large is believed most (90 %); cost per item 2 before, 1.5 with them: 25.0 % less'
    """

    labels: int
    before: float
    after: float
    believed: Mapping[str, float]
    trust: float | None

    @property
    def gain(self) -> float:
        """The share of the cost that the labels save, as estimated with them."""
        return 1 - self.after / self.before if self.before > 0 else 0.0

    def sentence(self) -> str:
        """It in words."""
        number = "1 label" if self.labels == 1 else f"{self.labels:,} labels"
        if not self.believed:
            return f"{number} on items whose outputs differ: nothing is known but by agreement"
        most = max(self.believed, key=lambda name: self.believed[name])
        saved = f"{100 * self.gain:.1f} % less" if self.gain > 5e-4 else "no less"
        return (
            f"{number}: {most} is believed most ({100 * self.believed[most]:.0f} %); cost per item"
            f" {self.before:.4g} before, {self.after:.4g} with them: {saved}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "believed": dict(self.believed), "gain": self.gain}


@dataclass(frozen=True)
class ItemAudit:
    """Where the labelling for a per-item rule stands.

    Attributes:
        stages: names.
        items: of the log.
        differing: items whose outputs differ; only these are worth a label.
        bought: what the labels so far bought.
        next_items: row numbers to be labelled next, in order.
        to_label: the names of these items.
        notes: what should be said about labels and log.
    """

    stages: tuple[str, ...]
    items: int
    differing: int
    bought: LabelsBought
    next_items: tuple[int, ...]
    to_label: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether there are as many labels as settle most of what matters, or all there can be."""
        return self.bought.labels >= min(ENOUGH, self.differing)

    def __str__(self) -> str:
        return f"{self.bought.sentence()}; {self.differing:,} items are worth a label"

    def __repr__(self) -> str:
        return f"<ItemAudit of {self.items:,} items: {self.bought.labels:,} labels>"

    def _repr_html_(self) -> str:
        rows = [(name, f"{100 * right:.0f} %") for name, right in self.bought.believed.items()]
        after = f"To label next: {', '.join(self.to_label[:5])}." if self.to_label else ""
        note = " ".join((*self.notes, after))
        return html_table(["stage", "believed"], rows, title=str(self), note=note)

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise audit --per-item --json` prints."""
        return {
            "version": 1,
            "stages": list(self.stages),
            "items": self.items,
            "worth_labelling": self.differing,
            "enough": self.enough,
            "bought": self.bought.to_dict(),
            "next_items": list(self.to_label),
            "notes": list(self.notes),
        }


@names_options(LogOptions)
def item_audit(
    log: object,
    labels: Mapping[Any, object] | None = None,
    *,
    batch: int = ENOUGH,
    seed: int = 0,
    **given: Unpack[LogOptions],
) -> ItemAudit:
    """Which items to label for a per-item rule, and what the labels so far bought.

    Args:
        labels: the right answer by item, as far as there are any.
        batch: how many items to label next.
        seed: of the order in which items are drawn; must stay the same.
        given: stages, costs, mistake_cost and whatever else `analyze` takes.

    >>> import polars
    >>> from stopwise.logs import example_log, example_settings
    >>> truth = polars.read_csv(example_log())["truth"].to_list()
    >>> begun = item_audit(example_log(), **example_settings())
    >>> labels = {item: truth[int(item)] for item in begun.to_label}
    >>> found = item_audit(example_log(), labels, **example_settings())
    >>> found.enough, found.bought.labels, found.bought.after <= found.bought.before
    (True, 30, True)
    """
    refuse_no_labels(labels)
    plan = plan_audit(log, **given)
    truth, notes = codes_of_given(plan.rows, labels)
    order = order_by_item(plan, whole_number("seed", seed, least=0))
    return assess_items(plan, order, truth, batch, (*plan.rows.notes, *notes))


def assess_items(
    plan: AuditPlan,
    order: IntArray,
    truth: Mapping[int, int],
    batch: int = ENOUGH,
    notes: tuple[str, ...] = (),
) -> ItemAudit:
    """The same for a plan and labels by row number; more are asked for only until `ENOUGH`."""
    batch = whole_number("batch", batch, least=1)
    rows = plan.rows
    differ = differing(rows)
    index = np.asarray(sorted(truth), dtype=np.int64)
    codes = np.asarray([truth[at] for at in index.tolist()], dtype=np.int64)
    bought = what_labels_bought(rows, index, codes)
    open_items = [int(at) for at in order[differ[order]] if int(at) not in truth]
    chosen = tuple(open_items[: min(batch, max(ENOUGH - bought.labels, 0))])
    return ItemAudit(
        stages=rows.stages,
        items=len(rows.codes),
        differing=int(differ.sum()),
        bought=bought,
        next_items=chosen,
        to_label=tuple(rows.items[at] for at in chosen),
        notes=notes,
    )


def differing(rows: LogRows) -> NDArray[np.bool_]:
    """Which items are worth a label: not all outputs are the same."""
    return np.asarray((rows.codes != rows.codes[:, :1]).any(axis=1))


def what_labels_bought(rows: LogRows, index: IntArray, truth: IntArray) -> LabelsBought:
    """Rules made with and without labels of these rows, judged by what the labels say.

    Args:
        index: numbers of the rows that were labelled.
        truth: the code of each right answer; one beyond all labels: no stage gave it.
    """
    met = Observations(rows.labels, rows.codes, rows.confidences)
    counts = Transitions.of(met, Binning.fit(met))
    counts.add_labels(met.where(index), truth)
    held = hold_against(counts)
    losses = held.loss(partitions(np.where(rows.codes < 0, -1, rows.codes)))
    weights = held.weights or {}
    names = {f"stage {at}": name for at, name in enumerate(rows.stages)}
    useful = np.flatnonzero(differing(rows)[index])
    trust = None
    if weights and len(useful):
        most = int(np.argmax([weights[name] for name in names]))
        trust = float((rows.codes[index[useful], most] == truth[useful]).mean())
    return LabelsBought(
        labels=len(useful),
        before=_total(rows, losses, None),
        after=_total(rows, losses, (rows.observations().where(index), truth)),
        believed={names.get(name, name): weight for name, weight in weights.items()},
        trust=trust,
    )


def _total(
    rows: LogRows, losses: FloatArray, labelled: tuple[Observations, IntArray] | None
) -> float:
    """Calls, as billed, and expected mistakes per item of the rule made with or without labels."""
    met = rows.observations()
    at = np.arange(len(met))
    if rows.alone:
        own = Costs.from_stages(rows.own, rows.costs.mistake_cost)
        found = AloneRule.fit(rows.stages, met, own, labelled=labelled).follow(met)
        lost = losses[at, found.answered_by]
        calls = (found.called * rows.bills).sum(axis=1)
        return float(calls.mean() + rows.costs.mistake_cost * lost.mean())
    rule = Rule.fit(rows.stages, met, rows.costs)
    if labelled is not None:
        rule.counts.add_labels(*labelled)
    depths = rule.depths(met)
    calls = np.cumsum(rows.bills, axis=1)[at, depths]
    return float(calls.mean() + rows.costs.mistake_cost * losses[at, depths].mean())
