"""What an audit says: what "settled" rests on, which labels it read how, what it began with."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import stopwise as sw
from stopwise.checks import StopwiseError
from stopwise.logs import plan_audit
from stopwise.logs.auditing.audit import assess, label_order
from stopwise.logs.auditing.files import advance, audit_dict, load_state

STAGES = ["small", "medium", "large"]
GIVEN = {"stages": STAGES, "costs": [0.01, 0.1, 0.3], "mistake_cost": 1}


def log(rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, rows)
    columns = {"item": [f"i{at}" for at in range(rows)], "truth": [f"c{t}" for t in truth]}
    for stage, error in zip(STAGES, (0.45, 0.1, 0.08), strict=True):
        wrong = (truth + rng.integers(1, 3, rows)) % 3
        outputs = np.where(rng.random(rows) < error, wrong, truth)
        columns[stage] = [f"c{output}" for output in outputs]
    return pl.DataFrame(columns)


@pytest.mark.parametrize("strict", [False, True])
def test_settled_says_what_it_rests_on(strict):
    """With `strict` the guarantee holds for any log, and no interval contains the price."""
    plan = plan_audit(log(), strict=strict, truth="truth", **GIVEN)
    order = label_order(plan, 1)
    worth = order[plan.worth_labelling(plan.candidates)[order]]
    for number in range(10, len(worth), 10):
        truth = {int(item): int(plan.rows.truth[item]) for item in worth[:number]}
        found = assess(plan, order, truth)
        if found.settled:
            break
    assert found.settled
    assert found.guaranteed == strict
    form = audit_dict(found, plan, __file__)
    assert form["settled_by"] == ("guarantee" if strict else "posterior")
    for pair in found.pairs:
        if strict and pair.finding != "open":
            assert pair.guaranteed
        if pair.guaranteed:
            # The intervals shown are two-sided, the test one-sided: its own side is at the price.
            assert pair.low > pair.threshold - 0.02 or pair.high < pair.threshold + 0.02


def test_the_command_tells_a_posterior_from_a_guarantee(tmp_path, cli):
    frame = log()
    path = tmp_path / "log.csv"
    frame.write_csv(path)
    truth = dict(zip(frame["item"], frame["truth"], strict=True))
    options = ["audit", path, "--stages", ",".join(STAGES), "--costs", "0.01,0.1,0.3",
               "--mistake-cost", "1"]  # fmt: skip
    words = {(): "posterior probability of 99 % or more", ("--strict",): "that holds for any log"}
    for extra, expected in words.items():
        labels = tmp_path / f"labels{len(extra)}.csv"
        files = ["--labels", labels, "--state", tmp_path / f"state{len(extra)}.json", *extra]
        for _ in range(60):
            said = " ".join(cli(*options, *files).out.split())
            if "Stop at" in said:
                break
            asked = pl.read_csv(labels, infer_schema=False)
            filled = asked.with_columns(label=pl.col("item").replace_strict(truth))
            filled.write_csv(labels)
        assert "Stop at medium: settled after" in said
        assert expected in said
        assert ("--strict gives" in said) == (not extra)


def test_an_audit_in_one_call_gives_its_notes():
    frame = log(200)
    asked = sw.audit(frame, **GIVEN).to_label
    truth = dict(zip(frame["item"], frame["truth"], strict=True))
    labels = {item: truth[item].upper() for item in asked[:4]} | {asked[4]: "unheard of"}
    notes = " ".join(sw.audit(frame, labels, **GIVEN).notes)
    assert "read 'C" in notes
    assert "no stage ever gives 'unheard of'" in notes


def test_state_keeps_what_abstentions_mean_and_the_seed(tmp_path):
    frame = log(200)
    state, labels = tmp_path / "state.json", tmp_path / "labels.csv"
    advance(plan_audit(frame, **GIVEN), state, labels, seed=3)
    assert json.loads(state.read_text())["abstentions"] == "go on"
    other = plan_audit(frame, abstentions="mistake", **GIVEN)
    with pytest.raises(StopwiseError, match="abstentions is not what it was"):
        load_state(state, other)
    with pytest.raises(StopwiseError, match=r"began with --seed 3.*not 4"):
        advance(plan_audit(frame, **GIVEN), state, labels, seed=4)
    for seed in (None, 3):
        assert load_state(state, plan_audit(frame, **GIVEN), seed).seed == 3


def test_a_state_from_before_abstentions_were_kept_is_read(tmp_path):
    frame = log(200)
    state, labels = tmp_path / "state.json", tmp_path / "labels.csv"
    plan = plan_audit(frame, **GIVEN)
    advance(plan, state, labels)
    form = json.loads(state.read_text())
    del form["abstentions"]
    state.write_text(json.dumps(form))
    assert load_state(state, plan).labels == {}


def test_one_is_one(tmp_path, cli):
    """One item, one label, one row: no "1 items"."""
    path = tmp_path / "log.csv"
    path.write_text("a,b,truth\nx,y,x\n")
    for command in ("analyze", "replay", "audit"):
        extra = ["--truth", "truth", "--replications", "1"] if command == "replay" else []
        said = cli(command, path, "--stages", "a,b", "--costs", "0,0.1", *extra).out
        assert "1 item" in " ".join(said.split())
        for word in ("items", "labels", "rows", "replications"):
            assert f" 1 {word}" not in " ".join(said.split()), (command, said)


def test_an_audit_shows_itself():
    begun = sw.audit(sw.example_log(), {}, **sw.example_settings())
    assert repr(begun) == "<Audit of 1,797 items, not settled>"
    assert str(begun) == "Not settled with 0 labels: tree or linear; best guess linear"
    table = begun.to_frame()
    assert table["finding"].to_list() == ["open"] * len(begun.pairs)
    shown = begun._repr_html_()
    assert "best guess linear" in shown
    assert f"To label next: {begun.to_label[0]}, " in shown
    done = replace(begun, best=1, labels=9, stages=("<a>", "b", "c"), pairs=(), to_label=())
    assert str(done) == "b is the best stage: settled by its posterior, with 9 labels"
    assert "<a>" not in done._repr_html_()
