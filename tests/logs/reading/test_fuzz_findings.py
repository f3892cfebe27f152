"""Inputs that once ended in a traceback or were read silently wrong."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

STAGES = ("--stages", "a,b,c")
COSTS = ("--costs", "0.1,0.2,0.5")


@pytest.mark.parametrize("command", ["analyze", "replay", "audit"])
def test_bills_too_large_to_be_added_up(command, cli, tmp_path):
    """Each pattern's sum is a number, the sum over all patterns is not."""
    path = tmp_path / "log.csv"
    rows = [f"{'xy'[i % 2]},.1,{'xy'[i // 2 % 2]},1e308,{'xy'[i % 3 % 2]},.5" for i in range(12)]
    path.write_text("a,a:cost,b,b:cost,c,c:cost\n" + "\n".join(rows) + "\n")
    answer = cli(command, path, *STAGES)
    assert answer.status == 2
    assert "costs of b" in answer.err
    assert "too large" in answer.err


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table t (a, b, c)")
        connection.executemany("insert into t values (?, ?, ?)", [("x", "y", "x"), ("x",) * 3])
    connection.close()
    return f"sqlite:///{path}"


def test_a_query_without_rows(cli, database):
    answer = cli("analyze", database, "--sql", "select * from t where 1 = 0", *STAGES, *COSTS)
    assert answer.status == 2
    assert "there are no rows" in answer.err
