"""The site builds strictly, fetches nothing from elsewhere, and the code on its pages runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OURS = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", OURS, ids=lambda page: page.stem)
def test_the_code_on_a_page_runs(page):
    blocks = FENCE.findall(page.read_text(encoding="utf-8"))
    assert blocks, "a tutorial or how-to page shows code"
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)


def test_the_site_builds_strictly_and_is_self_contained(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= 19
    # an address may be linked to for reading, but nothing may be loaded from it
    loads = re.compile(r"<(?:script|img|iframe)[^>]+src=\"https?:|<link[^>]+stylesheet[^>]+https?:")
    for page in pages:
        assert not loads.search(page.read_text(encoding="utf-8")), page.name
