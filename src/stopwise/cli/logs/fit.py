"""`stopwise fit`: a per-item rule from a log, as a JSON file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from stopwise.cli.shared.log_options import ChosenLog, reads_log


@reads_log("truth", "features")
def command(
    log: ChosenLog,
    out: Annotated[Path, typer.Option(help="The file to write the rule to.")] = Path("rule.json"),
    policy: Annotated[
        str,
        typer.Option(
            help="per-item (a table) or per-item-logistic (regressions, for features of any kind)."
        ),
    ] = "per-item",
    reference: Annotated[
        str,
        typer.Option(
            help="What answers are compared with, in place of the truth: auto, last, consensus or"
            " the name of a stage."
        ),
    ] = "auto",
    trust: Annotated[
        float | None,
        typer.Option(
            help="How many mistakes a difference from the reference stage counts as: above 0, at"
            " most 1. [0.7 for the last stage, 1 for a stage that --reference names]"
        ),
    ] = None,
    labels: Annotated[
        str,
        typer.Option(
            help="Labels that choose the reference: a file that **audit --per-item** wrote and"
            " somebody filled in (CSV), or what it keeps (JSON); or a number of right answers of"
            " the --truth column, -1 for all."
        ),
    ] = "0",
) -> None:
    """Fit a rule that decides per item where to stop, and write it as readable JSON.

    The log needs rows on which every stage was called. Columns named **NAME:confidence** say how
    sure a stage was; they help most.

    **stopwise fit log.csv --stages small,large --costs 1,5 --mistake-cost 40 --out rule.json**

    **stopwise fit log.csv ... --policy per-item-logistic --features length,language**

    Services and language models, each of which can be called by itself (the rule then chooses the
    first stage too, and may jump over others):

    **stopwise fit log.csv --stages small,middle,large --costs 1,5,20 --mistake-cost 40 --calls
    alone**

    With labels of a few items on which stages differ; **stopwise audit --per-item** picks them:

    **stopwise fit log.csv ... --labels log.audit.json**

    A live cascade takes the file: **Cascade(stages, rule="rule.json")**. See what it does with
    **stopwise explain rule.json**, and what it is worth with **stopwise analyze --per-item**.
    """
    from stopwise.logs.formatting import counted
    from stopwise.logs.items.fitting import fit_with_labels, write_rule
    from stopwise.logs.reading.files import refuse_log_file
    from stopwise.policies.per_item.rule import Rule

    refuse_log_file(log.source, out)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        rule, bought = fit_with_labels(
            log.source, log.settings, policy=policy, reference=reference, trust=trust,
            labels=_number_or_file(labels),
        )  # fmt: skip
    for note in notes:
        typer.echo(f"Note: {note.message}", err=True)
    write_rule(rule, out)
    items = rule.counts.rounds if isinstance(rule, Rule) else rule.rows
    typer.echo(f"wrote {out}: {len(rule.stages)} stages, {counted(items, 'item')}")
    if bought is not None:
        typer.echo(f"{bought.sentence()} (estimated with these labels)")


def _number_or_file(text: str) -> int | Path:
    """How many labels to take from the truth column, or a file of labels."""
    return int(text) if text.lstrip("-").isdecimal() else Path(text)
