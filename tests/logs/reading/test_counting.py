from __future__ import annotations

import sqlite3

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise.evidence import Evidence
from stopwise.logs import Settings, analyze, analyze_evidence, evidence_of_frame
from stopwise.logs.reading.bills import spread_of
from stopwise.logs.reading.counting import ABSTAINED_CODE, NOT_CALLED, count
from stopwise.logs.reading.layouts.opening import open_log
from stopwise.logs.reading.partition import evidence_of_groups

outputs = st.sampled_from(["a", "b", "c", None])
tables = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.tuples(*[outputs] * k), min_size=1, max_size=40)
)


def frame_of(table):
    names = [f"s{i}" for i in range(len(table[0]))]
    columns = dict(zip(names, zip(*table, strict=True), strict=True))
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)), names


@settings(deadline=None, max_examples=60)
@given(tables)
def test_counting_patterns_equals_adding_rows(table):
    frame, names = frame_of(table)
    wanted = Evidence.from_prefixes(len(names), table)
    assert evidence_of_frame(frame, names) == wanted
    codes = np.array([[-1 if v is None else ord(v) for v in row] for row in table])
    assert Evidence.from_codes(codes) == wanted


@settings(deadline=None, max_examples=60)
@given(tables, st.integers(0, 40))
def test_evidence_of_parts_adds_up(table, cut):
    frame, names = frame_of(table)
    parts = evidence_of_frame(frame[:cut], names) + evidence_of_frame(frame[cut:], names)
    assert parts == evidence_of_frame(frame, names)


@settings(deadline=None, max_examples=60)
@given(tables)
def test_every_row_is_counted_once(table):
    frame, names = frame_of(table)
    settings = Settings(stages=tuple(names), costs=(1.0,) * len(names))
    counts = count(open_log(frame, settings), compare_labels=False)
    assert counts.rows == len(table)
    for at in range(len(names)):
        answered = sum(row[at] is not None for row in table)
        assert counts.number[counts.codes[:, at] >= 0].sum() == answered
        blanks = counts.codes[counts.codes[:, at] < 0, at]
        assert set(blanks.tolist()) <= {ABSTAINED_CODE, NOT_CALLED}


def test_blocks_follow_the_order_of_the_rows():
    frame = pl.DataFrame({"a": [0] * 50 + [1] * 50, "b": [0] * 100})
    counts = count(open_log(frame, Settings(stages=("a", "b"), costs=(1, 2))))
    for block in range(20):
        here = counts.where(counts.block == block)
        assert here.rows == 5
        assert here.evidence().disagreed[0, 1] == (0 if block < 10 else 5)


def test_sql_groups_give_the_same_analysis(log):
    base = sqlite3.connect(":memory:")
    base.execute("create table log (small, medium, large)")
    rows = log.select("small", "medium", "large").rows()
    base.executemany("insert into log values (?, ?, ?)", rows)
    query = "select small, medium, large, count(*) from log group by 1, 2, 3"
    groups = [(row[:3], row[3]) for row in base.execute(query)]
    base.close()
    evidence = evidence_of_groups(groups, 3)
    given_ = {"stages": ["small", "medium", "large"], "costs": [0.01, 0.1, 0.3]}
    whole = analyze(log, **given_)
    assert evidence == whole.evidence
    alone = analyze_evidence(evidence, **given_)
    assert alone.verdict.pairs == whole.verdict.pairs
    assert alone.mistake_cost_ranges == whole.mistake_cost_ranges


@pytest.mark.filterwarnings("ignore")
def test_dask_partitions_give_the_same_evidence(log):
    import dask
    import dask.dataframe as dask_frame

    stages = ["small", "medium", "large"]
    parts = dask_frame.from_pandas(log.to_pandas(), npartitions=7).to_delayed()
    counted = [dask.delayed(evidence_of_frame)(part, stages) for part in parts]
    with dask.config.set(scheduler="synchronous"):
        total = dask.delayed(sum)(counted, Evidence(3)).compute()
    assert total == evidence_of_frame(log, stages)


@pytest.mark.parametrize(
    "costs",
    [
        [],
        [0.0, 0.0],
        [5e-324, 1e290, 0.0],
        [1.0, 1.0, 3.0],
        np.random.default_rng(0).pareto(1, 500),
    ],
)
def test_a_spread_counts_every_cost_once_rounded_down_by_a_thousandth(costs):
    costs = np.sort(np.array(costs, dtype=np.float64))
    found = spread_of(costs)
    assert found.number.sum() == len(costs)
    assert (np.diff(found.cost) > 0).all()
    each = np.repeat(found.cost, found.number.astype(int))
    assert (each <= costs * (1 + 1e-9)).all()
    assert (costs <= each * 1.001001 + 5e-324).all()
