"""`stopwise fit`: a per-item rule from a log, as a JSON file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from stopwise.cli.shared.log_options import (
    CallsOption,
    CostsOption,
    ExampleOption,
    FeaturesOption,
    ItemOption,
    LayoutOption,
    LogFileOption,
    MaxLabelsOption,
    MistakeCostOption,
    SettingsFileOption,
    StagesOption,
    TrailingBlanksOption,
    TruthOption,
    log_and_settings,
)


def command(
    log: LogFileOption = None,
    out: Annotated[Path, typer.Option(help="The file to write the rule to.")] = Path("rule.json"),
    stages: StagesOption = None,
    costs: CostsOption = None,
    mistake_cost: MistakeCostOption = None,
    calls: CallsOption = None,
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
        int,
        typer.Option(
            help="Use this many right answers of the --truth column to choose the reference; -1 for"
            " all."
        ),
    ] = 0,
    features: FeaturesOption = None,
    truth: TruthOption = None,
    settings: SettingsFileOption = None,
    item: ItemOption = None,
    layout: LayoutOption = None,
    max_labels: MaxLabelsOption = None,
    trailing_blanks: TrailingBlanksOption = None,
    example: ExampleOption = False,
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

    A live cascade takes the file: **Cascade(stages, rule="rule.json")**. See what it does with
    **stopwise explain rule.json**, and what it is worth with **stopwise analyze --per-item**.
    """
    from stopwise.logs.items.fitting import fit, write_rule
    from stopwise.policies.per_item.rule import Rule

    source, chosen = log_and_settings(
        log, example, settings,
        stages=stages, costs=costs, mistake_cost=mistake_cost, truth=truth, item=item,
        layout=layout, max_labels=max_labels, trailing_blanks=trailing_blanks, features=features,
        calls=calls,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        rule = fit(source, chosen, policy=policy, reference=reference, trust=trust, labels=labels)
    for note in notes:
        typer.echo(f"Note: {note.message}", err=True)
    write_rule(rule, out)
    items = rule.counts.rounds if isinstance(rule, Rule) else rule.rows
    typer.echo(f"wrote {out}: {len(rule.stages)} stages, {items:,} items")
