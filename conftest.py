"""Where numba is not installed, what is compiled is left out and everything else is tested."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from stopwise.lazy import MissingPackageError

NUMBA = importlib.util.find_spec("numba") is not None
COMPILED = re.compile(
    r"^(?:from|import) (?:numba|independent|stopwise\.simulation\.(?:kernels|fast))\b", re.MULTILINE
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what would take hours on the reference engine."""
    if not NUMBA:
        for item in items:
            if item.get_closest_marker("numba"):
                item.add_marker(pytest.mark.skip(reason="too slow without numba"))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files that import compiled code."""
    if NUMBA or collection_path.suffix != ".py":
        return None
    if "kernels" in collection_path.parts:
        return True
    return bool(COMPILED.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Skip a test that asks for the fast engine where there is none."""
    try:
        return (yield)
    except MissingPackageError as error:
        if NUMBA or "numba" not in str(error):
            raise
        pytest.skip(str(error))
