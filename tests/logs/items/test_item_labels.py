"""Labels for a rule that decides per item: `audit` picks them, `fit` uses them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

from stopwise.checks import StopwiseError
from stopwise.cli import build_app
from stopwise.logs.items.fitting import fit, fit_with_labels
from stopwise.logs.items.labelling import item_audit
from stopwise.policies.per_item.rule import Rule

SETTINGS: dict[str, Any] = {
    "stages": ["small", "middle", "large"],
    "costs": [1, 5, 20],
    "mistake_cost": 300,
}
OPTIONS = ["--stages", "small,middle,large", "--costs", "1,5,20", "--mistake-cost", "300"]


def best_in_the_middle(rows: int = 3000) -> polars.DataFrame:
    """The last stage is no better than the first, and agreement alone hardly tells."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, rows)
    columns = {}
    for name, accuracy in zip(SETTINGS["stages"], (0.78, 0.95, 0.78), strict=True):
        wrong = rng.random(rows) > accuracy
        columns[name] = np.where(wrong, 1 - truth, truth)
    return polars.DataFrame({"item": [f"i{at}" for at in range(rows)], **columns, "truth": truth})


def written(folder: Path) -> Path:
    path = folder / "log.csv"
    best_in_the_middle().write_csv(path)
    return path


def fill_in(path: Path) -> None:
    truth = dict(best_in_the_middle().select("item", "truth").iter_rows())
    rows = list(csv.DictReader(path.read_text().splitlines()))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "label": truth[row["item"]]} for row in rows)


def true_total(rule: Rule, frame: polars.DataFrame) -> float:
    codes = frame.select(SETTINGS["stages"]).to_numpy()
    depths = rule.depths_of(_keys(rule, codes))
    wrong = codes[np.arange(len(codes)), depths] != frame["truth"].to_numpy()
    return float(np.asarray(rule.costs.cumulative)[depths].mean() + 300 * wrong.mean())


def _keys(rule: Rule, codes: np.ndarray) -> np.ndarray:
    from stopwise.situations.keys import situations
    from stopwise.situations.observations import Observations

    return situations(Observations(("0", "1"), codes), rule.counts.binning)


def test_only_items_whose_outputs_differ_are_picked_and_in_a_fixed_order() -> None:
    frame = best_in_the_middle()
    begun = item_audit(frame, item="item", **SETTINGS)
    picked = frame.filter(polars.col("item").is_in(begun.to_label))
    assert len(picked) == 30
    assert (picked.select(SETTINGS["stages"]).max_horizontal() > 0).all()
    assert (picked.select(SETTINGS["stages"]).min_horizontal() < 1).all()
    assert item_audit(frame, item="item", **SETTINGS).to_label == begun.to_label
    assert item_audit(frame, item="item", seed=1, **SETTINGS).to_label != begun.to_label


def test_thirty_labels_find_the_stage_to_believe_and_really_save() -> None:
    frame = best_in_the_middle()
    truth = dict(frame.select("item", "truth").iter_rows())
    labels = {item: truth[item] for item in item_audit(frame, item="item", **SETTINGS).to_label}
    found = item_audit(frame, labels, item="item", **SETTINGS)
    assert found.enough
    assert not found.next_items
    assert found.bought.believed["large"] < 0.01
    assert found.bought.gain > 0.2
    assert found.bought.trust is not None
    assert found.bought.trust > 0.7
    without = fit(frame, **SETTINGS)
    with_labels = fit(frame, truth="truth", labels=30, **SETTINGS)
    assert true_total(with_labels, frame) < 0.8 * true_total(without, frame)


def test_labels_go_from_audit_to_fit_by_file(tmp_path: Path) -> None:
    log = written(tmp_path)
    run = CliRunner().invoke(
        build_app(), ["audit", str(log), *OPTIONS, "--item", "item", "--per-item"]
    )
    assert run.exit_code == 0, run.output
    assert "30 items" in run.output
    filled = tmp_path / "log.to-label.csv"
    fill_in(filled)
    from_csv, _ = fit_with_labels(str(log), labels=filled, item="item", **SETTINGS)
    run = CliRunner().invoke(
        build_app(), ["audit", str(log), *OPTIONS, "--item", "item", "--per-item", "--json"]
    )
    said = json.loads(run.output)
    assert said["enough"]
    assert said["bought"]["labels"] == 30
    assert said["bought"]["after"] < said["bought"]["before"]
    kept = tmp_path / "log.audit.json"
    assert said["state_file"] == str(kept)
    from_state, bought = fit_with_labels(str(log), labels=kept, item="item", **SETTINGS)
    assert isinstance(from_csv, Rule)
    assert isinstance(from_state, Rule)
    assert from_state.counts.labelled == from_csv.counts.labelled
    assert sum(from_state.counts.labelled.values()) == 30
    assert bought is not None
    assert bought.after == pytest.approx(said["bought"]["after"])
    run = CliRunner().invoke(
        build_app(),
        ["fit", str(log), *OPTIONS, "--item", "item", "--labels", str(kept), "--out",
         str(tmp_path / "rule.json")],
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "30 labels: " in " ".join(run.output.split())


def test_labels_serve_both_audits(tmp_path: Path) -> None:
    """What was labelled for one is kept in the same state, and counts for the other."""
    log = written(tmp_path)
    both = ["audit", str(log), *OPTIONS, "--item", "item", "--json"]
    CliRunner().invoke(build_app(), [*both, "--per-item"])
    fill_in(tmp_path / "log.to-label.csv")
    said = json.loads(CliRunner().invoke(build_app(), both).output)
    assert said["labels"] == 30


def test_where_stages_are_called_alone() -> None:
    frame = best_in_the_middle()
    truth = dict(frame.select("item", "truth").iter_rows())
    begun = item_audit(frame, item="item", calls="alone", **SETTINGS)
    labels = {item: truth[item] for item in begun.to_label}
    found = item_audit(frame, labels, item="item", calls="alone", **SETTINGS)
    assert found.bought.gain > 0.2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("no.csv", "item,label\nnobody,1\n", "an item of the log"),
        ("no.csv", "a,b\n1,2\n", "columns 'item' and 'label'"),
        ("no.json", "{}", "an object from item to label"),
        ("no.json", '{"labels": {"nobody": "1"}}', "an item of the log"),
    ],
)
def test_label_files_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(StopwiseError, match=said):
        fit(best_in_the_middle(200), labels=tmp_path / name, item="item", **SETTINGS)


def test_per_item_and_a_simulation_are_refused_together(tmp_path: Path) -> None:
    log = written(tmp_path)
    run = CliRunner().invoke(
        build_app(), ["audit", str(log), *OPTIONS, "--per-item", "--simulate-with", "truth"]
    )
    assert run.exit_code != 0


def test_labels_are_not_asked_where_the_reference_is_given() -> None:
    frame = best_in_the_middle()
    _, bought = fit_with_labels(frame, reference="last", truth="truth", labels=30, **SETTINGS)
    assert bought is None
