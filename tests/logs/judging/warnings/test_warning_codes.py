"""Every warning that can be given has a plain name in the report and a line in the page."""

from __future__ import annotations

import re
from pathlib import Path

from stopwise.logs.reporting.page import PLAIN_NAMES

SOURCE = Path(__file__).parents[4]


def test_codes_are_explained_everywhere():
    given = set()
    for source in (SOURCE / "src" / "stopwise" / "logs").rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        given |= set(re.findall(r'LogWarning\(\s*"(\w+)"', text))
        given |= set(re.findall(r'notes\["(\w+)"\]', text))
    assert len(given) >= 13
    assert given == set(PLAIN_NAMES)
    page = (SOURCE / "docs" / "analyze.md").read_text(encoding="utf-8")
    assert {code for code in given if f"`{code}`" not in page} == set()
