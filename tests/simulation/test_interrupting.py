"""Ctrl-C ends a simulation at once and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from instances import instance


def children_of(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the process table")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_stops_cleanly(tmp_path, jobs):
    file = tmp_path / "problem.json"
    file.write_text(instance("bsc-1").to_json())
    command = [
        sys.executable, "-m", "stopwise", "simulate", str(file), "--engine", "reference",
        "--horizon", "100000000", "--replications", "100", "--jobs", str(jobs),
    ]  # fmt: skip
    # Its own session, so that only it is interrupted, as a shell would send it to the group; and
    # Ctrl-C is heard there also where the tests run in the background, which ignores it.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(0.2)
            workers = children_of(process.pid)
            busy = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            seconds = (int(busy[11]) + int(busy[12])) / os.sysconf("SC_CLK_TCK")
            if (jobs == 1 and seconds > 2) or len(workers) >= 2:
                break
        time.sleep(1)
        workers = children_of(process.pid)
        assert (len(workers) >= 2) == (jobs == 2)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "stopwise: interrupted"
    for _ in range(50):
        left = [pid for pid in workers if Path(f"/proc/{pid}").exists()]
        if not left:
            break
        time.sleep(0.1)
    assert not left
