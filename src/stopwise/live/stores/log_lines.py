"""The lines of a log of rounds: its first line, evidence from elsewhere, and the rounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stopwise.checks import StopwiseError, fail, known_kind, parse_json_object
from stopwise.evidence import Evidence
from stopwise.live.record import MOST_STAGES, RoundRecord
from stopwise.live.settings import LearnerSettings
from stopwise.storage import as_path

VERSION = 1
_KIND = "stopwise rounds"
_START = b'{"kind": "stopwise rounds"'


def first_line(settings: LearnerSettings, seed: int) -> str:
    """What a log begins with."""
    header = {"kind": _KIND, "version": VERSION, "seed": seed, "settings": settings.to_form()}
    return json.dumps(header) + "\n"


def read_rounds(path: str | Path) -> Iterator[RoundRecord]:
    """The rounds of a log, also while a learner writes it; a line cut short is left out.

    >>> import tempfile
    >>> from stopwise.live import Learner, RoundLog
    >>> folder = tempfile.TemporaryDirectory()
    >>> learner = Learner([0, 1], "fixed", store=RoundLog(folder.name + "/rounds.jsonl"))
    >>> with learner.begin() as round: round.observe("yes"); round.observe("no")
    >>> learner.close()
    >>> [record] = read_rounds(folder.name + "/rounds.jsonl")
    >>> record.number, record.depth, record.disagreed
    (1, 1, 1)
    >>> folder.cleanup()
    """
    stage_count = MOST_STAGES
    with as_path("log", path).open("rb") as file:
        for at, line in enumerate(file):
            if not line.endswith(b"\n"):
                return
            where = f"{path}, line {at + 1}"
            form = parse_json_object(where, line)
            if at == 0:
                stage_count = len(check_log_header(str(path), form)["stages"])
            elif "evidence" not in form and "transitions" not in form:
                try:
                    record = RoundRecord.from_form(form, stage_count)
                except StopwiseError as error:
                    raise StopwiseError(f"{where}: {error}") from None
                yield record


def check_log_header(what: str, form: Any) -> Any:
    """The settings in the first line of a log; anything else is refused."""
    known_kind(what, form, _KIND, VERSION, "a log of rounds")
    settings = form.get("settings")
    stages = settings.get("stages") if isinstance(settings, dict) else None
    if not isinstance(stages, list) or not 2 <= len(stages) <= MOST_STAGES:
        raise fail(f"{what}: stages", stages, f"the names of 2 to {MOST_STAGES} stages")
    return settings


def has_begun(line: bytes) -> bool:
    """Whether a first line without its end is the beginning of one of ours, and of nothing else's.

    >>> has_begun(b'{"kind": "stopwise rounds", "ver'), has_begun(b'{"kind"'), has_begun(b"{")
    (True, False, False)
    """
    return line.startswith(_START)


def evidence_of(form: Any) -> tuple[str, Evidence]:
    """The segment and the evidence of a line that holds evidence from elsewhere."""
    segment = form.get("segment", "")
    if not isinstance(segment, str):
        raise fail("segment", segment, "text")
    return segment, Evidence.from_json(json.dumps(form["evidence"]))
