"""Where a log may come from: packed files, standard input, several files, databases."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
from contextlib import closing
from urllib.parse import urlencode

import numpy as np
import polars as pl
import pytest

from stopwise.checks import StopwiseError
from stopwise.logs import analyze, plan_audit, replay
from stopwise.logs.reading.databases import Query

GIVEN = {"stages": ["a", "b", "c"], "costs": [0.01, 0.02, 0.1], "mistake_cost": 1}
FLAGS = ["--stages", "a,b,c", "--costs", "0.01,0.02,0.1", "--mistake-cost", "1", "--json"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    columns = {"truth": truth, "lang": np.where(np.arange(600) % 3 == 0, "de", "en")}
    for name, error in (("a", 0.3), ("b", 0.1), ("c", 0.2)):
        columns[name] = np.where(rng.random(600) < error, (truth + 1) % 3, truth)
    return pl.DataFrame(columns)


def same(form, other):
    for key in ("headline_stage", "rows", "pairs", "readings"):
        if key == "readings":
            assert form[key]["estimated"]["error_rates"] == pytest.approx(
                other[key]["estimated"]["error_rates"]
            )
        else:
            assert form[key] == other[key]


def test_packed_csv(frame, tmp_path, cli):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(frame.write_csv().encode()))
    same(analyze(path, **GIVEN).to_dict(), analyze(frame, **GIVEN).to_dict())
    (tmp_path / "bad.csv.gz").write_text("a,b,c\nx,x,x\n")
    with pytest.raises(StopwiseError, match="not packed"):
        analyze(tmp_path / "bad.csv.gz", **GIVEN)
    (tmp_path / "cut.csv.gz").write_bytes(path.read_bytes()[:300])
    with pytest.raises(StopwiseError, match="cannot be read"):
        analyze(tmp_path / "cut.csv.gz", **GIVEN)


@pytest.mark.parametrize("end", ["", ",,\n", "\n", ",,\n\r\n\n"])
def test_rows_of_blanks_count_alike_in_every_text_file(tmp_path, end):
    rows = "a,b,c\n" + "x,y,x\n" * 60 + ",,\n" * 7 + "x,x,x\n"
    expected = 68 + end.startswith(",")
    plain, packed = tmp_path / "log.csv", tmp_path / "log.csv.gz"
    plain.write_text(rows + end)
    packed.write_bytes(gzip.compress((rows + end).encode()))
    other = tmp_path / "other.csv"
    other.write_text(rows)
    for log, number in ((plain, expected), (packed, expected), ([plain, other], expected + 68)):
        assert analyze(log, **GIVEN).to_dict()["rows"] == number


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "gz"])
def test_standard_input(frame, kind, cli, monkeypatch):
    buffer = io.BytesIO()
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet,
     "gz": frame.write_csv}[kind](buffer)  # fmt: skip
    data = gzip.compress(buffer.getvalue()) if kind == "gz" else buffer.getvalue()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    answer = cli("analyze", "-", *FLAGS)
    assert answer.status == 0, answer.err
    same(json.loads(answer.out), analyze(frame, **GIVEN).to_dict())


def test_several_files(frame, tmp_path, cli):
    frame.head(100).write_csv(tmp_path / "one.csv")
    frame.tail(500).write_csv(tmp_path / "two.csv")
    whole = analyze(frame, **GIVEN).to_dict()
    same(analyze([tmp_path / "one.csv", tmp_path / "two.csv"], **GIVEN).to_dict(), whole)
    answer = cli("analyze", tmp_path / "one.csv", tmp_path / "two.csv", *FLAGS)
    same(json.loads(answer.out), whole)
    frame.select("truth", "lang", "b", "a", "c").write_csv(tmp_path / "two.csv")
    refused = cli("analyze", tmp_path / "one.csv", tmp_path / "two.csv", *FLAGS)
    assert refused.status == 2
    assert "its header is not that of" in refused.err
    with pytest.raises(StopwiseError, match="given twice"):
        analyze([tmp_path / "one.csv", tmp_path / "o*.csv"], **GIVEN)


def test_a_comment_at_the_end_of_a_query_ends_there(frame, tmp_path):
    sqlite_log(frame, tmp_path / "log.db")
    found = analyze(
        Query(f"sqlite:///{tmp_path / 'log.db'}", "select * from answers -- all"), **GIVEN
    )
    assert found.to_dict()["rows"] == frame.height


def test_costs_as_arrays_and_by_name(frame):
    whole = analyze(frame, **GIVEN).to_dict()["costs"]
    for costs in (np.array([0.01, 0.02, 0.1]), {"c": 0.1, "a": 0.01, "b": 0.02}):
        assert analyze(frame, **{**GIVEN, "costs": costs}).to_dict()["costs"] == whole
    with pytest.raises(StopwiseError, match="one cost by name for each"):
        analyze(frame, **{**GIVEN, "costs": {"a": 1}})


def sqlite_log(frame, path):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table answers (a, b, c, truth, lang)")
        database.executemany(
            "insert into answers values (?, ?, ?, ?, ?)",
            frame.select("a", "b", "c", "truth", "lang").rows(),
        )


def test_sqlite_counts_for_us(frame, tmp_path, cli):
    path = tmp_path / "log.db"
    sqlite_log(frame, path)
    query = Query(f"sqlite:///{path}", "select * from answers;")
    whole = analyze(frame, truth="truth", segment="lang", **GIVEN)
    found = analyze(query, truth="truth", segment="lang", **GIVEN)
    same(found.to_dict(), whole.to_dict())
    assert found.truth.error_rates == pytest.approx(whole.truth.error_rates)
    assert [(s.name, s.rows) for s in found.segments] == [(s.name, s.rows) for s in whole.segments]
    answer = cli("analyze", f"sqlite:///{path}", "--sql", "select a, b, c from answers", *FLAGS)
    same(json.loads(answer.out), analyze(frame, **GIVEN).to_dict())
    assert replay(query, replications=1, **GIVEN).rounds == 600
    assert len(plan_audit(query, **GIVEN).rows.items) == 600


def test_duckdb_counts_for_us(frame, tmp_path):
    frame.write_parquet(tmp_path / "log.parquet")
    query = Query("duckdb://", f"select * from '{tmp_path}/log.parquet'")
    same(analyze(query, **GIVEN).to_dict(), analyze(frame, **GIVEN).to_dict())


def test_a_password_is_never_part_of_a_name():
    for url in ("postgresql://me:secret@host/db", "postgresql://host/db?user=me&password=secret"):
        assert Query(url, "select 1").name == "postgresql query of host/db"
    for odd in ("postgresql://host/db?password=se@cret", "postgresql://me:se?cret@host/db"):
        assert Query(odd, "select 1").name == "postgresql query of a server"


def test_a_database_is_named_as_its_user_wrote_it():
    names = {
        "sqlite:///ok.db": "sqlite query of ok.db",
        "sqlite:///folder/ok.db": "sqlite query of folder/ok.db",
        "sqlite:////data/ok.db": "sqlite query of /data/ok.db",
        "sqlite:///a@b?.db": "sqlite query of a@b?.db",
        "duckdb:///ok.duckdb": "duckdb query of ok.duckdb",
        "duckdb://": "duckdb query of files",
    }
    for url, name in names.items():
        assert Query(url, "select 1").name == name


def test_postgresql_counts_for_us(frame, postgres, cli):
    """Through the command too, with a segment and a truth; decimals and truth values are labels."""
    import psycopg

    place = psycopg.conninfo.conninfo_to_dict(postgres.new_database())
    user, name = place.pop("user"), place.pop("dbname")
    url = f"postgresql://{user}@/{name}?{urlencode(place)}"
    with psycopg.connect(url) as connection:
        connection.execute("create table answers (a int, b int, c int, truth int, lang text)")
        rows = frame.select("a", "b", "c", "truth", "lang").rows()
        with connection.cursor() as cursor:
            cursor.executemany("insert into answers values (%s, %s, %s, %s, %s)", rows)
        connection.execute("create table numbers (a numeric, b numeric, c numeric)")
        connection.execute("insert into numbers values (1.0, 1, 2), (1.5, 1.5, 1.50), (null, 2, 2)")
    query = Query(url, "select * from answers")
    whole = analyze(frame, truth="truth", segment="lang", **GIVEN)
    same(analyze(query, truth="truth", segment="lang", **GIVEN).to_dict(), whole.to_dict())
    answer = cli("analyze", url, "--sql", "select a, b, c from answers", *FLAGS)
    same(json.loads(answer.out), analyze(frame, **GIVEN).to_dict())
    assert replay(query, replications=1, **GIVEN).rounds == 600
    numbers = pl.DataFrame({"a": [1.0, 1.5, None], "b": [1.0, 1.5, 2.0], "c": [2.0, 1.5, 2.0]})
    found = analyze(Query(url, "select * from numbers"), **GIVEN)
    assert found.to_dict()["pairs"] == analyze(numbers, **GIVEN).to_dict()["pairs"]
    for sql, says in (
        ("delete from answers", "the query failed"),
        ("select a, b from answers", "stages: got 'c'"),
        ("select a, b, c, c from answers", "each name once"),
    ):
        with pytest.raises(StopwiseError, match=says):
            analyze(Query(url, sql), **GIVEN)
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from answers").fetchone() == (600,)


@pytest.mark.parametrize(
    ("url", "sql", "says"),
    [
        ("mysql://x", "select 1", "sqlite:///FILE"),
        ("sqlite:///none.db", "select 1", "no such file"),
        ("sqlite:///LOG", "select nothing from nowhere", "the query failed"),
        ("sqlite:///LOG", "select a, b from answers", "stages: got 'c'"),
        ("sqlite:///LOG", "select a as x, b, c from answers", "stages: got 'a'"),
        ("sqlite:///LOG", "drop table answers", "the query failed"),
        ("sqlite:///LOG", "select x'00ff' as a, b, c from answers", "not lists or bytes"),
        ("duckdb://", "select [1] as a, 1 as b, 1 as c", "not lists or bytes"),
        ("sqlite:///LOG", "select 1; drop table answers", "one SELECT"),
    ],
)
def test_refusals_of_databases(frame, tmp_path, url, sql, says):
    path = tmp_path / "log.db"
    sqlite_log(frame, path)
    with pytest.raises(StopwiseError, match=says):
        analyze(Query(url.replace("LOG", str(path)), sql), **GIVEN)
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute("select count(*) from answers").fetchone() == (600,)


def test_costs_of_a_series_go_by_its_names_if_it_has_any(frame):
    """They went by place: a series in another order priced the wrong stages, and nobody knew."""
    pandas = pytest.importorskip("pandas")
    settings = {"stages": ["a", "b", "c"], "mistake_cost": 50}
    expected = analyze(frame, costs=[1, 2, 5], **settings).to_dict()
    for costs in (
        pandas.Series({"c": 5, "a": 1, "b": 2}), pandas.Series([1, 2, 5]),
        pandas.Series([1, 2, 5], index=[7, 8, 9]), pl.Series([1, 2, 5]),
    ):  # fmt: skip
        same(analyze(frame, costs=costs, **settings).to_dict(), expected)
    with pytest.raises(StopwiseError, match="one cost by name"):
        analyze(frame, costs=pandas.Series({"c": 5, "a": 1, "x": 2}), **settings)
