"""`stopwise reproduce` from end to end, tiny: every file, its columns, and what it says."""

import csv
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from typer.testing import CliRunner

from stopwise import StopwiseError
from stopwise.cli import build_app
from stopwise.paper.experiments import list_runs
from stopwise.paper.tables import INSTANCE_COLUMNS

FIGURES = ("1a", "1b", "1c", "2a", "2b", "2c")
SIZE = ["--replications", "2", "--horizon", "20"]


def call(*args):
    result = CliRunner().invoke(build_app(), ["reproduce", *args], catch_exceptions=True)
    if isinstance(result.exception, StopwiseError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "new" / "out"
    return folder, call("--out", str(folder), *SIZE, "--jobs", "1")


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_all_files_are_there(full):
    folder, result = full
    for id in FIGURES:
        assert (folder / "figures" / f"{id}.png").read_bytes().startswith(b"\x89PNG")
        assert ElementTree.parse(folder / "figures" / f"{id}.svg").getroot().tag.endswith("svg")
    assert f"The report is {folder / 'report.html'}" in result.output.replace("\n", "")
    assert not list(folder.rglob("*.part"))


def test_regret_csv(full):
    folder, _ = full
    rows = read(folder / "regret.csv")
    assert list(rows[0]) == [
        "figure", "dataset", "instance", "policy", "source", "x", "mean", "ci_low", "ci_high",
        "published",
    ]  # fmt: skip
    runs = list_runs()
    assert len(rows) == sum(10 if run.x is None else 1 for run in runs)
    for row in rows:
        assert float(row["ci_low"]) <= float(row["mean"]) <= float(row["ci_high"])
    # A run of 20 rounds cannot be held against points at 1,000 rounds, nor figure 2c at 10,000.
    assert {row["published"] for row in rows} == {""}


def test_instances_csv(full):
    rows = read(full[0] / "tables" / "instances.csv")
    assert tuple(rows[0]) == INSTANCE_COLUMNS
    assert len(rows) == 30
    one = next(
        row for row in rows
        if (row["dataset"], row["instance"], row["source"]) == ("pima", "3", "calibrated")
    )  # fmt: skip
    assert (one["gamma1"], one["C2"], one["optimal_arm"]) == ("0.3098", "0.309", "1")
    assert (one["weak_dominance"], one["paper_weak_dominance"], one["match"]) == ("true",) * 3


def test_report_is_one_self_contained_page(full):
    text = (full[0] / "report.html").read_text()
    assert not re.search(r"<script|<link|@import", text)
    sources = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert all(source.startswith(("data:", "#")) for source in sources)
    targets = set(re.findall(r"id=\"?([\w-]+)", text))
    assert {source[1:] for source in sources if source.startswith("#")} <= targets
    assert text.count("<figure") == 6
    for phrase in ("a fit to the figure", "does not name the instance", "Doubt about transitivity",
                   "Doubt about small margins", "cannot be held against"):  # fmt: skip
        assert phrase in text


def test_problems_can_be_simulated(full):
    problem = full[0] / "problems" / "pima-3-calibrated.json"
    args = ["simulate", str(problem), "--replications", "2", "--horizon", "20", "--json"]
    result = CliRunner().invoke(build_app(), [*args, "--jobs", "1"])
    again = json.loads(result.stdout)["regret"]["mean"]
    kept = read(full[0] / "regret.csv")
    ours = next(
        row for row in kept
        if (row["figure"], row["instance"], row["source"], row["x"])
        == ("1b", "3", "calibrated", "20")
    )  # fmt: skip
    assert float(ours["mean"]) == pytest.approx(again, rel=1e-6)


def test_only_json_and_any_number_of_jobs_give_the_same_files(full, tmp_path):
    result = call("--out", str(tmp_path), *SIZE, "--only", "2b", "--jobs", "2", "--json")
    said = json.loads(result.stdout)
    assert said["figures"] == ["2b"]
    assert len(said["curves"]) == 6
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"2b.png", "2b.svg"}
    for name in ("2b.png", "2b.svg"):
        assert (tmp_path / "figures" / name).read_bytes() == (
            full[0] / "figures" / name
        ).read_bytes()
    assert (
        "Not run with these settings: figure 1a, 1b, 1c, 2a, 2c"
        in (tmp_path / "report.html").read_text()
    )


def test_refusals(tmp_path):
    for args, message in (
        (["--only", "9z"], "only: got '9z'"),
        (["--horizon", "3"], "horizon: got 3"),
        (["--replications", "0"], "replications: got 0"),
    ):
        with pytest.raises(StopwiseError, match=re.escape(message)):
            call("--out", str(tmp_path / "x"), *args)
    assert not (tmp_path / "x").exists()
