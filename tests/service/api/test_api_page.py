"""The program on the page about the API runs against a real server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "service" / "api.md"


def test_the_program_of_the_page(live: Callable[..., Any]) -> None:
    server = live(mode="advise")
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert programs
    for program in programs:
        names: dict[str, Any] = {"answer_of": lambda stage: "yes"}
        program = program.replace("http://127.0.0.1:8600", server.url)
        program = program.replace('"triage"', '"support"').replace(', key="sk-sw-..."', "")
        exec(compile(program, PAGE.name, "exec", dont_inherit=True), names)
        assert names["round"].answer == "yes"
