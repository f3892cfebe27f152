"""`stopwise problem`: everything that follows from a problem."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from stopwise.cli.shared.run_options import AsJsonOption


def command(
    file: Annotated[Path, typer.Argument(metavar="PROBLEM.json", help="The problem.")],
    as_json: AsJsonOption = False,
) -> None:
    """Print what is true in PROBLEM.json: error rates, disagreements, optimal stage, dominance.

    A problem is `{"costs": [0.1, 0.3], "cumulative": true, "patterns": [{"truth": 0, "outputs":
    [0, 1], "p": 0.25}, ...]}`; without `"cumulative": true` the costs are each stage's own.
    Optional: `"mistake_cost"`, `"stages"` (names), `"rows"` (pattern of every item, in order).
    """
    from stopwise.cli.shared.output import print_json
    from stopwise.problem import Problem
    from stopwise.storage import read_whole

    known = describe(Problem.from_json(read_whole(file)))
    if as_json:
        print_json(known)
    else:
        _print(known)


def describe(problem: Any) -> dict[str, Any]:
    """All that a problem knows, as JSON would hold it; stages are 0-based."""
    return {
        "stages": list(problem.stages),
        "cumulative_costs": list(problem.costs.cumulative),
        "mistake_cost": problem.costs.mistake_cost,
        "patterns": len(problem.p),
        "labels": len(problem.labels),
        "error_rates": problem.error_rates.tolist(),
        "disagreements": problem.disagreements.tolist(),
        "expected_total_costs": problem.expected_total_costs.tolist(),
        "gaps": problem.gaps.tolist(),
        "optimal_stage": problem.optimal_stage,
        "margins": [None if math.isnan(value) else value for value in problem.margins.tolist()],
        "margin": None if math.isinf(problem.margin) else problem.margin,
        "weak_dominance": problem.weak_dominance,
        "strong_dominance": problem.strong_dominance,
        "stopping_set": list(problem.stopping_set),
        "stopping_stage": problem.stopping_stage,
    }


def _print(known: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    stages = [escape(name) for name in known["stages"]]  # a name like [b] is no markup
    table = Table(box=None, pad_edge=False)
    for title in ("stage", "cumulative cost", "error rate", "total", "gap", "margin xi_j"):
        table.add_column(title, justify="left" if title == "stage" else "right")
    for i, name in enumerate(stages):
        margin = known["margins"][i]
        mark = " (optimal)" if i == known["optimal_stage"] else ""
        table.add_row(
            name + mark,
            f"{known['cumulative_costs'][i]:.6g}",
            f"{known['error_rates'][i]:.4f}",
            f"{known['expected_total_costs'][i]:.4f}",
            f"{known['gaps'][i]:.4f}",
            "-" if margin is None else f"{margin:+.4f}",
        )
    console.print(table)
    console.print("\ndisagreement of each pair")
    matrix = Table("", *stages, box=None, pad_edge=False)
    for i, name in enumerate(stages):
        cells = [
            f"{value:.4f}" if j > i else "" for j, value in enumerate(known["disagreements"][i])
        ]
        matrix.add_row(name, *cells)
    console.print(matrix)
    margin = known["margin"]
    names = [stages[i] for i in known["stopping_set"]]
    holds = {True: "holds", False: "does not hold"}
    console.print(
        f"\nweak dominance {holds[known['weak_dominance']]}"
        f" (xi = {'infinite: the last stage is optimal' if margin is None else f'{margin:+.4f}'})"
        f"\nstrong dominance {holds[known['strong_dominance']]}"
        f"\nstopping set B of Lemma 1: {', '.join(names)}; a learner who knew every disagreement"
        f" would stop at {names[0]}",
    )
