"""`stopwise analyze --agree`: both ways of calling, JSON, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from stopwise.cli import build_app

polars = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    random = np.random.default_rng(1)
    score = random.normal(size=1500)
    columns = {}
    for name, noise in (("small", 0.9), ("middle", 0.5), ("large", 0.2)):
        heard = score + noise * random.normal(size=1500)
        columns[name] = (heard > 0).astype(int)
        columns[f"{name}:confidence"] = 1 - np.exp(-np.abs(heard))
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    polars.DataFrame(columns).write_csv(path)
    return path


def run(log, *more):
    options = ["--stages", "small,middle,large", "--costs", "1,4,20", "--level", "0.9", *more]
    return CliRunner().invoke(build_app(), ["analyze", str(log), *options])


def test_both_ways_are_shown_where_none_is_given(log):
    done = run(log, "--agree", "0.9")
    assert done.exit_code == 0, done.output
    assert "If a stage needs those before it" in done.stdout
    assert "If each stage can be called alone" in done.stdout
    assert "the promise was kept" in " ".join(done.stdout.split())


@pytest.mark.parametrize("calls", ["cascade", "alone"])
def test_json_of_one_way(log, calls):
    done = run(log, "--agree", "0.9", "--calls", calls, "--json", "--seed", "3")
    found = json.loads(done.stdout)
    assert (found["calls"], found["agree"], found["level"], found["seed"]) == (calls, 0.9, 0.9, 3)
    assert found["cost_of_last"] == {"cascade": 25, "alone": 20}[calls]
    assert found["cost_avoided"] == pytest.approx(1 - found["cost"] / found["cost_of_last"])
    assert found["last_calls_avoided"] > 0.2
    assert found["agreement"] >= 0.9


def test_json_of_both_ways_has_both(log):
    assert set(json.loads(run(log, "--agree", "0.9", "--json").stdout)) == {"cascade", "alone"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--agree", "1.2"), "agree: got 1.2"),
        (("--agree", "0.9", "--calls", "both"), "calls"),
        (("--calls", "both"), "calls: got"),
    ],
)
def test_what_is_refused(log, options, message):
    done = run(log, *options)
    assert done.exit_code != 0
    assert message in str(done.exception) + done.output
