"""`stopwise audit`: settle what is not knowable without labels, with few labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from stopwise.checks import StopwiseError
from stopwise.cli.shared.log_options import ChosenLog, reads_log
from stopwise.cli.shared.run_options import AsJsonOption

if TYPE_CHECKING:
    from rich.console import Console

    from stopwise.logs.auditing.audit import AuditPlan
    from stopwise.logs.auditing.result import Audit, PairFinding
    from stopwise.logs.auditing.simulation import AuditSimulation
    from stopwise.logs.items.labelling import ItemAudit


@reads_log("level", "abstentions", "sql")
def command(
    log: ChosenLog,
    labels: Annotated[
        Path | None,
        typer.Option(help="The file to be labelled, and read back. [LOG.to-label.csv]"),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Where labels are kept between runs. [LOG.audit.json]")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Items to label at a time. [20; 30 with --per-item]")
    ] = None,
    per_item: Annotated[
        bool,
        typer.Option(
            "--per-item",
            help="Label for a rule that decides per item: see **fit --labels**.",
        ),
    ] = False,
    tolerance: Annotated[
        float, typer.Option(help="A difference in cost per item that does not matter to you.")
    ] = 0.0,
    blind: Annotated[
        bool, typer.Option("--blind", help="Do not show the outputs to whoever labels.")
    ] = False,
    show: Annotated[
        str | None, typer.Option(help="A column to show beside each item, such as its text.")
    ] = None,
    page: Annotated[
        bool,
        typer.Option("--page", help="Also write a page to type labels in: LOG.to-label.html."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Settle only by intervals that hold for any log; takes more labels."
        ),
    ] = False,
    simulate_with: Annotated[
        str | None,
        typer.Option(help="A column of right answers: how many labels would it have taken?"),
    ] = None,
    replications: Annotated[
        int, typer.Option(help="With --simulate-with: how many audits to simulate.")
    ] = 200,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the random order in which items are chosen for labelling. [0]"),
    ] = None,
    as_json: AsJsonOption = False,
) -> None:
    """Find the best stage with as few labels as possible, and stop as soon as it is settled.

    Only items on which stages differ are worth a label. Run it once: it writes such items to a
    file. Fill in the column **label** there (the right answer, also if no stage gave it) and run
    the same command again, until it says that the matter is settled; until then it gives its best
    guess. With --page, labels can be typed in on a page instead.

    **stopwise audit log.csv --stages vader,amazon,google --costs 0,0.0001,0.00025 --mistake-cost
    0.1**

    How many labels would it have taken, against labelling at random?

    **stopwise audit --example --simulate-with truth**

    For a rule that decides per item 30 labels settle most of what matters: whom to believe where
    stages differ. They are kept in the same file, and say what they bought:

    **stopwise audit log.csv ... --per-item**
    """
    from stopwise.logs.auditing.audit import plan_audit
    from stopwise.logs.reading.files import without_files

    source, settings, example = log
    if simulate_with is not None:
        settings = replace(settings, truth=simulate_with)
    base = _base("example" if example else source)
    labels = labels or base.with_name(base.stem + ".to-label.csv")
    state = state or base.with_name(base.stem + ".audit.json")
    page_path = labels.with_suffix(".html") if page else None
    if labels.resolve() == state.resolve():
        raise StopwiseError(f"state: {state} is the file of the labels; name another one")
    rows = without_files(source, labels, state, page_path)
    plan = plan_audit(rows, settings, tolerance=tolerance, strict=strict, show=show)
    files = AuditFiles(labels, state, page_path)
    if simulate_with is not None:
        if per_item:
            raise StopwiseError(
                "audit: --per-item and --simulate-with do not go together; see what labels of a"
                " truth column buy with fit --truth COLUMN --labels 30"
            )
        _simulate(plan, replications, seed or 0, as_json=as_json)
    elif per_item:
        _label_items(plan, files, batch, seed, blind=blind, as_json=as_json)
    else:
        _label(plan, files, batch, seed, blind=blind, as_json=as_json)


class AuditFiles(NamedTuple):
    """Where an audit keeps what: the labels to fill in, those it has, a page to type them in."""

    labels: Path
    state: Path
    page: Path | None


def _base(source: object) -> Path:
    """What the files of an audit are named after: the log, if it is one file with a name."""
    # Beside the log, but never inside the installed package.
    base = Path(source if isinstance(source, str) else "log")
    if base.name == "-":
        base = Path("log")
    if any(sign in base.name for sign in "*?["):
        base = base.with_name("log")
    return base.with_suffix("") if base.suffix == ".gz" else base


def _simulate(plan: AuditPlan, replications: int, seed: int, *, as_json: bool) -> None:
    """How many labels it would have taken."""
    from stopwise.cli.shared.output import print_json, progress_bar
    from stopwise.logs.auditing.label_codes import repeated_items
    from stopwise.logs.auditing.simulation import simulate_audit

    with progress_bar("audits", quiet=as_json) as progress:
        result = simulate_audit(plan, replications=replications, seed=seed, progress=progress)
    if as_json:
        print_json(result.to_dict())
    else:
        _print_simulation(result, (*plan.rows.notes, *repeated_items(plan.rows)))


def _label_items(
    plan: AuditPlan, files: AuditFiles, batch: int | None, seed: int | None, *, blind: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Label for a rule that decides per item."""
    from stopwise.cli.shared.output import print_json
    from stopwise.logs.auditing.files import hand_out, take_in
    from stopwise.logs.items.labelling import ENOUGH, assess_items

    labels, state, page = files
    so_far = take_in(plan, state, labels, seed)
    found = assess_items(plan, so_far.order, so_far.truth, batch or ENOUGH, so_far.notes)
    hand_out(plan, found.next_items, labels, blind=blind, page_path=page)
    if as_json:
        print_json({**found.to_dict(), "labels_file": str(labels), "state_file": str(state)})
    else:
        _print_items(found, labels, state)


def _label(
    plan: AuditPlan, files: AuditFiles, batch: int | None, seed: int | None, *, blind: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Label to find the best stage."""
    from stopwise.cli.shared.output import print_json
    from stopwise.logs.auditing.files import advance, audit_dict

    labels, state, page = files
    audit = advance(
        plan, state, labels, batch=20 if batch is None else batch, seed=seed, blind=blind,
        page_path=page,
    )  # fmt: skip
    if as_json:
        print_json(audit_dict(audit, plan, labels))
    else:
        _print(plan, audit, labels)


def _print_items(found: ItemAudit, labels: Path, state: Path) -> None:
    from stopwise.cli.shared.output import plain_console
    from stopwise.logs.formatting import counted

    console = plain_console()
    if found.next_items:
        text = (
            f"Fill in the column 'label' of {labels} ({counted(len(found.next_items), 'item')}, at"
            f" random among the {found.differing:,} of {counted(found.items, 'item')} whose outputs"
            " differ) and run this again."
        )
    else:
        text = f"Enough labels. Make the rule with: stopwise fit ... --labels {state}"
    console.print(text, style="bold")
    for note in found.notes:
        console.print(f"Note: {note.rstrip('.')}.", style="yellow")
    if found.bought.labels:
        console.print(f"{found.bought.sentence()} (estimated with these labels).")


def _print(plan: AuditPlan, audit: Audit, labels: Path) -> None:
    from stopwise.cli.shared.output import plain_console
    from stopwise.logs.formatting import counted

    console = plain_console()
    names = audit.stages
    if audit.best is not None:
        why = _why_settled(plan, audit)
        console.print(f"Stop at {names[audit.best]}: {why}.", style="bold")
    else:
        left = ", ".join(names[stage] for stage in audit.in_question)
        console.print(
            f"Not settled yet, after {counted(audit.labels, 'label')}; in question: {left}. Best"
            f" guess so far: {names[audit.guess]}. Fill in the column 'label' of {labels}"
            f" ({counted(len(audit.next_items), 'item')}) and run this again.",
            style="bold",
        )
    for note in audit.notes:
        console.print(f"Note: {note.rstrip('.')}.", style="yellow")
    _print_pairs(console, plan, audit)
    if audit.labels:
        console.print(
            "Plain random labelling would have needed about"
            f" {counted(audit.random_labels, 'label')} to tell as much: the stages differ on"
            f" {audit.worth_labelling:,} of {counted(audit.items, 'item')}.",
        )
    if plan.rows.left_out:
        console.print(
            f"Left out: {counted(plan.rows.left_out, 'item')} with an answer that is not known.",
            style="dim",
        )


def _print_pairs(console: Console, plan: AuditPlan, audit: Audit) -> None:
    from stopwise.logs.formatting import counted, round_share, share

    if not audit.pairs:
        return
    names = audit.stages
    console.print(
        f"\nHow much less often the deeper stage is wrong (holds at any time, with"
        f" {round_share(plan.level)}):",
    )
    for pair in audit.pairs:
        console.print(
            f"- {names[pair.deep]} against {names[pair.shallow]}: between"
            f" {_signed(pair.low)} and {_signed(pair.high)} of items; its price asks for"
            f" {share(pair.threshold)}. {pair.labelled:,} of"
            f" {counted(pair.items, 'differing item')} labelled: {pair.finding}{_by(pair)}.",
        )


def _why_settled(plan: AuditPlan, audit: Audit) -> str:
    """What "settled" rests on, in words."""
    from stopwise.logs.auditing.result import why_settled

    said = why_settled(audit, plan.level)
    sure = audit.guaranteed or not audit.labels
    return said if sure else f"{said}, which --strict gives for more labels"


def _by(pair: PairFinding) -> str:
    from stopwise.logs.auditing.result import BY_POSTERIOR

    if pair.finding == "open" or pair.guaranteed:
        return ""
    return f"{BY_POSTERIOR} (the interval alone does not settle it)"


def _signed(value: float) -> str:
    return f"{value * 100:+.1f} %"


def _print_simulation(result: AuditSimulation, notes: tuple[str, ...]) -> None:
    from rich.table import Table

    from stopwise.cli.shared.output import plain_console
    from stopwise.logs.formatting import counted

    console = plain_console()
    form = result.to_dict()
    console.print(
        f"{form['optimal_stage']} is the best stage of these {counted(result.items, 'item')}; its"
        f" stages in question differ on {result.worth_labelling:,} of them.",
        style="bold",
    )
    for note in notes:
        console.print(f"Note: {note}", style="yellow")
    table = Table("labels until settled", "median", "mean", "5 % to 95 %", box=None)
    for name, key in (("audit", "audit_labels"), ("random labelling", "random_labels")):
        found = form[key]
        table.add_row(
            name,
            f"{found['median']:,.0f}",
            f"{found['mean']:,.1f}",
            f"{found['q05']:,.0f} to {found['q95']:,.0f}",
        )
    console.print(table)
    console.print(
        f"{form['replications']} simulated audits; {result.right:.1%} ended with the best stage."
        " Random labelling is read with the same intervals, so this is the best it can do.",
        style="dim",
    )
