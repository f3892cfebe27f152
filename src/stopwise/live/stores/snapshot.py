"""Snapshots: one JSON file, versioned, that is either the old one or the new one, never half."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stopwise.checks import StopwiseError, known_kind, known_names, parse_json_object
from stopwise.evidence import Evidence
from stopwise.live.counters.forms import restored
from stopwise.live.counters.segments import SegmentCounters
from stopwise.storage import as_path, read_whole, write_whole

VERSION = 1
_FIELDS = ("kind", "version", "settings", "seed", "state")
_KIND = "stopwise learner"


def write_snapshot(path: str | Path, form: Mapping[str, Any]) -> None:
    """Write a snapshot whole, readable by its owner alone unless the file there says otherwise."""
    text = json.dumps({"kind": _KIND, "version": VERSION, **form}, allow_nan=False)
    write_whole(path, text + "\n", private=True)


def read_snapshot(path: str | Path) -> Mapping[str, Any]:
    """The content of a snapshot; another version or kind is refused, not guessed at."""
    source = as_path("snapshot", path)
    form = parse_json_object(str(source), read_whole(source))
    known_kind(str(source), form, _KIND, VERSION, "a snapshot")
    known_names(str(source), form, (*_FIELDS, "items"))
    for field in _FIELDS:
        if field not in form:
            raise StopwiseError(f"{source}: the field {field!r} is missing")
    return form


def read_evidence(path: str | Path) -> dict[str, Evidence]:
    """The exact evidence of every segment of a snapshot, whatever its costs and settings.

    For a cascade whose prices have changed: read it here, add it with `Learner.add_evidence`.

    >>> import tempfile
    >>> from stopwise.live import Learner
    >>> folder = tempfile.TemporaryDirectory()
    >>> learner = Learner({"rule": 0, "model": 1}, "fixed", mistake_cost=4)
    >>> with learner.begin() as round: round.observe("yes"); round.observe("no")
    >>> learner.save(folder.name + "/learned.json")
    >>> cheaper = Learner({"rule": 0, "model": 0.5}, mistake_cost=4)
    >>> cheaper.add_evidence(read_evidence(folder.name + "/learned.json")[""])
    >>> int(cheaper.evidence().disagreed[0, 1])
    1
    >>> folder.cleanup()
    """
    form = read_snapshot(path)
    settings = form["settings"]
    if not isinstance(settings, Mapping) or not isinstance(settings.get("stages"), list):
        raise StopwiseError(f"{path}: the settings name no stages")
    memory = restored(SegmentCounters(len(settings["stages"])), form["state"])
    return {name: tally.evidence() for name, tally in memory.tallies.items()}
