"""The front door: light, complete, and helpful to those who mistype."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import stopwise as sw
from stopwise.policies.registry import policy_class, policy_names

HEAVY = ("scipy", "numba", "sklearn", "matplotlib", "joblib", "polars", "typer", "rich", "pandas")
LAZY_PACKAGES = ("stopwise", "stopwise.policies", "stopwise.logs", "stopwise.paper")


def loaded_by(code):
    code += "; import sys; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


@pytest.mark.parametrize(
    "code",
    [
        "import stopwise; dir(stopwise); stopwise.policy_names(); stopwise.Evidence(2)",
        "import stopwise; stopwise.policies.UssTs(); stopwise.Learner; stopwise.Cascade",
        "import stopwise; p = stopwise.Problem.from_predictions([[0, 1], [1, 1]], [1, 1],"
        " stopwise.Costs.from_cumulative((0, 1))); p.weak_dominance; p.to_json()",
    ],
    ids=["import", "policies and live", "problem"],
)
def test_import_stays_light(code):
    loaded = loaded_by(code)
    assert "'numpy'" in loaded
    for name in HEAVY:
        assert f"'{name}'" not in loaded, f"{code} loads {name}"


def test_import_takes_less_than_a_third_of_a_second():
    """Beyond numpy, which every program like this imports: of the processor, the best of five."""
    code = (
        "import time, numpy; start = time.process_time(); import stopwise;"
        " print(time.process_time() - start)"
    )
    run = [sys.executable, "-c", code]
    seconds = [
        float(subprocess.run(run, capture_output=True, check=True, timeout=60).stdout)
        for _ in range(5)
    ]
    assert min(seconds) < 0.3


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_public_names_are_listed_and_load(package):
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__), "what is for users, and nothing else"
    for name in module.__all__:
        assert getattr(module, name) is not None or name == "ABSTAINED"


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_what_editors_see_is_what_loads(package):
    """The imports under TYPE_CHECKING name each lazy name, from the very module it loads from."""
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    seen = {}
    for branch in (node for node in tree.body if isinstance(node, ast.If)):
        for node in branch.body:
            assert isinstance(node, ast.ImportFrom)
            for name in node.names:
                own = f"{node.module}.{name.name}"
                is_module = node.module == package
                seen[name.name] = own if is_module else node.module
    assert seen == module._WHERE
    assert set(seen) <= set(module.__all__)


def test_every_policy_class_is_a_name_of_policies():
    for name in policy_names():
        found = policy_class(name)
        if found.__module__.startswith("stopwise.policies."):
            assert getattr(sw.policies, found.__name__) is found


@pytest.mark.parametrize(
    ("package", "wrong", "right"),
    [
        ("stopwise", "analyse", "analyze"),
        ("stopwise", "Cascde", "Cascade"),
        ("stopwise.policies", "UssTS", "UssTs"),
        ("stopwise.logs", "analyse", "analyze"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(package, wrong, right):
    with pytest.raises(AttributeError, match=f"{package}.*{wrong}.*nearest is '{right}'"):
        getattr(importlib.import_module(package), wrong)
    with pytest.raises(AttributeError) as error:
        getattr(sw, "nothing_like_it_at_all")  # noqa: B009
    assert "nearest" not in str(error.value)
