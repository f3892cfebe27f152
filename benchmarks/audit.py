# ruff: noqa: E501
"""How many labels an audit takes on real logs with known truth, and how good its best guess is.

    python benchmarks/real_logs.py SOURCE_FOLDER LOGS      # see there for what it needs
    python benchmarks/audit.py LOGS                        # writes benchmarks/AUDIT.md

Each log is audited at four mistake costs, ten times at each, in ten random orders; mistake costs at
which nothing is in question without a label are left out. Beside the best guess of the audit stands
what as many labels of items drawn from the whole log say by themselves: the stage with the fewest
mistakes on them, costs included.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from joblib import Parallel, delayed

from stopwise.decisions import optimal_stage
from stopwise.logs.auditing.audit import AuditPlan, plan_audit
from stopwise.logs.auditing.simulation import GUESS_AFTER, simulate_audit

HERE = Path(__file__).parent
MISTAKE_COSTS = np.geomspace(1, 60, 4)
"""In what going through all stages costs."""

REPLICATIONS = 10


class Case(NamedTuple):
    """One log at one mistake cost; labels, and whether it ended right, of every simulated audit."""

    part: str
    kind: str
    labels: list[int]
    strict_labels: list[int]
    random_labels: list[int]
    wrong: float
    strict_wrong: float
    guess: list[float]
    random_guess: list[float]


def cases(path: Path) -> list[Case]:
    """Every mistake cost at which something is in question."""
    log = np.load(path)
    codes, truth, costs = log["codes"], log["truth"], log["costs"]
    names = [f"s{at}" for at in range(codes.shape[1])]
    columns = {
        name: [None if code < 0 else f"label {code}" for code in column]
        for name, column in zip([*names, "truth"], [*codes.T.tolist(), truth.tolist()], strict=True)
    }
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    found = []
    for times in MISTAKE_COSTS:
        mistake_cost = float(times * costs.sum())
        both = [
            plan_audit(
                frame, stages=names, costs=costs.tolist(), mistake_cost=mistake_cost, truth="truth",
                trailing_blanks="abstained", strict=strict,
            )
            for strict in (False, True)
        ]  # fmt: skip
        if len(both[0].candidates) < 2:
            continue
        usual, strict = (simulate_audit(plan, replications=REPLICATIONS) for plan in both)
        found.append(
            Case(
                part=str(log["part"]),
                kind=str(log["kind"]),
                labels=usual.audit_labels.tolist(),
                strict_labels=strict.audit_labels.tolist(),
                random_labels=usual.random_labels.tolist(),
                wrong=1 - usual.right,
                strict_wrong=1 - strict.right,
                guess=list(usual.guess_excess),
                random_guess=list(random_guesses(both[0])),
            )
        )
    return found


def random_guesses(plan: AuditPlan) -> Iterator[float]:
    """The excess of the stage that labels of the whole log name, with nothing else known."""
    rng, rows = np.random.default_rng(0), plan.rows
    wrong = (rows.answers != rows.truth[:, None]).astype(float)
    totals = wrong.mean(axis=0) + rows.costs.in_mistakes
    only = np.full(len(totals), np.inf)
    only[list(plan.candidates)] = 0.0
    orders = [rng.permutation(len(wrong)) for _ in range(REPLICATIONS)]
    for number in GUESS_AFTER:
        if not number:
            yield float("nan")
            continue
        seen = [wrong[order[:number]].mean(axis=0) + rows.costs.in_mistakes for order in orders]
        named = [optimal_stage(each + only) for each in seen]
        yield float(np.mean(totals[named] / totals.min() - 1))


def row(name: str, logs: int, chosen: list[Case]) -> str:
    def median(field: str) -> str:
        return f"{np.median(np.concatenate([getattr(case, field) for case in chosen])):.0f}"

    def mean(field: str, at: int) -> str:
        return f"{np.mean([getattr(case, field)[at] for case in chosen]):.1%}"

    cells = [name, f"{logs}", f"{len(chosen) * REPLICATIONS}", median("labels")]
    cells += [f"{np.mean([case.wrong for case in chosen]):.2%}"]
    cells += [median("strict_labels"), f"{np.mean([case.strict_wrong for case in chosen]):.2%}"]
    cells += [median("random_labels"), mean("guess", 0)]
    cells += [f"{mean('guess', at)} ({mean('random_guess', at)})" for at in (1, 2, 3)]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path)
    paths = sorted(parser.parse_args().logs.glob("*.npz"))
    found = Parallel(n_jobs=2)(delayed(cases)(path) for path in paths)
    lines = [
        "# Audits of real logs",
        "",
        "Written by `python benchmarks/audit.py`, on the logs that `benchmarks/real_logs.py` makes, each at",
        "four mistake costs (1 to 60 times what going through all stages costs) at which something is in",
        "question, ten audits at each. *Labels*: the median until one stage is left, as usual and with",
        "`--strict`; *wrong*: the share of audits that end with a stage that is not the best one; *random*:",
        "the same when the whole log is labelled in random order. *Best guess*: how much more than the best",
        "stage it costs, mistakes included, after 0 to 100 labels; in brackets the stage that as many labels",
        "drawn from the whole log name by themselves.",
        "",
        "| logs | number | audits | labels | wrong | strict | wrong | random | best guess: none | 10 | 30 | 100 |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for part in ("choice", "final", "all"):
        of_part = [log for log in found if log and part in (log[0].part, "all")]
        chosen = [case for log in of_part for case in log]
        if not chosen:
            continue
        if part != "all":
            for kind in sorted({case.kind for case in chosen}):
                own = [case for case in chosen if case.kind == kind]
                logs = sum(log[0].kind == kind for log in of_part)
                lines.append(row(f"{part}, {kind}", logs, own))
        lines.append(row(f"**{part}**", len(of_part), chosen))
    text = "\n".join(lines) + "\n"
    (HERE / "AUDIT.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
