# ruff: noqa: E501
"""How many stages that are worse than a cheaper one are named, and how many that are not.

    python benchmarks/real_logs.py SOURCE_FOLDER LOGS               # see there for what it needs
    python benchmarks/real_logs.py SOURCE_FOLDER LOGS --draw 1      # and 2 and 3
    python benchmarks/outliers.py LOGS                              # writes benchmarks/OUTLIERS.md

Made-up cascades are those of `readings.py`, of two seeds. The rule was chosen on one half of them
and on the real logs of the part `choice`, and is judged on the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from readings import KINDS, cascade

from stopwise.abstentions import answering_stages
from stopwise.logs import analyze

HERE = Path(__file__).parent
SEEDS = {"choice": 11, "final": 12}
MADE_UP = 150


class Tally:
    """Counts over stages; the first stage of a cascade has no cheaper one and is left out."""

    def __init__(self) -> None:
        self.cascades = self.clearly = self.found = self.fine = self.false = self.named = 0

    def add(self, codes: np.ndarray, truth: np.ndarray) -> None:
        who = answering_stages(codes, "go on")
        answer = np.take_along_axis(codes, np.maximum(who, 0), axis=1)
        wrong = ((answer != truth[:, None]) | (who < 0)).astype(float)
        names = [f"s{at}" for at in range(codes.shape[1])]
        frame = pl.DataFrame(
            {
                name: [None if code < 0 else f"label {code}" for code in column]
                for name, column in zip(names, codes.T.tolist(), strict=True)
            },
            schema=dict.fromkeys(names, pl.String),
        )
        costs = (2.0 ** np.arange(len(names))).tolist()
        analysis = analyze(
            frame, stages=names, costs=costs, mistake_cost=100, trailing_blanks="abstained"
        )
        if analysis.readings.why_not is not None:
            return
        self.cascades += 1
        warned = {w.stage for w in analysis.warnings if w.code == "outlier_stage"}
        for deep in range(1, len(names)):
            gaps = [wrong[:, deep] - wrong[:, cheap] for cheap in range(deep)]
            clearly = any(
                gap.mean() >= 0.02 and gap.mean() >= 3 * gap.std() / np.sqrt(len(gap))
                for gap in gaps
            )
            fine = all(gap.mean() <= 0 for gap in gaps)
            self.clearly += clearly
            self.found += clearly and deep in warned
            self.fine += fine
            self.false += fine and deep in warned
            self.named += deep in warned

    def merge(self, other: Tally) -> None:
        for field, number in vars(other).items():
            setattr(self, field, getattr(self, field) + number)

    def row(self, name: str) -> str:
        cells = (
            name, f"{self.cascades}",
            f"{self.found / max(self.clearly, 1):.0%} of {self.clearly}",
            f"{self.false / max(self.fine, 1):.1%} of {self.fine}",
            f"{self.false / max(self.named, 1):.0%} of {self.named}",
        )  # fmt: skip
        return "| " + " | ".join(cells) + " |"


def made_up(part: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(SEEDS[part])
    for at in range(MADE_UP):
        yield cascade(KINDS[at % len(KINDS)], rng)


def real(folder: Path, part: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for path in sorted(folder.glob(f"{part} *.npz")):
        log = np.load(path)
        if log["codes"].shape[1] > 2:
            yield log["codes"], log["truth"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path)
    logs = parser.parse_args().logs
    lines = [
        "# Stages that are worse than a cheaper one",
        "",
        "Written by `python benchmarks/outliers.py`. The warning `outlier_stage` was chosen on the part",
        "*choice*; *final* rests on other seeds and other data. A stage is *clearly worse* if its answers are",
        "wrong more often than those of a cheaper stage, by 2 points and by 3 standard errors. A warning is a",
        "*false alarm* if the stage is wrong no more often than every cheaper one.",
        "",
        "| part | cascades | clearly worse, and named | no worse, but named (false alarms) | of all warnings, false |",
        "|---|---|---|---|---|",
    ]
    for part in SEEDS:
        both = Tally()
        for name, found in (("made-up", made_up(part)), ("real", real(logs, part))):
            own = Tally()
            for codes, truth in found:
                own.add(codes, truth)
            both.merge(own)
            lines.append(own.row(f"{part}, {name}"))
        lines.append(both.row(f"{part}, all"))
    text = "\n".join(lines) + "\n"
    (HERE / "OUTLIERS.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
