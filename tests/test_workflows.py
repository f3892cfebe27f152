"""The workflows: they are YAML, run every Python that the project names, and name real targets."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def jobs() -> list[Any]:
    return [
        pytest.param(job, id=f"{path.stem}-{name}")
        for path in WORKFLOWS
        for name, job in read(path)["jobs"].items()
    ]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_says_when_it_runs_and_may_only_read(path: Path) -> None:
    workflow = read(path)
    assert workflow["name"]
    started_by = workflow[True]  # YAML 1.1 reads the key `on` as true
    assert "pull_request" in started_by
    assert started_by["push"]["branches"] == ["main"]
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("job", jobs())
def test_a_job_ends_names_its_actions_versions_and_has_no_key_unknown(job: dict[str, Any]) -> None:
    known = {"name", "runs-on", "timeout-minutes", "strategy", "steps"}
    assert set(job) <= known
    assert 0 < job["timeout-minutes"] <= 60
    assert job["steps"]
    for step in job["steps"]:
        assert set(step) <= {"uses", "with", "run", "name"}
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
    assert job["steps"][0]["uses"].startswith("actions/checkout@")


def test_every_python_of_the_project_is_tested_with_and_without_numba() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "test.yml")
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    classified = [
        text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text
    ]
    assert matrix["python"] == classified
    assert PROJECT["requires-python"] == f">={classified[0]}"
    assert matrix["without"] == ["", "numba"]
    commands = [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    assert commands == ['make test PYTHON=python WITHOUT="${{ matrix.without }}"']


@pytest.mark.parametrize("job", jobs())
def test_files_and_targets_of_a_job_exist(job: dict[str, Any]) -> None:
    for step in job["steps"]:
        for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
            assert re.search(rf"^{target}:.*##", MAKEFILE, flags=re.MULTILINE), target
        for variable in re.findall(r"\b([A-Z]+)=", step.get("run", "")):
            assert re.search(rf"^{variable} \?=", MAKEFILE, flags=re.MULTILINE), variable
        if cached := step.get("with", {}).get("cache-dependency-path"):
            assert (ROOT / cached).is_file()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("without", ["", "numba"])
def test_make_can_plan_what_the_workflow_asks_for(without: str) -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "--always-make", "test", "PYTHON=python", f"WITHOUT={without}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert "python -m venv .venv" in planned
    assert "pytest -n 2" in planned
    assert f'test -z "{without}" ||' in planned


def test_templates_for_issues_and_changes_are_there() -> None:
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").iterdir())
    assert len(templates) >= 2
    for path in templates:
        text = path.read_text(encoding="utf-8")
        head = text.split("---")[1] if path.suffix == ".md" else text
        form = yaml.safe_load(head)
        assert form.keys() & {"name", "blank_issues_enabled"}, path.name
    assert (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8").strip()
