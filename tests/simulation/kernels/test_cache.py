"""Compiled code must not outlive any source that it was compiled from."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stopwise
from stopwise.simulation.kernels.cache import COMPILED_FOLDERS, fingerprint, forget_stale_code


def test_a_change_in_any_folder_or_subfolder_forgets_all(tmp_path):
    sources = ["kernels/a.py", "kernels/deep/b.py", "policies/c.py", "policies/deep/d.py"]
    compiled = ["kernels/x.nbi", "kernels/deep/y.nbc", "policies/z.nbi", "policies/deep/w.nbc"]
    folders = [tmp_path / "kernels", tmp_path / "policies"]
    for name in sources:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    kept = [(tmp_path / name).parent / "__pycache__" / Path(name).name for name in compiled]

    def compile_all():
        for path in kept:
            path.parent.mkdir(exist_ok=True)
            path.write_text("compiled")

    forget_stale_code(folders)
    compile_all()
    forget_stale_code(folders)
    assert all(path.exists() for path in kept)
    for name in sources:
        (tmp_path / name).write_text("x = 2")
        forget_stale_code(folders)
        assert not any(path.exists() for path in kept), name
        compile_all()
    (tmp_path / "policies/c.py").rename(tmp_path / "policies/e.py")
    forget_stale_code(folders)
    assert not any(path.exists() for path in kept)


def test_the_folders_hold_every_compiled_source():
    names = {source.name for folder in COMPILED_FOLDERS for source in folder.rglob("*.py")}
    assert {"voi.py", "imed.py", "uss_ucb.py", "worth.py", "looks.py", "bounds.py"} <= names
    assert len(fingerprint(COMPILED_FOLDERS)) == 64


def names_from_elsewhere(tree: ast.Module) -> set[str]:
    """Names that a file imports from this package, but not from what is fingerprinted."""
    kept = ("stopwise.simulation.kernels", "stopwise.policies")
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and str(node.module).startswith("stopwise")
        and not str(node.module).startswith(kept)
        for alias in node.names
    }


def test_nothing_is_compiled_from_a_file_that_is_not_fingerprinted():
    compiled = 0
    for source in COMPILED_FOLDERS[0].rglob("*.py"):
        tree = ast.parse(source.read_text(encoding="utf-8"))
        elsewhere = names_from_elsewhere(tree)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                compiled += 1
                used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
                assert not used & elsewhere, f"{source.name}: {node.name}"
    assert compiled > 50  # it is a test
    taken = ast.parse((COMPILED_FOLDERS[0] / "rules.py").read_text(encoding="utf-8"))
    for node in taken.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("stopwise.policies"):
            rule = Path(stopwise.__file__).parents[1] / f"{node.module.replace('.', '/')}.py"
            tree = ast.parse(rule.read_text(encoding="utf-8"))
            names = {alias.name for alias in node.names}
            for function in tree.body:
                if isinstance(function, ast.FunctionDef) and function.name in names:
                    used = {name.id for name in ast.walk(function) if isinstance(name, ast.Name)}
                    assert not used & names_from_elsewhere(tree), function.name


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_constant_of_a_policy_is_compiled_again(tmp_path, elsewhere):
    pytest.importorskip("numba")
    package = tmp_path / "stopwise"
    shutil.copytree(
        Path(stopwise.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "simulation" / "kernels" / "probe.py").write_text(
        "from numba import njit\n"
        "from stopwise.simulation.kernels.rules import rounds_that_count\n\n\n"
        "@njit(cache=True)\n"
        "def probe(rounds, seen):\n"
        "    return rounds_that_count(rounds, seen)\n"
    )
    program = "from stopwise.simulation.kernels.probe import probe; print(probe(100.0, 100.0))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    if elsewhere:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "kept")

    def answer():
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return float(done.stdout)

    assert answer() == 800.0
    assert list(tmp_path.rglob("*.nbc"))  # it is a test
    assert any((tmp_path / "kept").rglob("*.nbc")) == elsewhere
    voi = package / "policies" / "voi.py"
    voi.write_text(voi.read_text().replace("LATE_CAUTION = 8.0", "LATE_CAUTION = 9.0"))
    assert answer() == 900.0
