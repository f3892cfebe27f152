"""A file is written whole: on the disk before its name, with its mode, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from stopwise import StopwiseError
from stopwise.live.stores.snapshot import read_snapshot
from stopwise.logs import LogSettings
from stopwise.logs.items.fitting import write_rule
from stopwise.policies.per_item.any_rule import read_rule
from stopwise.service.config.reading import read_config
from stopwise.storage import read_whole, write_whole


def test_file_and_folder_reach_the_disk_in_this_order(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, Path.replace

    def watched_sync(descriptor):
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        events.append(f"sync {kind}")
        sync(descriptor)

    def watched_replace(self, target):
        events.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    write_whole(tmp_path / "labels.csv", "item,label")
    assert events == ["sync file", "rename", "sync folder"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"
    write_whole(path, "old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StopwiseError, match=r"labels\.csv: cannot be written"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_a_mode_stays(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_private_files_are_their_owners_alone(tmp_path):
    write_whole(tmp_path / "new.json", "{}", private=True)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "page")
    assert os.read(reader, 10) == b"page"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_is_wrong_with_a_file_that_is_read(tmp_path):
    """One wording for every room: rules, settings, grids, snapshots, labels, configurations."""
    (tmp_path / "latin.json").write_bytes("é".encode("latin-1"))
    for name, wrong in [
        ("none.json", "there is no such file"),
        ("", "this is a folder, but need a file"),
        ("latin.json", "this is not text in UTF-8; save it as UTF-8"),
        ("a\0b", "cannot be read (embedded null byte)"),
    ]:
        path = tmp_path / name if name else tmp_path
        with pytest.raises(StopwiseError) as error:
            read_whole(path, "rule")
        assert str(error.value) == f"rule {path}: {wrong}"
    write_whole(tmp_path / "text", "naïve")
    assert read_whole(tmp_path / "text") == "naïve"


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_rule(path),
        lambda path: LogSettings.of(path),
        lambda path: read_snapshot(path),
        lambda path: read_config(path),
    ],
    ids=["rule", "settings", "snapshot", "configuration"],
)
def test_every_reader_says_it_alike(tmp_path, read):
    for path, wrong in [
        (tmp_path / "none", "there is no such file"),
        (tmp_path, "this is a folder"),
    ]:
        with pytest.raises(StopwiseError, match=wrong):
            read(path)
    with pytest.raises(StopwiseError, match="got 3, but need the name of a file"):
        read(3)


def test_what_is_no_rule_is_not_written(tmp_path):
    with pytest.raises(StopwiseError, match=r"^rule: got 3, but need a rule, such as fit"):
        write_rule(3, tmp_path / "rule.json")
    with pytest.raises(StopwiseError, match=r"^path: got 3, but need the name of a file"):
        write_whole(3, "text")
