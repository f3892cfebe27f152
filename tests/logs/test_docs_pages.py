"""Every command and every program of the pages runs, in order, in an empty folder."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.filterwarnings("ignore")  # dask's own
@pytest.mark.parametrize("page", ["analyze.md", "audit.md", "logs-at-scale.md"])
def test_page_runs_as_written(page, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    ran = 0
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", text, flags=re.S):
        if kind == "python":
            exec(compile(block, page, "exec"), {"__name__": "docs"})
        elif kind == "toml":
            tomllib.loads(block)
            Path("settings.toml").write_text(block)
        elif kind == "bash":
            for line in block.strip().splitlines():
                if line.startswith("pip "):
                    continue
                assert line.startswith("stopwise ")
                answer = cli(*shlex.split(line)[1:])
                assert answer.status == 0, answer.err
                ran += 1
    assert ran >= 1


def test_readings_fail_as_the_page_says(capsys):
    """Each program of the page prints what stands below it."""
    page = "explanation/readings.md"
    blocks = re.findall(
        r"```(\w+)\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.S
    )
    names: dict[str, object] = {"__name__": "docs"}
    checked = 0
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, page, "exec"), names)
        else:
            assert capsys.readouterr().out == block
            checked += 1
    assert checked == 4


def test_audit_page_tells_the_truth_about_its_example(tmp_path, monkeypatch, cli):
    """Label as the page says, from the known truth: it settles as printed."""
    import csv

    import polars

    from stopwise.logs import example_log

    monkeypatch.chdir(tmp_path)
    text = (DOCS / "audit.md").read_text(encoding="utf-8")
    table = polars.read_csv(example_log())
    table.drop("truth").write_csv("log.csv")
    command = re.search(r"stopwise (audit log\.csv.*)", text)
    assert command is not None
    for _ in range(20):
        answer = cli(*shlex.split(command[1]))
        if answer.out.startswith("Stop at"):
            break
        with Path("log.to-label.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["label"] = str(table["truth"][int(row["item"])])
        with Path("log.to-label.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    promised = re.search(r"> (Stop at (?:.*\n> )*.*)\n", text)
    assert promised is not None
    assert " ".join(answer.out.split()).startswith(" ".join(promised[1].replace("> ", "").split()))
    form = json.loads(cli("audit", "--example", "--simulate-with", "truth", "--json").out)
    figures = re.search(r"took\s(\d+) labels at the median.*took (\d+)\.", text, flags=re.S)
    assert figures is not None
    assert form["audit_labels"]["median"] == int(figures[1])
    assert form["random_labels"]["median"] == pytest.approx(int(figures[2]), abs=0.5)
    assert form["worth_labelling"] == 321


def test_audit_page_has_the_figures_of_the_benchmark():
    """What docs/audit.md says of real logs is the last line of benchmarks/AUDIT.md."""
    lines = (DOCS.parent / "benchmarks" / "AUDIT.md").read_text().strip().splitlines()
    cells = [cell.strip() for cell in lines[-1].strip("|").split("|")]
    logs, audits, labels, wrong, strict, _, random = cells[1:8]
    guesses = [cell.split(" ")[0] for cell in cells[8:]]
    by_random = [cell.split("(")[1].rstrip(")") for cell in cells[9:]]
    page = " ".join((DOCS / "audit.md").read_text().split())
    shares = [wrong, *guesses, *by_random]
    said = [
        f"In {int(audits):,} simulated audits of {logs} real logs", f"median was {labels} labels",
        f"at random takes {random}.", f"{strict} at the median of the same audits",
        *(share.replace("%", " %") for share in shares),
    ]  # fmt: skip
    assert [text for text in said if text not in page] == []
