from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stopwise.checks import StopwiseError
from stopwise.logs import analyze, plan_audit, simulate_audit
from stopwise.logs.auditing.audit import assess, label_order
from stopwise.logs.auditing.confidence_sequence import first_rejection, log_capital, mean_bounds
from stopwise.logs.auditing.files import labels_in

GIVEN = {"stages": ["small", "medium", "large"], "costs": [0.01, 0.1, 0.3], "mistake_cost": 1}


# ---- the confidence sequence -----------------------------------------------------------------


@pytest.mark.parametrize(("size", "plus", "zero"), [(300, 0.5, 0.0), (60, 0.8, 0.2), (25, 0.9, 0)])
def test_true_mean_is_rarely_ever_rejected(size, plus, zero):
    """Over 1,500 lists at 10 %; fails by chance with probability below 1e-6 (binomial tail)."""
    rng = np.random.default_rng(size)
    runs, alpha = 1500, 0.1
    weights = [plus * (1 - zero), zero, (1 - plus) * (1 - zero)]
    ever = 0
    for _ in range(runs):
        values = rng.choice([1, 0, -1], size=size, p=weights)
        above, below = log_capital(values, size, float(values.mean()))
        ever += max(above.max(), below.max()) >= math.log(2 / alpha)
    assert ever <= stats.binom.ppf(1 - 1e-6, runs, alpha)


def test_capital_is_a_martingale_by_enumeration():
    """Over all orders of a small list, the expected capital is 1 after every draw."""
    import itertools

    values = [1, 1, 0, -1, 1]
    mean = sum(values) / len(values)
    orders = list(itertools.permutations(values))
    capital = np.array([[np.exp(side) for side in log_capital(o, 5, mean)] for o in orders])
    assert capital.mean(axis=0)[:, :-1] == pytest.approx(np.ones((2, 4)), abs=1e-12)


def test_two_valued_bets_are_likelihood_ratios():
    """One part of the capital, drawn once: 1 + c (x / m - 1)."""
    above, below = log_capital([1], 10, 0.0)
    parts = np.geomspace(0.015, 0.97, 16)
    assert math.exp(above[0]) == pytest.approx(np.mean(1 + parts))
    assert math.exp(below[0]) == pytest.approx(np.mean(1 - parts))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=40), st.integers(0, 60))
def test_bounds_are_ordered_and_hold_what_was_drawn(values, more):
    size = len(values) + more
    low, high = mean_bounds(values, size, 0.1)
    assert low <= high
    assert low >= (sum(values) - more) / size - 1e-9
    assert high <= (sum(values) + more) / size + 1e-9
    if not more:
        assert low == high == pytest.approx(np.mean(values))
    decided = first_rejection(values, size, 0.0, 0.0, 0.1)
    if low > 1e-9 or high < -1e-9:
        assert decided is not None


def test_bounds_shrink_with_what_is_drawn():
    values = np.tile([1, 1, -1, 1, 0], 40)
    widths = [np.subtract(*mean_bounds(values[:k], 1000, 0.05)[::-1]) for k in (10, 50, 200)]
    assert widths[0] > widths[1] > widths[2]


# ---- the audit -------------------------------------------------------------------------------


def test_only_differing_items_are_asked_for(log):
    plan = plan_audit(log, **GIVEN)
    assert plan.candidates == (0, 1)  # 0.3 for the last one is more than it could ever gain
    audit = assess(plan, label_order(plan, 0), {}, batch=50)
    codes = plan.rows.codes[list(audit.next_items)]
    assert (codes[:, 0] != codes[:, 1]).all()


def test_simulation_ends_right_and_beats_random_labelling(log):
    plan = plan_audit(log, **GIVEN, truth="truth")
    result = simulate_audit(plan, replications=100)
    assert result.right == 1.0
    assert (result.audit_labels <= result.random_labels).all()
    assert result.random_labels.mean() > 2 * result.audit_labels.mean()
    assert result.audit_labels.max() <= result.worth_labelling


def test_close_calls_are_settled_by_labelling_all_or_by_tolerance():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    a = np.where(np.arange(400) < 40, 1 - truth, truth)
    b = np.where((np.arange(400) >= 40) & (np.arange(400) < 76), 1 - truth, truth)
    frame = pl.DataFrame({"a": a, "b": b, "truth": truth})
    given_ = {"stages": ["a", "b"], "costs": [0, 0.011], "mistake_cost": 1, "truth": "truth"}
    exact = simulate_audit(plan_audit(frame, **given_, strict=True), replications=20)
    assert exact.right == 1.0
    loose = simulate_audit(
        plan_audit(frame, **given_, tolerance=0.15, strict=True), replications=20
    )
    assert loose.right == 1.0
    assert loose.audit_labels.mean() < exact.audit_labels.mean()


def fill(path, truth):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["label"] = str(truth[int(row["item"])])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def test_from_first_batch_to_settled(log, tmp_path, cli):
    log.write_csv(tmp_path / "log.csv")
    arguments = ["audit", tmp_path / "log.csv", "--stages", "small,medium,large", "--costs",
                 "0.01,0.1,0.3", "--mistake-cost", 1, "--batch", 8, "--json"]  # fmt: skip
    truth = log["truth"].to_list()
    given_out = 0
    for _ in range(100):
        form = json.loads(cli(*arguments).out)
        assert form["labels"] == given_out
        # Asking again without new labels changes nothing.
        assert json.loads(cli(*arguments).out) == form
        if form["settled"]:
            break
        given_out += fill(tmp_path / "log.to-label.csv", truth)
    assert form["best_stage"] == "medium"
    assert form["next_items"] == []
    differing = int((log["small"] != log["medium"]).sum())
    assert form["labels"] < differing
    assert form["random_labels"] == round(form["labels"] * 2000 / differing)
    pair = form["pairs"][0]
    true = float((log["small"] != log["truth"]).mean() - (log["medium"] != log["truth"]).mean())
    assert pair["error_difference_low"] <= true <= pair["error_difference_high"]


def test_labels_beyond_a_gap_wait(log):
    plan = plan_audit(log, **GIVEN)
    order = label_order(plan, 0)
    wanted = assess(plan, order, {}, batch=10).next_items
    labels = {item: int(log["truth"][item]) for item in wanted[1:]}
    audit = assess(plan, order, labels, batch=10)
    assert audit.pairs[0].labelled == 0
    assert audit.next_items[0] == wanted[0]


def test_state_refuses_another_log_other_costs_and_changed_labels(log, tmp_path, cli):
    log.write_csv(tmp_path / "log.csv")
    base = ["audit", tmp_path / "log.csv", "--stages", "small,medium,large", "--json"]
    same = ["--costs", "0.01,0.1,0.3"]
    assert cli(*base, *same).status == 0
    answer = cli(*base, "--costs", "0.01,0.2,0.3")
    assert answer.status == 2
    assert "cumulative_costs is not what it was" in answer.err
    fill(tmp_path / "log.to-label.csv", log["truth"].to_list())
    first = next(csv.DictReader(io.StringIO((tmp_path / "log.to-label.csv").read_text())))
    assert cli(*base, *same).status == 0
    turned = f"item,label\n{first['item']},{1 - int(first['label'])}\n"
    (tmp_path / "log.to-label.csv").write_text(turned)
    answer = cli(*base, *same)
    assert answer.status == 2
    assert "was labelled" in answer.err
    (tmp_path / "log.to-label.csv").write_text("item,label\nnobody,1\n")
    assert "item: got 'nobody'" in cli(*base, *same).err
    (tmp_path / "log.to-label.csv").write_text("who,what\n1,1\n")
    assert "columns 'item' and 'label'" in cli(*base, *same).err
    log.head(1000).write_csv(tmp_path / "log.csv")
    (tmp_path / "log.to-label.csv").unlink()
    assert "the log is not what it was" in cli(*base, *same).err


def test_settled_without_labels_and_blind_batches(log, tmp_path, cli):
    log.write_csv(tmp_path / "log.csv")
    base = ["audit", tmp_path / "log.csv", "--stages", "small,medium,large"]
    answer = cli(*base, "--costs", "0.01,0.9,0.9", "--state", tmp_path / "s.json", "--labels",
                 tmp_path / "l.csv")  # fmt: skip
    assert "settled without a label" in answer.out
    cli(*base, "--costs", "0.01,0.1,0.3", "--blind")
    header = (tmp_path / "log.to-label.csv").read_text().splitlines()[0]
    assert header == "item,label"


@pytest.mark.parametrize(("between", "coding"), [(";", "utf-8-sig"), ("\t", "utf-8")])
def test_labels_are_read_as_spreadsheets_save_them(log, tmp_path, between, coding):
    plan = plan_audit(log.drop("truth", "lang"), **GIVEN)
    path = tmp_path / "labels.csv"
    lines = [["item", "shown", "label"], ["3", "a, b", "1"], ["5", "c", ""]]
    path.write_text("\r\n".join(between.join(line) for line in lines), encoding=coding)
    assert labels_in(path, plan.rows) == {"3": "1"}
    path.write_text("item,label", encoding="utf-16")
    with pytest.raises(StopwiseError, match="save it as UTF-8"):
        labels_in(path, plan.rows)


@pytest.mark.parametrize("named", ["*.csv", "each"])
def test_files_of_the_audit_are_no_part_of_the_log(log, tmp_path, cli, named):
    """Not by a pattern, nor where a shell names each file, though their columns are the log's."""
    said = log.select("item", *GIVEN["stages"], pl.col("truth").alias("label"))
    said.write_csv(tmp_path / "part.csv")
    for labels in ("part.to-label.csv", "mine.csv"):
        arguments = ["--stages", "small,medium,large", "--costs", "0.01,0.1,0.3", "--json"]
        arguments += ["--labels", tmp_path / labels, "--state", tmp_path / "s.json"]
        for _ in range(2):
            files = [tmp_path / "*.csv"] if named == "*.csv" else sorted(tmp_path.glob("*.csv"))
            form = json.loads(cli("audit", *files, *arguments).out)
            assert (form["items"], form["labels"]) == (2000, 0)
    (tmp_path / "mine.csv").unlink()
    assert (tmp_path / "part.to-label.csv").exists()
    assert analyze(sorted(map(str, tmp_path.glob("*.csv"))), **GIVEN).rows == 2000


def test_nothing_is_written_over_the_log_or_over_each_other(log, tmp_path, cli):
    path = tmp_path / "log.csv"
    log.rename({"truth": "label"}).write_csv(path)
    before = path.read_bytes()
    of_log = ["--stages", "small,medium,large", "--costs", "0.01,0.1,0.3"]
    for command in (
        ["audit", path, *of_log, "--labels", tmp_path / "." / "log.csv"],
        ["audit", path, *of_log, "--state", path],
        ["analyze", path, *of_log, "--report", path],
        ["fit", path, *of_log, "--out", path],
    ):
        answer = cli(*command)
        assert answer.status == 2
        assert "this is the log, which would be written over" in answer.err
    answer = cli("audit", path, *of_log, "--labels", tmp_path / "x", "--state", tmp_path / "x")
    assert "is the file of the labels" in answer.err
    assert path.read_bytes() == before


def test_items_must_have_names_of_their_own(log, tmp_path, cli):
    log.write_csv(tmp_path / "log.csv")
    answer = cli("audit", tmp_path / "log.csv", "--stages", "small,medium,large", "--costs",
                 "0.01,0.1,0.3", "--item", "lang")  # fmt: skip
    assert answer.status == 2
    assert "keep one row for each item" in answer.err
    simulated = cli("audit", tmp_path / "log.csv", "--stages", "small,medium,large", "--costs",
                    "0.01,0.1,0.3", "--item", "lang", "--simulate-with", "truth",
                    "--replications", "2")  # fmt: skip
    assert simulated.status == 0
    assert "rows repeat an item; here each counts as an item of its own" in simulated.out


def test_an_audit_in_one_call_is_the_audit_of_the_files(tmp_path):
    """The same labels and seed settle the same way, with a file to fill in or without."""
    import polars

    from stopwise.logs import audit, example_log, example_settings, plan_audit
    from stopwise.logs.auditing.files import advance

    truth = polars.read_csv(example_log())["truth"].to_list()
    plan = plan_audit(example_log(), **example_settings())
    labels: dict[str, object] = {}
    state, sheet = tmp_path / "state.json", tmp_path / "labels.csv"
    for _ in range(20):
        by_file = advance(plan, state, sheet, batch=7, seed=3)
        by_call = audit(example_log(), labels, batch=7, seed=3, **example_settings())
        assert by_call == by_file
        if by_call.settled:
            break
        new = {item: truth[int(item)] for item in by_call.to_label}
        labels |= new
        lines = [f"{item},{label}" for item, label in new.items()]
        sheet.write_text("\n".join(["item,label", *lines, ""]))
    assert by_call.settled
    assert by_call.labels == len(labels) > 0


def test_an_audit_in_one_call_refuses_what_it_cannot_use():
    from stopwise.checks import StopwiseError
    from stopwise.logs import audit, example_log, example_settings

    with pytest.raises(StopwiseError, match="labels: item: got 'nobody', but need an item"):
        audit(example_log(), {"nobody": 1}, **example_settings())
    with pytest.raises(StopwiseError, match="batch: got 0"):
        audit(example_log(), batch=0, **example_settings())
    assert audit(example_log(), {"0": None, 1: " "}, **example_settings()).labels == 0
