"""An audit in one call: labels that there are go in, the items to label next come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from stopwise.checks import names_options, whole_number
from stopwise.logs.auditing.audit import assess, order_by_item, plan_audit
from stopwise.logs.auditing.label_codes import codes_of_given, refuse_no_labels
from stopwise.logs.auditing.result import Audit
from stopwise.logs.settings import LogOptions


@names_options(LogOptions)
def audit(
    log: object,
    labels: Mapping[Any, object] | None = None,
    *,
    batch: int = 20,
    seed: int = 0,
    tolerance: float = 0.0,
    strict: bool = False,
    **given: Unpack[LogOptions],
) -> Audit:
    """Which stage is best, with as few labels as possible.

    Call it without labels, label the items in `to_label`, and call it again with all labels so
    far, until it is `settled`. The seed must stay the same: it is the order in which items are
    drawn. The command `stopwise audit` does the same with a file to fill in.

    Args:
        log: a file or a data frame, as for `analyze`.
        labels: the right answer by item; items are named by the column `item`, or are numbered
            from 1. An answer that no stage gave is right too: all stages are wrong there.
        batch: how many items to label at a time.
        seed: of the order in which items are drawn.
        tolerance: a difference in cost per item that does not matter.
        strict: settle only by intervals that hold for any log, at any time; takes more labels.
        given: stages, costs, mistake_cost and whatever else `analyze` takes.

    >>> import polars
    >>> from stopwise.logs import example_log, example_settings
    >>> truth = polars.read_csv(example_log())["truth"].to_list()
    >>> labels = {}
    >>> found = audit(example_log(), labels, **example_settings())
    >>> while not found.settled:
    ...     labels.update({item: truth[int(item)] for item in found.to_label})
    ...     found = audit(example_log(), labels, **example_settings())
    >>> found.stages[found.best], found.labels
    ('linear', 20)
    """
    refuse_no_labels(labels)
    plan = plan_audit(log, tolerance=tolerance, strict=strict, **given)
    truth, notes = codes_of_given(plan.rows, labels)
    batch = whole_number("batch", batch, least=1)
    order = order_by_item(plan, whole_number("seed", seed, least=0))
    return replace(assess(plan, order, truth, batch), notes=(*plan.rows.notes, *notes))
