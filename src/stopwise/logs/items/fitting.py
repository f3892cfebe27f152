"""`fit`: the per-item rule of a log, as one readable JSON file that a live cascade can take."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Unpack

import numpy as np

from stopwise.arrays import IntArray
from stopwise.checks import StopwiseError, fail, names_options, names_settings, one_of, whole_number
from stopwise.costs import Costs
from stopwise.logs.auditing.files import labels_in
from stopwise.logs.auditing.label_codes import label_codes
from stopwise.logs.formatting import counted
from stopwise.logs.items.held_out import FEWEST_ROWS
from stopwise.logs.items.labelling import LabelsBought, differing, what_labels_bought
from stopwise.logs.items.why import reasons
from stopwise.logs.reading.call_order import in_call_order
from stopwise.logs.reading.rows import LogRows, read_rows
from stopwise.logs.settings import LogOptions, LogSettings, settings_from
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.any_rule import AnyRule
from stopwise.policies.per_item.logistic.rule import LOGISTIC, LogisticRule
from stopwise.policies.per_item.logistic.words import weights_in_words
from stopwise.policies.per_item.rule import PER_ITEM, Rule
from stopwise.storage import write_whole

POLICIES = (PER_ITEM, LOGISTIC)


@names_options(LogOptions)
def fit(
    log: object,
    settings: LogSettings | None = None,
    *,
    policy: str = PER_ITEM,
    reference: str | int = "auto",
    trust: float | None = None,
    labels: int | str | Path = 0,
    seed: int = 0,
    **given: Unpack[LogOptions],
) -> AnyRule:
    """Fit a per-item rule on all complete rows of a log.

    Args:
        policy: "per-item", a table of situations, or "per-item-logistic", regressions, which take
            features of every kind and number.
        reference: what answers are held against: "auto", "last", "consensus", the name of a stage
            or its number.
        trust: what a difference from a stage counts for, in mistakes; by default 0.7 for the last.
        labels: choose the reference. A file of labels: one that `audit --per-item` wrote and
            somebody filled in (CSV), or what it keeps (JSON). Or a number: this many items whose
            outputs differ take their truth from the truth column, -1 for all of them. 0: none.
        given: as for `analyze`. With `calls="alone"` the rule chooses the first stage too, and may
            jump over others.

    >>> import polars
    >>> frame = polars.DataFrame({"small": ["keep", "refund"] * 200, "large": ["keep"] * 400})
    >>> rule = fit(frame, stages=["small", "large"], costs=[1, 4], mistake_cost=20)
    >>> [reason.words for reason in reasons(rule)]
    ['stop after small when it says keep', 'go on after small when it says refund']
    """
    return fit_with_labels(
        log, settings, policy=policy, reference=reference, trust=trust, labels=labels, seed=seed,
        **given,
    )[0]  # fmt: skip


@names_options(LogOptions)
def fit_with_labels(
    log: object,
    settings: LogSettings | None = None,
    *,
    policy: str = PER_ITEM,
    reference: str | int = "auto",
    trust: float | None = None,
    labels: int | str | Path = 0,
    seed: int = 0,
    **given: Unpack[LogOptions],
) -> tuple[AnyRule, LabelsBought | None]:
    """The same, with what the labels bought; None where there are none, or they are not asked.

    >>> import polars
    >>> frame = polars.DataFrame({"small": ["keep", "refund"] * 200, "large": ["keep"] * 400,
    ...                           "truth": ["keep"] * 400})
    >>> _, bought = fit_with_labels(frame, stages=["small", "large"], costs=[1, 4],
    ...                             mistake_cost=20, truth="truth", labels=30)
    >>> bought.labels, max(bought.believed, key=bought.believed.get)
    (30, 'large')
    """
    chosen = in_call_order(log, settings_from(settings, given))
    one_of("policy", policy, POLICIES)
    if not isinstance(labels, str | Path):
        labels = whole_number("labels", labels, least=-1)
    rows = read_rows(log, chosen)
    if len(rows.codes) < FEWEST_ROWS:
        found = counted(len(rows.codes), "complete row")
        raise StopwiseError(f"fit: {found}, but need {FEWEST_ROWS} or more")
    if rows.alone and policy != PER_ITEM:
        raise fail("policy", policy, "per-item, where stages are called alone")
    index, truth, notes = _labelled(rows, labels, seed)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=3)
    held_to = rows.held_to(reference)
    rule = _fit_rows(rows, policy, held_to, trust, (index, truth) if labels else None)
    asked = bool(labels) and held_to == "auto" and trust is None
    return rule, what_labels_bought(rows, index, truth) if asked else None


def _fit_rows(
    rows: LogRows,
    policy: str,
    reference: str | int,
    trust: float | None,
    labels: tuple[IntArray, IntArray] | None,
) -> AnyRule:
    met = rows.observations()
    labelled = None if labels is None else (met.where(labels[0]), labels[1])
    if rows.alone:
        return AloneRule.fit(
            rows.stages, met, Costs.from_stages(rows.own, rows.costs.mistake_cost),
            reference=reference, trust=trust, labelled=labelled,
        )  # fmt: skip
    if policy == LOGISTIC:
        return LogisticRule.fit(
            rows.stages, met, rows.costs, reference=reference, trust=trust, labelled=labelled
        )
    rule = Rule.fit(rows.stages, met, rows.costs, reference=reference, trust=trust)
    if labelled is not None:
        rule.counts.add_labels(*labelled)
    return rule


def _labelled(
    rows: LogRows, labels: int | str | Path, seed: int
) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Which rows give their right answer, as codes, and what should be said of it."""
    nobody = np.zeros(0, dtype=np.int64)
    if isinstance(labels, str | Path):
        codes, notes = label_codes(rows, labels_in(Path(labels), rows))
        index = np.asarray(sorted(codes), dtype=np.int64)
        truth = np.asarray([codes[at] for at in index.tolist()], dtype=np.int64)
        return index, truth, tuple(notes)
    if not labels:
        return nobody, nobody, ()
    if rows.truth is None:
        raise StopwiseError("labels: give the column of right answers with truth=... (--truth)")
    index = np.flatnonzero(differing(rows) & (rows.truth >= 0))
    if 0 <= labels < len(index):
        index = np.random.default_rng(seed).choice(index, labels, replace=False)
    return index, rows.truth[index], rows.notes


@names_settings
def write_rule(rule: AnyRule, path: str | Path) -> None:
    """Write a rule: what it decides in words first, then the numbers that it follows from.

    `Cascade(rule=...)` takes the file, and `stopwise explain` shows it.

    >>> import json, polars, tempfile
    >>> frame = polars.DataFrame({"small": ["keep", "refund"] * 200, "large": ["keep"] * 400})
    >>> path = Path(tempfile.mkdtemp()) / "rule.json"
    >>> write_rule(fit(frame, stages=["small", "large"], costs=[1, 4], mistake_cost=20), path)
    >>> json.loads(path.read_text())["reads"][0]
    'stop after small when it says keep (50.0% of items)'
    """
    if not isinstance(rule, AnyRule):
        raise fail("rule", rule, "a rule, such as fit(...) gives")
    form = rule.to_dict()
    numbers = {
        name: form.pop(name) for name in ("counts", "columns", "models", "paths") if name in form
    }
    if isinstance(rule, Rule):
        form["reads"] = [
            f"{reason.words} ({reason.share:.1%} of items)" for reason in reasons(rule, most=40)
        ]
    elif isinstance(rule, LogisticRule):
        form["reads"] = [line.words for line in weights_in_words(rule, most=40)]
    text = json.dumps(form | numbers, ensure_ascii=False, indent=1)
    write_whole(Path(path), text + "\n")
