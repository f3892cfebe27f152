"""How tests run: one BLAS thread, the same examples in every run of CI, with or without numba.

Where numba is not installed, what is compiled is left out and everything else is tested.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Generator
from pathlib import Path

# Read before numpy is imported: tests run side by side, and BLAS threads would fight for cores.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from stopwise.estimating import difficulty  # noqa: E402
from stopwise.lazy import MissingPackageError  # noqa: E402

# No test may fail because the machine is busy. In continuous integration examples are the same in
# every run, so that a failure is a change's; elsewhere they go on exploring.
settings.register_profile(
    "stopwise",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    max_examples=50 if "CI" in os.environ else 100,
)
settings.load_profile("stopwise")

pytest_plugins = ["store_fixtures"]

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


_tests_run = itertools.count(1)


def pytest_collection_finish() -> None:
    """What collecting the tests has made stays: looking through it for cycles takes a second."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logfinish() -> None:
    """So does what tests have left behind, such as imported packages."""
    if next(_tests_run) % 50 == 0:
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    """What is kept for ever looks lost to libraries that count at the end, and say so at length."""
    gc.unfreeze()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files that import compiled code."""
    if NUMBA or collection_path.suffix != ".py":
        return None
    if "kernels" in collection_path.parts or collection_path.name == "replay_engine.py":
        return True  # compiled, or examples of what is compiled
    return bool(COMPILED.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.fixture(autouse=True)
def registry_as_it_was() -> Generator[None]:
    """A policy that a test or an example registers is known for its own time only."""
    name = "stopwise.policies.registry"  # where it is not imported yet, nothing is registered
    before = dict(sys.modules[name]._registered) if name in sys.modules else {}
    yield
    if name in sys.modules:
        sys.modules[name]._registered.clear()
        sys.modules[name]._registered.update(before)


@pytest.fixture(autouse=True)
def short_walks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tenths of the time of `analyze` go into the walks of the estimate.

    A test that asks for something else is content with a rough estimate. Examples print what users
    see, and tests of the estimate itself are marked `full_estimate`.
    """
    sys.modules["stopwise.estimating.estimate"]._estimated.cache_clear()
    example = isinstance(request.node, pytest.DoctestItem)
    if not example and request.node.get_closest_marker("full_estimate") is None:
        monkeypatch.setattr(difficulty, "STEPS", 4 * difficulty.KEEP_EVERY)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Skip a test that asks for the fast engine where there is none."""
    try:
        return (yield)
    except MissingPackageError as error:
        if NUMBA or "numba" not in str(error):
            raise
        pytest.skip(str(error))
