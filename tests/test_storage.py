"""A file is written whole: on the disk before its name, with its mode, or not at all."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path

import pytest

import stopwise
from stopwise import StopwiseError
from stopwise.storage import write_whole


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


def test_whole_files_are_written_in_one_place() -> None:
    """A second way to write a file would be a second durability.

    The note beside compiled code may be lost: what it stands for is then compiled again.
    """
    package = Path(stopwise.__file__).parent
    allowed = {"storage.py", "simulation/kernels/cache.py"}
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("write_text", "write_bytes"):
                found.add(path.relative_to(package).as_posix())
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.replace", "os.rename"):
                found.add(path.relative_to(package).as_posix())
    assert found <= allowed
    assert found >= {"simulation/kernels/cache.py"}, "the search finds what there is"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "page")
    assert os.read(reader, 10) == b"page"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
