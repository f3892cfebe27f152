"""Keeping and resuming: nothing is run twice, nothing is mixed up, nothing half-written is read."""

import json
import signal
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stopwise.simulation.run
from stopwise import StopwiseError
from stopwise.paper.experiments import list_runs
from stopwise.paper.reproduce import reproduce
from stopwise.paper.running import (
    PaperSettings,
    load_result,
    load_results,
    result_file,
    run_all,
)

TINY = PaperSettings(horizon=20, replications=2, seed=3)


def files_in(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def counted(monkeypatch):
    """Count calls of `simulate`; `counted.stop_at` interrupts that call, as Ctrl-C would."""
    real = stopwise.simulation.run.simulate

    class Counted:
        calls = 0
        stop_at = None

        def __call__(self, *args, **kwargs):
            self.calls += 1
            if self.calls == self.stop_at:
                raise KeyboardInterrupt
            return real(*args, **kwargs)

    spy = Counted()
    monkeypatch.setattr(stopwise.simulation.run, "simulate", spy)
    return spy


def test_an_interrupted_run_resumes_and_gives_identical_files(tmp_path, counted):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    reproduce(whole, TINY, only=["2a"])
    assert counted.calls == 6
    counted.calls, counted.stop_at = 0, 4
    with pytest.raises(KeyboardInterrupt):
        reproduce(broken, TINY, only=["2a"])
    assert len(list((broken / "runs").iterdir())) == 3
    counted.calls, counted.stop_at = 0, None
    reproduce(broken, TINY, only=["2a"])
    assert counted.calls == 3
    assert files_in(broken) == files_in(whole)
    counted.calls = 0
    reproduce(broken, TINY, only=["2a"])
    assert counted.calls == 0
    assert files_in(broken) == files_in(whole)


KILLED = """
import os, signal, sys
import stopwise.simulation.run as run
from pathlib import Path
from stopwise.paper.reproduce import reproduce
from stopwise.paper.running import PaperSettings
real, calls = run.simulate, 0
def simulate(*args, **kwargs):
    global calls
    calls += 1
    if calls == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
run.simulate = simulate
reproduce(Path(sys.argv[1]), PaperSettings(horizon=20, replications=2, seed=3), only=["2b"])
"""


def test_a_killed_process_loses_only_the_run_it_was_in(tmp_path, counted):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    done = subprocess.run([sys.executable, "-c", KILLED, str(killed)], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert len(list((killed / "runs").iterdir())) == 2
    reproduce(killed, TINY, only=["2b"])
    assert counted.calls == 4
    reproduce(whole, TINY, only=["2b"])
    assert files_in(killed) == files_in(whole)


def test_equal_runs_of_two_figures_are_run_once(tmp_path, counted):
    runs = [run for run in list_runs(["1b", "2a"]) if run.policy == "uss-ts"]
    run_all(runs, tmp_path, TINY)
    assert (len(runs), counted.calls) == (12, 10)
    assert len(load_results(tmp_path, runs, TINY)) == 12


def test_results_of_other_settings_are_not_mixed_up(tmp_path, counted):
    run = list_runs(["1a"])[0]
    variants = [
        TINY,
        PaperSettings(horizon=30, replications=2, seed=3),
        PaperSettings(horizon=20, replications=3, seed=3),
        PaperSettings(horizon=20, replications=2, seed=4),
    ]
    for settings_ in variants:
        run_all([run], tmp_path, settings_)
    assert counted.calls == 4
    assert len({result_file(tmp_path, run, settings_) for settings_ in variants}) == 4
    # A file under the wrong name is not believed.
    wrong, right = (result_file(tmp_path, run, settings_) for settings_ in variants[:2])
    right.write_bytes(wrong.read_bytes())
    assert load_result(tmp_path, run, variants[1]) is None
    assert load_result(tmp_path, run, TINY) is not None


def test_a_smaller_call_keeps_what_was_known_and_other_settings_clear_it(tmp_path):
    reproduce(tmp_path, TINY, only=["2a", "1b"])
    done = reproduce(tmp_path, TINY, only=["1b"])
    assert done.figures == ("1b", "2a")
    other = PaperSettings(horizon=30, replications=2)
    assert reproduce(tmp_path, other, only=["1b"]).figures == ("1b",)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"1b.svg", "1b.png"}
    assert "2a" not in (tmp_path / "regret.csv").read_text()


# The folder is made once for all examples; each example overwrites the one file.
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=60,
)
@given(data=st.data())
def test_a_damaged_file_is_run_again_and_never_breaks(tmp_path, data):
    run = list_runs(["1a"])[0]
    path = result_file(tmp_path, run, TINY)
    if not path.exists():
        run_all([run], tmp_path, TINY)
        path.with_suffix(".good").write_bytes(path.read_bytes())
    good = path.with_suffix(".good").read_bytes()
    kind = data.draw(st.sampled_from(["cut", "text", "json"]))
    if kind == "cut":
        damaged = good[: data.draw(st.integers(0, len(good) - 2))]
    elif kind == "text":
        damaged = data.draw(st.binary(max_size=50))
    else:
        form = json.loads(good)
        key = data.draw(st.sampled_from(["settings", "engine", "curve"]))
        junk = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
        form[key] = data.draw(junk)
        damaged = json.dumps(form).encode()
        if key == "engine":
            return
    path.write_bytes(damaged)
    assert load_result(tmp_path, run, TINY) is None
    path.write_bytes(good)
    assert load_result(tmp_path, run, TINY) is not None


def test_progress_counts_replications_over_all_runs(tmp_path):
    seen = []
    runs = list_runs(["2a"])[:2]
    run_all(runs, tmp_path, TINY, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 4)
    assert seen[-1] == (4, 4)
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("given_", "field"),
    [({"horizon": 9}, "horizon"), ({"replications": 1}, "replications"), ({"seed": -1}, "seed")],
)
def test_settings_are_checked(given_, field):
    with pytest.raises(StopwiseError, match=f"^{field}: got"):
        PaperSettings(**given_)


def test_an_unwritable_place_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StopwiseError, match="this is a file, but need a folder"):
        reproduce(tmp_path / "file", TINY, only=["2a"])


def test_a_missing_matplotlib_is_said_before_anything_is_run(tmp_path, counted, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(StopwiseError, match="needs matplotlib, which is not installed"):
        reproduce(tmp_path / "out", TINY, only=["2a"])
    assert counted.calls == 0
