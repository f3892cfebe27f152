"""Rounds and counters that somebody else wrote into a file."""

import json
import sqlite3
from contextlib import closing

import pytest

from stopwise import StopwiseError
from stopwise.live import Learner, RoundLog, SqliteStore, read_rounds
from store_kinds import STAGES

FORGED = [
    {"probability": 25.0},
    {"probability": 0},
    {"probability": float("nan")},
    {"cost": -1.0},
    {"cost": float("inf")},
    {"costs": [-5.0, 1.0, 1.0]},
    {"depth": 7},
    {"called": 10**9},
    {"answered": [10**12]},
    {"disagreed": [[0, 10**9]]},
    {"disagreed": [[1, 0]]},
    {"failed": [-1]},
    {"round": 1.5},
    {"round": True},
    {"sequence": 10**30},
    {"stage": 9},
    {"segment": 3},
    {"advised": [1, -2.0, None]},
    {"abandoned": "no"},
    {"outputs": 3},
    {"unknown": 1},
]


@pytest.mark.parametrize("changes", FORGED, ids=str)
def test_a_forged_round_is_refused_with_its_line(tmp_path, play, changes):
    path = tmp_path / "rounds.jsonl"
    learner = Learner(STAGES, "fixed", store=RoundLog(path))
    play(learner, 2)
    learner.close()
    lines = path.read_text().splitlines()
    lines.append(json.dumps({**json.loads(lines[-1]), **changes}))
    path.write_text("\n".join(lines) + "\n")
    before = path.read_bytes()
    with pytest.raises(StopwiseError, match=r"line 4: .*round: "):
        Learner(STAGES, "fixed", store=RoundLog(path))
    with pytest.raises(StopwiseError, match=r"line 4: .*round: "):
        list(read_rounds(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "counters",
    [
        {"seen 0-1": -3},
        {"seen 0-1": 2**70},
        {"disagreed 0-1": 10**6},
        {"spent": float("inf")},
        {"seen 5-9": 1},
        {"rounds": 1.5},
    ],
    ids=str,
)
def test_forged_counters_in_sqlite_are_refused(tmp_path, play, counters):
    path = tmp_path / "rounds.db"
    learner = Learner(STAGES, "fixed", store=SqliteStore(path))
    play(learner, 2)
    learner.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        for counter, value in counters.items():
            connection.execute(
                "INSERT OR REPLACE INTO stopwise_counters VALUES ('', '', ?, ?)",
                (counter, float(value)),
            )
    connection.close()
    with pytest.raises(StopwiseError, match="counter"):
        Learner(STAGES, "fixed", store=SqliteStore(path))
