from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stopwise import Costs, Evidence, Problem
from stopwise.cli import COMMANDS, main

SOURCE = str(Path(__file__).parents[2] / "src")


def run_apart(*arguments, path=()):
    """The command in a process of its own, as a shell would run it."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, path), SOURCE])
    return subprocess.run(
        [sys.executable, "-m", "stopwise", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )


def run(*arguments):
    """The same in this process, which is faster; what `main` lets through fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["stopwise", *map(str, arguments)])
        patch.setenv("COLUMNS", "100")
        patch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit) as end:
            main()
    words = list(map(str, arguments))
    return subprocess.CompletedProcess(words, end.value.code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    problem = Problem.from_rates(
        [0.3, 0.2, 0.1],
        [[0, 0.2, 0.25], [0.2, 0, 0.15], [0.25, 0.15, 0]],
        Costs.from_cumulative((0.05, 0.1, 0.5)),
        stages=["cheap", "[b]odd[/b]", "costly [/]"],
    )
    path = tmp_path_factory.mktemp("problems") / "problem.json"
    path.write_text(problem.to_json())
    return path


def assert_refused(done, *parts):
    """One line on standard error, nothing on standard output, status 2."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("stopwise: ")
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_help(command):
    done = run(*command, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "Usage:" in done.stdout
    if not command:
        for name in COMMANDS:
            assert name in done.stdout


def test_no_command_shows_the_help():
    done = run()
    assert done.returncode == 2
    assert "Usage:" in done.stdout


def test_version():
    from stopwise import __version__

    assert run("--version").stdout.strip() == __version__


FIELDS = {
    "policy", "horizon", "replications", "seed", "optimal_stage", "weak_dominance", "regret",
    "stage_share", "curve",
}  # fmt: skip


def test_simulate_json(file):
    arguments = ["--horizon", 200, "--replications", 40, "--seed", 1, "--jobs", 1, "--json"]
    run("simulate", file, "--policy", "uss-ts", *arguments)  # a first run may say that it compiles
    done = run("simulate", file, "--policy", "uss-ts", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or "needs numba" in done.stderr
    form = json.loads(done.stdout)
    assert set(form) == FIELDS | {"stream", "engine"}
    assert set(form["regret"]) == {"mean", "ci_low", "ci_high", "q05", "q50", "q95", "q99"}
    assert all(set(point) == {"round", "mean", "ci_low", "ci_high"} for point in form["curve"])
    assert form["curve"][-1]["round"] == 200
    assert form["curve"][-1]["mean"] == form["regret"]["mean"]
    assert (form["policy"], form["horizon"], form["replications"]) == ("uss-ts", 200, 40)
    assert (form["seed"], form["weak_dominance"]) == (1, True)
    assert len(form["stage_share"]) == 3
    assert sum(form["stage_share"]) == pytest.approx(1)


def test_simulate_table_and_plot(file):
    done = run("simulate", file, "--horizon", 100, "--replications", 3)
    assert done.returncode == 0, done.stderr
    for part in ("95 % interval", "cheap", "[b]odd[/b] (optimal)", "costly [/]", "█", "└"):
        assert part in done.stdout
    done = run("simulate", file, "--horizon", 100, "--replications", 1)
    assert done.returncode == 0, done.stderr
    assert "nan" not in done.stdout


def test_problem(file):
    done = run("problem", file)
    assert done.returncode == 0, done.stderr
    for part in ("[b]odd[/b] (optimal)", "costly [/]", "weak dominance holds", "Lemma 1"):
        assert part in done.stdout
    form = json.loads(run("problem", file, "--json").stdout)
    assert set(form) == {
        "stages", "cumulative_costs", "mistake_cost", "patterns", "labels", "error_rates",
        "disagreements", "expected_total_costs", "gaps", "optimal_stage", "margins", "margin",
        "weak_dominance", "strong_dominance", "stopping_set", "stopping_stage",
    }  # fmt: skip
    assert form["error_rates"] == pytest.approx([0.3, 0.2, 0.1])
    assert form["optimal_stage"] == 1
    assert form["margins"][1] is None


def test_policies():
    done = run("policies", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert {"uss-ts", "uss-ts-literal", "uss-ucb", "hanawal-2", "fixed", "oracle"} <= set(rows)
    assert rows["uss-ucb"]["settings"] == {"alpha": 0.5}
    assert all(row["summary"] for row in rows.values())
    assert "hanawal-2" in run("policies").stdout


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--horizon", "0"], ["horizon: got 0, but need a whole number, 1 or more"]),
        (["--horizon", "-7"], ["horizon: got -7"]),
        (["--horizon", "many"], ["--horizon"]),
        (["--horizon", "1.5"], ["--horizon"]),
        (["--horizon", "1" + "0" * 30], ["horizon: got 1000", "but need at most"]),
        (["--horizon", "1" + "0" * 5000], ["--horizon"]),
        (["--replications", "0"], ["replications: got 0"]),
        (["--replications", "x"], ["--replications"]),
        (["--seed", "-1"], ["seed: got -1"]),
        (["--jobs", "0"], ["jobs: got 0"]),
        (["--stream", "x"], ["stream: got 'x'"]),
        (["--stream", "round-robin"], ["stream: round-robin follows the rows"]),
        (["--grid", "x"], ["grid: got 'x'"]),
        (["--engine", "x"], ["engine: got 'x'"]),
        (["--policy", "x"], ["policy: got 'x', but need 'uss-ts'"]),
        (["--policy", "uss-ucb:alpha=x"], ["alpha: got 'x', but need a number above 0"]),
        (["--policy", "uss-ucb:a=1"], ["unknown setting 'a'; known are 'alpha'"]),
        (["--policy", "fixed:stage=9", "--horizon", "5"], ["stage: got 9"]),
        (["--horizn", "5"], ["No such option", "--help"]),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_refused_options(file, options, parts):
    assert_refused(run("simulate", file, *options), *parts)


@pytest.mark.parametrize("command", ["simulate", "problem"])
def test_refused_files(command, tmp_path):
    assert_refused(run(command, tmp_path / "none.json"), "none.json: there is no such file")
    assert_refused(run(command, tmp_path), "this is a folder, but need a file")
    bad = tmp_path / "bad.json"
    for content, part in [
        (b"\x89PNG\r\n\x1a\n\x00\xff", "this is not text in UTF-8; save it as UTF-8"),
        (b"", "problem: this is not JSON"),
        (b"{", "problem: this is not JSON"),
        (b'{"costs": [0, 1]}', "problem: the field 'patterns' is missing"),
        (b"[" * 100_000, "problem: this JSON is nested too deeply"),
        (b'{"costs": [0, 1' + b"0" * 5000 + b"]}", "a number of too many digits"),
    ]:
        bad.write_bytes(content)
        assert_refused(run(command, bad), part)


def test_refusals_and_answers_of_a_real_process(file, tmp_path):
    assert_refused(run_apart("problem", tmp_path), "this is a folder, but need a file")
    assert_refused(run_apart("simulate", file, "--horizon", "many"), "--horizon")
    assert_refused(run_apart("simulate", file, "--policy", "fixed:stage=x"), "stage: got 'x'")
    done = run_apart("problem", file)
    assert (done.returncode, done.stderr) == (0, "")


def test_refused_commands():
    assert_refused(run("problem"), "Missing argument 'PROBLEM.json'")
    assert_refused(run("nonsense"), "No such command 'nonsense'")
    assert_refused(run("live", "staus", "rounds.jsonl"), "action: got 'staus'", "mean 'status'?")
    assert_refused(run("keys", "lst", "service.toml"), "action: got 'lst'", "mean 'list'?")


PACKAGE = '''
from dataclasses import dataclass
import numpy as np
from stopwise import Policy

@dataclass(frozen=True)
class LastStage(Policy):
    """Always go to the end [/] of the cascade."""
    name = "last-stage"
    patience: int
    def _depth_probabilities(self, evidence, round, costs):
        return np.eye(costs.stage_count)[-1]

class NoPolicy:
    pass
'''


@pytest.fixture
def installed(tmp_path):
    """A folder as an installer would leave it: a module, and its entry points."""
    (tmp_path / "my_policies.py").write_text(PACKAGE)
    info = tmp_path / "my_policies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-policies\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[stopwise.policies]\n"
        "last-stage = my_policies:LastStage\n"
        "other-name = my_policies:LastStage\n"
        "no-policy = my_policies:NoPolicy\n"
        "no-module = nowhere:Nothing\n"
    )
    return tmp_path


def test_entry_points(installed, file):
    done = run_apart("policies", path=[installed])
    assert done.returncode == 0, done.stderr
    assert "last-stage" in done.stdout
    assert "uss-ts" in done.stdout
    rows = {
        row["name"]: row
        for row in json.loads(run_apart("policies", "--json", path=[installed]).stdout)
    }
    assert rows["last-stage"]["summary"] == "Always go to the end [/] of the cascade."
    assert "does not load" in rows["no-module"]["summary"]

    def simulate(policy):
        options = ["--horizon", 10, "--replications", 2, "--policy", policy, "--json"]
        return run_apart("simulate", file, *options, path=[installed])

    done = simulate("last-stage:patience=3")
    assert done.returncode == 0, done.stderr
    form = json.loads(done.stdout)
    assert form["policy"] == "last-stage:patience=3"
    assert form["stage_share"] == [0, 0, 1]
    assert_refused(simulate("last-stage"), "the setting 'patience' must be given")
    assert_refused(simulate("other-name"), "names itself 'last-stage'")
    assert_refused(simulate("no-policy"), "a subclass of stopwise.Policy")
    assert_refused(simulate("no-module"), "does not load (ModuleNotFoundError")


def test_names_and_labels_are_no_markup(tmp_path):
    """A label such as [/b] is closed nowhere, and :bell: is no picture: both are a user's data."""
    log = tmp_path / "log.csv"
    rows = "".join(f"{label},{label},[/b]\n" for label in ("[b]x", ":bell:") * 30)
    log.write_text(f"[i]a,:bell:,kind\n{rows}")
    given = [log, "--stages", "[i]a,:bell:", "--costs", "1,2", "--mistake-cost", "9"]
    for more in (["--segment", "kind", "--per-item"], ["--agree", "0.9"]):
        done = run("analyze", *given, *more)
        assert done.returncode == 0, done.stderr
        assert "[i]a" in done.stdout
        assert ":bell:" in done.stdout
    assert "[i]a" in run("replay", *given, "--replications", "1").stdout


def test_a_refusal_shows_escape_codes_and_does_not_run_them(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("\x1b[1ma,\x1b[1ma:cost,b,b:cost\nx,1,x,1\n")
    done = run("analyze", log, "--stages", "\x1b[1ma,b")
    assert done.returncode == 2
    assert "\\x1b[1ma" in done.stderr
    assert "\x1b" not in done.stderr


def test_what_a_promise_does_not_give_is_refused(tmp_path):
    for more in (["--per-item"], ["--report", tmp_path / "page.html"]):
        done = run("analyze", "--example", "--agree", "0.9", *more)
        assert done.returncode == 2
        assert "agree" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_counts_have_no_items_to_decide_on(tmp_path):
    evidence = tmp_path / "evidence.json"
    evidence.write_text(Evidence.from_counts([[0, 9], [0, 0]], [[0, 1], [0, 0]]).to_json())
    done = run("analyze", evidence, "--costs", "1,2", "--per-item")
    assert done.returncode == 2
    assert "per item" in done.stderr


def test_few_row_groups_are_read_ahead_unless_the_user_says_otherwise(monkeypatch, capsys):
    name = "POLARS_ROW_GROUP_PREFETCH_SIZE"
    monkeypatch.setattr(sys, "argv", ["stopwise", "--version"])
    for given, kept in ((None, "1"), ("8", "8")):
        monkeypatch.delenv(name, raising=False)
        if given is not None:
            monkeypatch.setenv(name, given)
        with pytest.raises(SystemExit):
            main()
        assert os.environ[name] == kept
