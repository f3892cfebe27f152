"""A SQLite file that is cut, deleted or replaced under a running process."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stopwise.live import Learner, SqliteStore
from stopwise.live.stores.base import StoreError


def build(path: Path, **settings: object) -> Learner:
    store = SqliteStore(path, keep_rounds=True, **settings)  # type: ignore[arg-type]
    return Learner([0, 1], "fixed:stage=1", store=store)


def play(learner: Learner, number: int) -> int:
    """How many rounds were acknowledged."""
    kept = 0
    for _ in range(number):
        try:
            with learner.begin() as round:
                round.observe(1)
                round.observe(1)
            kept += 1
        except StoreError:
            pass
    return kept


def delete(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    os.truncate(path, 0)


def cut_in_half(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("PRAGMA wal_checkpoint")
    os.truncate(path, path.stat().st_size // 2)


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def delete_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def cut_log(path: Path) -> None:
    os.truncate(path.with_name(path.name + "-wal"), 0)


def delete_index(path: Path) -> None:
    path.with_name(path.name + "-shm").unlink()


HARMS = (delete, cut, cut_in_half, replace, delete_log, cut_log, delete_index)


@pytest.mark.parametrize("harm", HARMS)
def test_no_round_is_acknowledged_that_the_file_does_not_hold(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "rounds.db"
    learner = build(path)
    assert play(learner, 100) == 100  # several pages
    if harm is cut_in_half:
        with closing(sqlite3.connect(path)) as other:  # so that the file has pages to lose
            other.execute("PRAGMA wal_checkpoint")
        assert play(learner, 1) == 1
    harm(path)
    assert play(learner, 3) == 0
    assert learner.store_status.queued == 3
    with pytest.raises(StoreError, match="while in use"):
        learner.close()


def test_a_file_that_is_moved_and_put_back_keeps_every_round(tmp_path: Path) -> None:
    path = tmp_path / "rounds.db"
    learner = build(path)
    play(learner, 5)
    path.rename(tmp_path / "elsewhere")
    assert play(learner, 5) == 0
    (tmp_path / "elsewhere").rename(path)
    learner.flush()
    learner.close()
    with build(path) as again:
        assert again.rounds == 10


def test_a_vacuum_by_another_program_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "rounds.db"
    learner = build(path)
    play(learner, 300)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE large AS SELECT randomblob(1000000) AS one")
    other.execute("PRAGMA wal_checkpoint")
    assert play(learner, 5) == 5
    other.execute("DROP TABLE large")
    other.execute("VACUUM")
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    assert play(learner, 5) == 5
    learner.close()
    with build(path) as again:
        assert again.rounds == 310
