from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from stopwise.checks import StopwiseError
from stopwise.cli import build_app
from stopwise.live import Cascade, Stage
from stopwise.logs.items.fitting import fit
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.replaying.replay import replay
from stopwise.logs.settings import LogSettings
from stopwise.policies.per_item.any_rule import read_rule
from stopwise.policies.per_item.logistic.rule import LogisticRule

GIVEN = {"stages": ["s", "l"], "costs": [1, 2], "mistake_cost": 10}


def log_with_features(number: int = 2000) -> pl.DataFrame:
    """Half of the items are hard, and only features tell which."""
    rng = np.random.default_rng(5)
    hard = rng.random(number) < 0.5
    right = rng.integers(0, 2, number)
    small = np.where(hard & (rng.random(number) < 0.6), 1 - right, right)
    vector = rng.normal(size=(number, 3)) + hard[:, None] * [4.0, 0.0, 0.0]
    return pl.DataFrame(
        {"s": small, "l": right, "kind": np.where(hard, "hard", "easy"), "vector": vector.tolist()}
    ).with_columns(length=vector[:, 0] * 10)


@pytest.mark.parametrize("features", ["kind", "length", "vector", "kind,length,vector"])
def test_features_of_a_log_decide(features: str) -> None:
    frame = log_with_features()
    rule = fit(frame, policy="per-item-logistic", features=features, **GIVEN)
    assert isinstance(rule, LogisticRule)
    rows = read_rows(frame, LogSettings.of(**GIVEN, features=features)).observations()
    depths = rule.depths(rows)
    hard = (frame["kind"] == "hard").to_numpy()
    assert depths[hard].mean() > 0.9
    assert depths[~hard].mean() < 0.1


def test_replay_learns_from_features_as_it_goes() -> None:
    told = replay(
        log_with_features(), "per-item-logistic", features="vector", replications=2, **GIVEN
    )
    blind = replay(log_with_features(), "per-item-logistic", replications=2, **GIVEN)
    assert told.outcomes[0].differs < 0.6 * blind.outcomes[0].differs


def test_the_command_line_fits_explains_and_replays(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log_with_features().drop("vector").write_csv(log)
    options = [str(log), "--stages", "s,l", "--costs", "1,2", "--mistake-cost", "10"]
    options += ["--features", "kind,length"]
    out = tmp_path / "rule.json"
    run = CliRunner().invoke
    made = run(build_app(), ["fit", *options, "--policy", "per-item-logistic", "--out", str(out)])
    assert made.exit_code == 0, made.output
    assert "2 stages, 2,000 items" in made.output
    form = json.loads(out.read_text())
    assert form["rule"] == "per-item-logistic"
    assert any("kind = hard" in line for line in form["reads"])
    assert isinstance(read_rule(out), LogisticRule)
    told = run(build_app(), ["explain", str(out)])
    assert told.exit_code == 0
    assert "rather go on when kind = hard (+" in told.output
    assert "the rather go on the larger length (+" in told.output
    as_json = json.loads(run(build_app(), ["explain", str(out), "--json"]).output)
    assert as_json["fitted_by"].startswith("scikit-learn")
    assert as_json["weights"][0]["stage"] == 0
    again = run(
        build_app(), ["replay", *options, "--policy", "per-item-logistic", "--replications", "1"]
    )
    assert again.exit_code == 0, again.output
    odd = run(build_app(), ["fit", *options, "--policy", "uss-ts", "--out", str(out)])
    assert odd.exit_code != 0


def test_what_a_table_cannot_hold_names_the_rule_that_can() -> None:
    frame = log_with_features(200)
    with pytest.raises(StopwiseError, match=r"feature vector.*per-item-logistic takes vectors"):
        fit(frame, features="vector", **GIVEN)
    wide = frame.with_columns(a=1.5 * frame["length"], b=frame["s"], c=frame["l"])
    with pytest.raises(StopwiseError, match=r"at most 3.*per-item-logistic takes any number"):
        fit(wide, features="length,a,b,c", **GIVEN)
    fit(wide, features="length,a,b,c", policy="per-item-logistic", **GIVEN)
    ragged = pl.DataFrame({"s": ["a", "b"], "l": ["a", "a"], "v": [[1.0], [1.0, 2.0]]})
    with pytest.raises(StopwiseError, match=r"features v.*same length"):
        read_rows(ragged, LogSettings.of(**GIVEN, features="v"))
    with pytest.raises(StopwiseError, match="policy"):
        fit(frame, policy="uss-ts", **GIVEN)


def test_labels_choose_the_reference_of_regressions() -> None:
    rng = np.random.default_rng(2)
    right = rng.integers(0, 3, 3000)
    noisy = lambda share: np.where(rng.random(3000) < share, (right + 1) % 3, right)  # noqa: E731
    frame = pl.DataFrame({"a": noisy(0.3), "b": noisy(0.02), "c": noisy(0.4), "truth": right})
    given = {"stages": ["a", "b", "c"], "costs": [1, 1, 1], "mistake_cost": 30, "truth": "truth"}
    rows = read_rows(frame, LogSettings.of(**given)).observations()
    told = fit(frame, policy="per-item-logistic", labels=60, **given)
    last = fit(frame, policy="per-item-logistic", reference="last", **given)
    assert told.depths(rows).mean() < last.depths(rows).mean() - 0.3


def test_a_live_cascade_refuses_it_by_name() -> None:
    with pytest.raises(StopwiseError, match="per-item-logistic"):
        Cascade([Stage("s", str, 1), Stage("l", str, 2)], policy="per-item-logistic")
