"""Sweeps: what they ask for, what they write, and that nothing is lost or done twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl
import pytest
from typer.testing import CliRunner

from instances import instance
from stopwise import StopwiseError, simulate
from stopwise.cli import build_app
from stopwise.simulation.sweep import cells_done, read_sweep, run_sweep
from stopwise.simulation.sweep_grid import Sweep

ROOT = Path(__file__).parents[2]

GRID = """
problems = ["problems/*.json"]
policies = ["uss-ts", "uss-ucb:alpha=0.51"]
horizons = [50, 200]
replications = 70
seeds = [1, 2]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "problems").mkdir()
    for name in ("bsc-1", "pima-2"):
        (tmp_path / "problems" / f"{name}.json").write_text(instance(name).to_json())
    (tmp_path / "grid.toml").write_text(GRID)
    return tmp_path


def read(folder: Path, text: str = GRID) -> Sweep:
    return read_sweep(text, folder)


def run(arguments: Sequence[object]) -> str:
    result = CliRunner().invoke(
        build_app(), [str(argument) for argument in arguments], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_rows_are_those_of_simulate(folder: Path) -> None:
    path = run_sweep(read(folder), folder / "out").path
    table = pl.read_parquet(path)
    assert len(table) == 2 * 2 * 2 * 2
    assert table["problem"].unique(maintain_order=True).to_list() == [
        "problems/bsc-1.json", "problems/pima-2.json",
    ]  # fmt: skip
    row = table.row(at := 11, named=True)
    assert (row["policy"], row["horizon"], row["seed"]) == ("uss-ts", 200, 2)
    result = simulate(
        instance("pima-2"), "uss-ts", horizon=200, replications=70, seed=2, grid=[200]
    )
    assert at == 11
    assert row["regret_mean"] == result.regret.mean
    assert row["regret_ci_low"] == result.regret.ci_low
    assert row["regret_q99"] == result.regret.q99
    assert row["stage_share"] == list(result.stage_share)
    assert row["optimal_stage"] == 1


def test_resumes_without_doing_anything_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import stopwise.simulation.sweep as module

    calls: list[Any] = []
    real = vars(module)["simulate"]

    def counted(*arguments: object, **settings: object) -> object:
        if len(calls) == 5:
            raise KeyboardInterrupt
        calls.append((arguments[1], settings["horizon"], settings["seed"]))
        return real(*arguments, **settings)

    monkeypatch.setattr(module, "simulate", counted)
    sweep = read(folder)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, folder / "out")
    assert cells_done(sweep, folder / "out") == 5
    (folder / "out" / "cells" / "000005.parquet.part").write_bytes(b"half")
    monkeypatch.setattr(module, "simulate", real)
    seen = []
    run_sweep(sweep, folder / "out", finished=lambda cell, done, total: seen.append(done))
    assert seen == list(range(6, 17))
    assert not list((folder / "out").glob("**/*.part"))
    assert len(pl.read_parquet(folder / "out" / "sweep.parquet")) == 16
    again: list[int] = []
    run_sweep(sweep, folder / "out", finished=lambda cell, done, total: again.append(done))
    assert again == []


def test_killed_in_the_middle(folder: Path) -> None:
    """kill -9 a real process; the rest equals a sweep that was never stopped."""
    (folder / "grid.toml").write_text(
        GRID.replace("replications = 70", "replications = 24").replace(
            "horizons = [50, 200]", 'horizons = [30, 100]\nengine = "reference"'
        )
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "stopwise", "sweep", "grid.toml", "--out", "out", "--jobs", "1"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    cells = folder / "out" / "cells"
    for _ in range(3000):
        if len(list(cells.glob("*.parquet"))) >= 2:
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    sweep = read(folder, (folder / "grid.toml").read_text())
    done = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.parquet")}
    assert 2 <= len(done) < 16
    printed = json.loads(run(["sweep", folder / "grid.toml", "--out", folder / "out", "--json"]))
    assert (printed["cells"], printed["kept"]) == (16, len(done))
    for name, written in done.items():
        assert (cells / name).stat().st_mtime_ns == written
    run_sweep(sweep, folder / "whole")
    drop = ["seconds"]
    assert (
        pl.read_parquet(folder / "out" / "sweep.parquet")
        .drop(drop)
        .equals(pl.read_parquet(folder / "whole" / "sweep.parquet").drop(drop))
    )


def test_refuses_a_folder_of_another_grid(folder: Path) -> None:
    run_sweep(read(folder), folder / "out")
    other = read(folder, GRID.replace("[1, 2]", "[1]"))
    with pytest.raises(StopwiseError, match="holds the results of another grid"):
        run_sweep(other, folder / "out")
    problem = instance("bsc-3").to_json()
    (folder / "problems" / "bsc-1.json").write_text(problem)
    with pytest.raises(StopwiseError, match="holds the results of another grid"):
        run_sweep(read(folder), folder / "out")
    with pytest.raises(StopwiseError, match="not empty and holds no sweep"):
        run_sweep(read(folder), folder / "problems")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seeds", "seed"), "unknown field 'seed'; did you mean 'seeds'?"),
        (("uss-ts", "uss-tsx"), "policy: got 'uss-tsx'"),
        (("[50, 200]", "[50, 0]"), r"horizons\[1\]: got 0, but need a whole number"),
        (("[50, 200]", "[50, 50]"), "horizons: got 50, but need each only once"),
        (("[50, 200]", "50"), "horizons: got 50, but need a list"),
        (("*.json", "none.json"), "'problems/none.json' matches no file"),
        (("replications = 70", "replications = 1.5"), "replications: got 1.5"),
        (("replications = 70", 'stream = "round"'), "bsc-1.json: stream: got 'round'"),
        (("replications = 70", 'engine = "quick"'), "engine: got 'quick'"),
        (("replications = 70", "replications = "), "this is not TOML"),
        (("problems/*", "paper/x"), "matches no file"),
    ],
)
def test_grid_errors(folder: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(StopwiseError, match=message):
        read(folder, GRID.replace(*change))


@pytest.mark.numba
def test_example_of_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", page, flags=re.DOTALL))
    monkeypatch.chdir(folder)
    (folder / "grid.toml").write_text(blocks["toml"])
    command = blocks["console"].split()
    assert command[0] == "stopwise"
    shown = run(command[1:])
    assert "16 cells (0 were done before) in results/sweep.parquet" in shown
    space: dict[str, Any] = {}
    of_files, of_python = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(of_files, space)
    assert len(space["best"]) == 4 * 2
    documented = re.findall(r"^\| (`.*?`) \|", page, flags=re.MULTILINE)
    names = [name for cell in documented for name in re.findall(r"`(\w+)`", cell)]
    assert set(names) == set(space["table"].columns)
    mpl.use("agg")
    exec(of_python, space)
    assert space["result"].to_frame().columns == space["table"].columns
    assert len(space["result"].to_frame()) == 2 * 2 * 2


PROBLEMS = {"bsc 1": instance("bsc-1")}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"problems": {}}, "problems: got {}, but need problems by name"),
        ({"problems": {"a": "bsc-1"}}, r"problems\['a'\]: got 'bsc-1', but need a Problem"),
        ({"policies": "uss-ts"}, "policies: got 'uss-ts', but need a list of texts"),
        ({"policies": ["uss-tsx"]}, "policy: got 'uss-tsx'"),
        ({"policies": []}, r"policies: got \[\], but need a list of texts"),
        ({"horizons": 100}, "horizons: got 100, but need a list of whole numbers"),
        ({"horizons": [0]}, r"horizons\[0\]: got 0, but need a whole number, 1 or more"),
        ({"seeds": [1, 1]}, "seeds: got 1, but need each only once"),
        ({"replications": 0}, "replications: got 0"),
        ({"stream": "round"}, "bsc 1: stream: got 'round'"),
        ({"engine": "quick"}, "engine: got 'quick'"),
        ({"seed": [1]}, "unknown setting 'seed'; did you mean 'seeds'"),
    ],
)
def test_a_sweep_made_in_python_is_checked_like_a_file(given, message):
    whole = {"problems": PROBLEMS, "policies": ["uss-ts"], "horizons": [50]}
    with pytest.raises(StopwiseError, match=message):
        Sweep(**{**whole, **given})


def test_a_sweep_made_in_python_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "bsc 1").write_text(PROBLEMS["bsc 1"].to_json())
    lines = ['problems = ["bsc 1"]', 'policies = ["uss-ts"]', "horizons = [50, 20]"]
    made = Sweep(PROBLEMS, ("uss-ts",), (50, 20))
    assert read_sweep("\n".join(lines), str(tmp_path)).form() == made.form()
    made = Sweep(PROBLEMS, ["fixed"], [20], replications=2)
    assert len(run_sweep(made, str(tmp_path / "out")).to_frame()) == 1
    with pytest.raises(StopwiseError, match=r"grid: got 'grid\.toml', but need a Sweep"):
        run_sweep("grid.toml", tmp_path / "other")


def test_a_grid_is_read_from_its_file_by_name(tmp_path: Path) -> None:
    (tmp_path / "bsc 1").write_text(PROBLEMS["bsc 1"].to_json())
    text = 'problems = ["bsc 1"]\npolicies = ["uss-ts"]\nhorizons = [50]'
    (tmp_path / "grid.toml").write_text(text)
    read = read_sweep(text, tmp_path)
    assert read_sweep(tmp_path / "grid.toml").form() == read.form()
    assert read_sweep(str(tmp_path / "grid.toml")).form() == read.form()
    with pytest.raises(StopwiseError, match=r"^grid nowhere\.toml: there is no such file$"):
        read_sweep("nowhere.toml")
    for nothing in ("", " \n"):
        with pytest.raises(StopwiseError, match="the field 'problems' is missing"):
            read_sweep(nothing)
    with pytest.raises(StopwiseError, match=r"^grid: got 3, but need TOML as text"):
        read_sweep(3)


def test_a_result_shows_itself(folder: Path) -> None:
    mpl.use("agg")
    result = run_sweep(read(folder), folder / "out")
    table = result.to_frame()
    assert len(table) == 16
    html = result._repr_html_()
    assert "Sweep of 16 simulations" in html
    assert html.count("<tr>") == 17
    name = table["problem"][0]
    ax = result.plot(name)
    shown = {line.get_label() for line in ax.get_lines()}
    assert shown == set(table["policy"].unique())
    assert ax.get_title() == name
    with pytest.raises(StopwiseError, match="problem: got None, but need '"):
        result.plot()
