"""The walks of ARCHITECTURE.md are taken as they are told: these functions, in this order."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import pytest

import stopwise as sw

SOURCE = Path(sw.__file__).parent
WALKS = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text("utf-8").split("## Three walks\n")[1]


def rows(title):
    """Where a row names a function: its file and the name, without that of its class."""
    table = WALKS.split(f"**{title}**")[1].split("\n\n**")[0].split("\n\nA policy")[0]
    found = re.findall(r"^\| `([\w/]+\.py)` \| `(?:[A-Z]\w+\.)?([a-z]\w*)`", table, re.MULTILINE)
    assert len(found) > 5
    return found


def calls_of(walk):
    """Which functions of the package were called, in the order of their first calls."""
    order: dict[tuple[str, str], None] = {}

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            order.setdefault((Path(code.co_filename).relative_to(SOURCE).as_posix(), code.co_name))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return list(order)


def simulated():
    problem = sw.paper.problem("pima", 3)
    sw.simulate(problem, "uss-ts", horizon=5, replications=2, engine="reference")


def analysed():
    assert sw.analyze(sw.example_log(), **sw.example_settings()).sentence


def answered(tmp_path):
    stages = [sw.Stage("a", str, 0), sw.Stage("b", str, 1)]
    store = sw.SqliteStore(tmp_path / "rounds.db")
    with sw.Cascade(stages, "fixed", mistake_cost=9, store=store) as cascade:
        cascade.answer("x")


@pytest.mark.parametrize("title", ["One simulated round", "One analysis", "One live answer"])
def test_a_walk_is_taken_as_it_is_told(title, tmp_path):
    full = re.search(rf"\*\*({title}.*?)\*\*", WALKS)[1]
    told = rows(full)
    walk = {"One simulated round": simulated, "One analysis": analysed}.get(title)
    order = calls_of(walk or (lambda: answered(tmp_path)))
    assert [row for row in told if row not in order] == []
    # What sums results is called first and waits for them; a store writes on a thread of its own.
    elsewhere = [
        ("simulation/results.py", "summarise"),
        ("live/stores/databases/store.py", "append"),
    ]
    here = [row for row in told if row not in elsewhere]
    assert here == sorted(here, key=order.index)
