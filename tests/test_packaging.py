"""The lists of packages agree, the version stands in one place, and what is missing is named."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import stopwise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[a-z,]+\])?==([^\s;\\]+)", re.MULTILINE)


def normal(name):
    """A package's name as installers compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file):
    found = PIN.findall((ROOT / "requirements" / file).read_text(encoding="utf-8"))
    return {normal(name): version for name, version in found}


def named(requirements):
    """The packages that a list of requirements names, without versions, groups and itself."""
    texts = [text for text in requirements if isinstance(text, str)]
    names = {normal(re.split(r"[\[><=~! ;]", text)[0]) for text in texts}
    return names - {"stopwise"}


@pytest.mark.parametrize("name", ["dev", "bench", "clients"])
def test_the_lock_holds_every_pin_with_hashes(name):
    wanted, locked = pins(f"{name}.txt"), pins(f"{name}.lock")
    assert wanted
    differing = {
        key: (locked.get(key), wanted[key]) for key in wanted if locked.get(key) != wanted[key]
    }
    assert not differing, "run `make lock`"
    blocks = re.split(r"\n(?=[a-z0-9])", (ROOT / f"requirements/{name}.lock").read_text().strip())
    assert len(blocks) == len(locked)
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_lock_holds_every_dependency_of_the_project():
    project = PROJECT["project"]
    lists = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]
    missing = set().union(*map(named, lists)) - set(pins("dev.lock"))
    assert not missing, "run `make lock`"


def test_versions_agree():
    assert "version" not in PROJECT["project"]
    assert f"version: {stopwise.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == stopwise.__version__


def without(packages, code):
    """Run code where these packages cannot be imported; what it printed, and how it ended."""
    start = f"import sys; sys.modules.update(dict.fromkeys({packages!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, timeout=120
    )


OPTIONAL = ["numba", "polars", "sklearn", "matplotlib", "dask", "distributed", "pandas", "pyarrow"]

BARE = """
import stopwise as sw
problem = sw.Problem.from_rates(
    [0.3, 0.1], [[0, 0.2], [0.2, 0]], sw.Costs.from_stages((0.0, 0.3))
)
print(sw.simulate(problem, "uss-ts", horizon=50, replications=4, seed=1, jobs=1).engine)
cascade = sw.Cascade(
    [sw.Stage("a", lambda item: item, cost=0), sw.Stage("b", lambda item: item, cost=1)],
    mistake_cost=10,
)
print(cascade.answer("yes").answer)
from stopwise.cli import build_app
build_app()
"""


def test_everything_optional_may_be_missing():
    done = without(OPTIONAL, BARE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["reference", "yes"]


def test_the_documentation_is_a_page_to_read_and_no_folder_of_sources():
    urls = PROJECT["project"]["urls"]
    page = urls["Documentation"]
    assert "/tree/" not in page
    assert page == urls["Repository"] + "#readme"
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        (
            "numba",
            "sw.simulate(problem, 'uss-ts', horizon=9, replications=1, engine='fast')",
            "fast",
        ),
        ("polars", "from stopwise.logs import analyze; analyze('x.csv', stages='a,b')", "logs"),
        ("polars", "from stopwise.display import frame; frame([])", "logs"),
        ("matplotlib", "from stopwise.display import new_axes; new_axes()", "paper"),
        ("sklearn", "sw.CascadeClassifier", "sklearn"),
        ("polars", "sw.analyze(sw.example_log(), **sw.example_settings())", "logs"),
    ],
)
def test_what_is_missing_is_named(package, code, extra):
    start = (
        "import stopwise as sw\nproblem = sw.Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]],"
        " sw.Costs.from_stages((0.0, 0.3)))\n"
    )
    done = without([package], start + code)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "Error" in last
    assert f"pip install 'stopwise[{extra}]'" in last
