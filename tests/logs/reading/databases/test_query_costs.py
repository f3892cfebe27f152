"""Costs billed in a database: added up there, and read as a file of the same rows is."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from urllib.parse import urlencode

import duckdb
import numpy as np
import polars as pl
import pytest

from stopwise.checks import StopwiseError
from stopwise.logs import Query, analyze, plan_audit, replay

STAGES = ["a", "b", "c"]
COLUMNS = [*STAGES, *(f"{stage}:cost" for stage in STAGES), "truth", "lang", "item"]
GIVEN = {"stages": STAGES, "mistake_cost": 1}


def billed_log(rows=900):
    """Three stages; the last is not always called, the second is free where it is cached."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, rows)
    columns = {"truth": truth, "lang": np.where(np.arange(rows) % 3 == 0, "de", "en")}
    called = {"a": np.ones(rows, bool), "b": np.ones(rows, bool), "c": rng.random(rows) < 0.8}
    for at, (name, error) in enumerate((("a", 0.3), ("b", 0.1), ("c", 0.2))):
        said = np.where(rng.random(rows) < error, (truth + 1) % 3, truth).astype(object)
        cost = rng.lognormal(at, 0.5, rows) * 0.01
        if name == "b":
            cost[rng.random(rows) < 0.3] = 0.0
            said[rng.random(rows) < 0.1] = None
        said[~called[name]] = None
        columns[name] = pl.Series(said.tolist(), dtype=pl.Int64)
        billed = np.where(called[name], cost, 0.0).astype(object)
        billed[rng.random(rows) < 0.02] = None
        columns[f"{name}:cost"] = pl.Series(billed.tolist(), dtype=pl.Float64)
    columns["item"] = np.arange(rows) // 2 * 2
    return pl.DataFrame(columns).select(COLUMNS)


FRAME = billed_log()


def in_sqlite(frame, folder):
    path = folder / "log.db"
    names = ", ".join(f'"{name}"' for name in frame.columns)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"create table answers ({names})")
        marks = ", ".join("?" * frame.width)
        database.executemany(f"insert into answers values ({marks})", frame.rows())
    return f"sqlite:///{path}"


def in_duckdb(frame, folder):
    path = folder / "log.duckdb"
    frame.write_parquet(folder / "made.parquet")
    with duckdb.connect(str(path)) as database:
        database.execute(f"create table answers as select * from '{folder}/made.parquet'")
    return f"duckdb:///{path}"


def in_postgres(frame, server):
    import psycopg

    place = psycopg.conninfo.conninfo_to_dict(server.new_database())
    user, name = place.pop("user"), place.pop("dbname")
    url = f"postgresql://{user}@/{name}?{urlencode(place)}"
    kinds = {pl.String: "text", pl.Float64: "double precision", pl.Int64: "bigint"}
    columns = ", ".join(f'"{n}" {kinds[t]}' for n, t in frame.schema.items())
    with psycopg.connect(url) as connection:
        connection.execute(f"create table answers ({columns})")
        marks = ", ".join(["%s"] * frame.width)
        with connection.cursor() as cursor:
            cursor.executemany(f"insert into answers values ({marks})", frame.rows())
    return url


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def put(request, tmp_path, postgres):
    """Put a frame into a database: the address to read it from."""
    return {
        "sqlite": lambda frame: in_sqlite(frame, tmp_path),
        "duckdb": lambda frame: in_duckdb(frame, tmp_path),
        "postgresql": lambda frame: in_postgres(frame, postgres),
    }[request.param]


def same(found, whole):
    """Everything but the order of rows: no drift is looked for in a database."""
    form, other = found.to_dict(), whole.to_dict()
    for key in ("headline_stage", "rows", "pairs", "segments", "truth", "costs", "by_stage"):
        assert key in form or key not in other
        assert _close(form.get(key), other.get(key)), key
    bounds, expected = found.verdict.cost_bounds, whole.verdict.cost_bounds
    assert bounds.measured == expected.measured
    assert bounds.low == pytest.approx(expected.low)
    assert bounds.high == pytest.approx(expected.high)


def _close(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_close(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_close, one, other))
    return one == pytest.approx(other) if isinstance(one, float) else one == other


def test_costs_are_added_up_in_the_database(put, cli):
    url = put(FRAME)
    query = Query(url, "select * from answers")
    for more in ({}, {"segment": "lang", "truth": "truth"}, {"abstentions": "mistake"},
                 {"calls": "alone"}, {"trailing_blanks": "abstained"}):  # fmt: skip
        same(analyze(query, **GIVEN, **more), analyze(FRAME, **GIVEN, **more))
    answer = cli("analyze", url, "--sql", "select * from answers", "--mistake-cost", "1", "--json")
    assert answer.status == 0, answer.err
    whole = analyze(FRAME, mistake_cost=1).to_dict()
    assert json.loads(answer.out)["headline_stage"] == whole["headline_stage"]
    codes = {warning["code"] for warning in json.loads(answer.out)["warnings"]}
    assert "repeated_items" in codes
    forms = [replay(log, replications=1, **GIVEN).to_dict() for log in (query, FRAME)]
    assert _close(*({k: v for k, v in form.items() if k != "log"} for form in forms))
    assert plan_audit(query, **GIVEN).rows.spent == pytest.approx(
        plan_audit(FRAME, **GIVEN).rows.spent
    )


def test_bills_tell_which_stages_were_called_where_costs_are_given(put):
    costs = {"costs": [0.01, 0.02, 0.1]}
    query = Query(put(FRAME), "select * from answers")
    same(analyze(query, **GIVEN, **costs), analyze(FRAME, **GIVEN, **costs))


@pytest.mark.parametrize("costs", [{}, {"costs": [0.01, 0.02, 0.1]}])
def test_blanks_that_were_billed_0(put, costs):
    """They are abstentions before an answer, unless some bills are missing."""
    every = FRAME.with_columns(
        pl.when(pl.col("b").is_null()).then(0.0).otherwise(pl.col("b:cost").fill_null(0.0) + 0.01)
        .alias("b:cost")
    )  # fmt: skip
    kept = pl.col("b").is_not_null() | (pl.col("item") > 300)
    some = every.with_columns(pl.when(kept).then(pl.col("b:cost")).alias("b:cost"))
    query = Query(put(every), "select * from answers")
    found = analyze(every, **GIVEN, **costs)
    same(analyze(query, **GIVEN, **costs), found)
    assert found.counts.by_stage()["abstained"][1] > 50
    assert analyze(some, **GIVEN, **costs).counts.by_stage()["abstained"][1] == 0


def test_costs_kept_as_text(put):
    words = pl.col("^.*:cost$").cast(pl.String).fill_null("")
    frame = FRAME.with_columns(words.str.replace("^", " "))
    query = Query(put(frame), "select * from answers")
    same(analyze(query, **GIVEN), analyze(frame, **GIVEN))


@pytest.mark.parametrize(
    ("cell", "says"),
    [("twelve", "costs of b: not all are numbers"), ("1e999", "costs of b|out of range"),
     ("1_0", "costs of b: not all are numbers"), ("-2.5", "costs of b: got -2.5")],
)  # fmt: skip
def test_costs_that_are_none_are_refused(put, cell, says):
    texts = FRAME["b:cost"].cast(pl.String).to_list()
    frame = FRAME.with_columns(pl.Series("b:cost", [*texts[:-1], cell]))
    with pytest.raises(StopwiseError, match=says):
        analyze(Query(put(frame), "select * from answers"), **GIVEN)


def test_columns_that_stand_twice(put):
    """Refused where it matters which is meant; another column may stand twice."""
    url = put(FRAME)
    for twice in ("c", "c:cost"):
        sql = f'select answers.*, a as "{twice}" from answers'
        for read in (analyze, plan_audit):
            with pytest.raises(StopwiseError, match=rf"got '{twice}'.*each name once"):
                read(Query(url, sql), **GIVEN)
    unused = Query(url, "select answers.*, 1 as lang from answers")
    same(analyze(unused, **GIVEN), analyze(FRAME, **GIVEN))
    assert plan_audit(unused, **GIVEN).rows.stages == tuple(STAGES)
    own = Query(url, 'select answers.*, 1 as "c:1", 2 as c_1 from answers')
    same(analyze(own, **GIVEN), analyze(FRAME, **GIVEN))


def test_a_query_of_one_row_for_each_stage_is_read(put):
    """A long log is not grouped in the database, but read like a file."""
    long = pl.DataFrame(
        {"item": [0, 0, 1, 1, 2, 2, 3, 3], "stage": ["a", "b"] * 4,
         "output": ["x", "x", "y", "y", "x", "y", "y", "y"], "cost": [1.0, 2.0] * 4}
    )  # fmt: skip
    query = Query(put(long), "select * from answers")
    given = {"stages": ["a", "b"], "mistake_cost": 10}
    same(analyze(query, **given), analyze(long, **given))


def test_missing_columns_are_named(put):
    query = Query(put(FRAME.drop("b:cost")), "select * from answers")
    with pytest.raises(StopwiseError, match=r"costs: not given for b; .*'b:cost'"):
        analyze(query, **GIVEN)
    for field in ("segment", "truth", "item"):
        with pytest.raises(StopwiseError, match=rf"{field}: got 'nothing'.*a column"):
            analyze(query, **GIVEN, costs=[1, 2, 3], **{field: "nothing"})
