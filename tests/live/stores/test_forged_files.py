"""Files from elsewhere: refused with a clear error, never believed, never a raw exception."""

import json
import sqlite3
from contextlib import closing

import pytest

from stopwise.checks import StopwiseError
from stopwise.live import Drift, Learner, RoundLog, SqliteStore
from stopwise.live.stores.inspecting import inspect
from stopwise.live.stores.stored import open_stored

ROUND = {
    "round": 1, "depth": 1, "probability": 0.5, "stage": 1, "called": 2, "answered": [0, 1],
    "disagreed": [[0, 1]], "cost": 1.0,
}  # fmt: skip


def forged_log(folder, **changes):
    path = folder / "log.jsonl"
    Learner([0, 1], "fixed", store=RoundLog(path)).close()
    with path.open("a") as file:
        file.write(json.dumps({**ROUND, **changes}) + "\n")
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"cost": 1e308},
        {"cost": 0, "costs": [5.0]},
        {"cost": 5.9, "costs": [5.0, 1.0]},
        {"costs": [1e308, 0.0]},
        {"advised": [1, 1e308, None]},
        {"probability": 1e-320},
        {"probability": 25.0},
        {"writer": 2**60},
        {"writer": "web"},
        {"sequence": 2**52},
        {"round": 2**62},
        {"failed": [0]},
    ],
)
def test_a_round_of_a_log(tmp_path, changes):
    path = forged_log(tmp_path, **changes)
    before = path.read_bytes()
    with pytest.raises(StopwiseError, match=next(iter(changes)).replace("sequence", "round")):
        Learner([0, 1], "fixed", store=RoundLog(path))
    assert path.read_bytes() == before


def made_store(folder):
    path = folder / "rounds.db"
    learner = Learner([0, 1], "fixed", drift=Drift(), store=SqliteStore(path, keep_rounds=True))
    for _ in range(20):
        with learner.begin() as round:
            round.observe("a")
            round.observe("b")
    learner.close()
    return path


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE stopwise_counters SET value = 'many'",
        "UPDATE stopwise_counters SET value = x'00ff'",
        "UPDATE stopwise_counters SET value = 1e308 WHERE counter = 'spent'",
        "UPDATE stopwise_counters SET value = 9e999 WHERE counter = 'spent'",
        "UPDATE stopwise_counters SET value = -1",
        "INSERT INTO stopwise_counters VALUES ('', x'00', 'rounds', 1)",
        "UPDATE stopwise_cascades SET rounds = 9007199254740992",
        "UPDATE stopwise_cascades SET change = 'x'",
        "UPDATE stopwise_segments SET number = 0",
        "UPDATE stopwise_segments SET drift = '{'",
        "UPDATE stopwise_segments SET drift = '5'",
        "UPDATE stopwise_segments SET drift = x'ff'",
        "CREATE TRIGGER t AFTER UPDATE ON stopwise_writers BEGIN SELECT 1; END",
    ],
)
def test_a_database_when_it_is_opened(tmp_path, statement):
    path = made_store(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(StopwiseError):
        Learner([0, 1], "fixed", drift=Drift(), store=SqliteStore(path))


def test_a_view_that_never_ends_is_not_asked(tmp_path):
    path = made_store(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE stopwise_counters")
        connection.execute(
            "CREATE VIEW stopwise_counters AS WITH RECURSIVE c(x) AS"
            " (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
            " SELECT '' AS cascade, 's' || x AS segment, 'rounds' AS counter, 1 AS value FROM c"
        )
    connection.close()
    with pytest.raises(StopwiseError, match="view"):
        Learner([0, 1], "fixed", drift=Drift(), store=SqliteStore(path))
    with pytest.raises(StopwiseError, match="view"):
        open_stored(path)
    assert "view" in inspect(path).problems[0]


@pytest.mark.parametrize("settings", ["[]", "", "5", "[" * 100_000])
def test_settings_that_are_none_are_a_problem_of_the_file(tmp_path, settings):
    path = made_store(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE stopwise_cascades SET settings = ?", (settings,))
    connection.close()
    assert any("settings" in problem for problem in inspect(path).problems)
    with pytest.raises(StopwiseError):
        open_stored(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("costs", [-1, 2]), ("mistake_cost", 0), ("mistake_cost", "a"), ("stages", ["a", "a"])],
)
def test_settings_of_a_log_that_is_only_read(tmp_path, field, value):
    path = forged_log(tmp_path)
    header, *rest = path.read_text().splitlines(keepends=True)
    form = json.loads(header)
    form["settings"][field] = value
    path.write_text(json.dumps(form) + "\n" + "".join(rest))
    with pytest.raises(StopwiseError):
        open_stored(path)


def test_what_a_learner_reports_is_held_to_the_same_limits():
    learner = Learner({"a": 0.0, "b": 1.0}, "fixed")
    round = learner.begin()
    with pytest.raises(StopwiseError, match="cost: got 1e\\+308"):
        round.observe("x", 1e308)
    for chance in (25.0, 0.0, -1.0, float("nan")):
        with pytest.raises(StopwiseError, match="probability"):
            learner.begin_drawn(1, chance)
    with pytest.raises(StopwiseError, match="costs"):
        Learner({"a": 0.0, "b": 1e308}, "fixed")


@pytest.mark.parametrize(
    "change",
    ["hour = 'x'", "hour = 9e999", "hour = -1", "value = 'x'", "value = 9e999", "counter = x'ff'"],
)
def test_counters_by_the_hour(tmp_path, change):
    learner = Learner([0, 1], "fixed", store=SqliteStore(tmp_path / "forged.db"))
    with learner.begin() as round:
        round.observe("a")
        round.observe("b")
    learner.close()
    with closing(sqlite3.connect(tmp_path / "forged.db")) as connection, connection:
        connection.execute(f"UPDATE stopwise_hours SET {change} WHERE counter = 'rounds'")
    connection.close()
    with pytest.raises(StopwiseError, match=r"forged\.db: (hour|counter)"):
        SqliteStore(tmp_path / "forged.db").read_hours()
