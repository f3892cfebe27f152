"""The site builds strictly and fetches nothing, and whatever stands on the pages runs."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import CliRunner

from stopwise.cli import build_app
from stopwise.policies import registry

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NUMBA = importlib.util.find_spec("numba") is not None
# Other tests run these with their commands, or against a service.
RUN_ELSEWHERE = ("analyze.md", "audit.md", "logs-at-scale.md", "sweep.md", "api.md", "how-to.md")


def blocks(page, kind):
    text = page.read_text(encoding="utf-8")
    return [textwrap.dedent(block) for _, found, block in FENCE.findall(text) if found == kind]


WITH_CODE = [page for page in PAGES if blocks(page, "python") and page.name not in RUN_ELSEWHERE]
WITH_COMMANDS = [page for page in PAGES if blocks(page, "console")]


def same_output(shown: str, printed: str) -> bool:
    """As in examples of docstrings: lines may be broken anywhere, and "..." stands for anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return bool(printed.strip()) and doctest.OutputChecker().check_output(shown, printed, flags)


def command_line() -> Any:
    return typer.main.get_command(build_app())


def site_pages():
    """The hook that makes pages when the site is built."""
    spec = importlib.util.spec_from_file_location("site_pages", DOCS / "site_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.full_estimate
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_registered", {})
    module = types.ModuleType("page")  # a module that can be found, since policies are pickled
    monkeypatch.setitem(sys.modules, "page", module)
    printed = io.StringIO()
    for _, kind, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            printed = io.StringIO()
            code = compile(textwrap.dedent(block), page.name, "exec", dont_inherit=True)
            with contextlib.redirect_stdout(printed):
                exec(code, vars(module))
        elif kind == "output" and NUMBA:  # what the block before prints; other engine, other draws
            assert same_output(textwrap.dedent(block), printed.getvalue()), printed.getvalue()
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_the_commands_on_a_page_exist(page):
    """Every `stopwise COMMAND --option` that is shown is one that the command line takes."""
    commands = command_line().commands
    for block in blocks(page, "console"):
        for line in re.findall(r"^\$? ?(stopwise .*)$", block.replace("\\\n", ""), re.MULTILINE):
            name, *words = shlex.split(line, comments=True)[1:]
            if name.startswith("-"):
                continue
            known = {option for each in commands[name].params for option in each.opts}
            given = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert given <= known | {"--help"}, line


@pytest.mark.full_estimate
def test_readme_shows_what_the_example_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = next(b for b in blocks(ROOT / "README.md", "console") if "analyze --example" in b)
    command, _, shown = block.partition("\n")
    shown = shown.partition("\n$ ")[0] + "\n"
    printed = CliRunner().invoke(command_line(), shlex.split(command)[2:], terminal_width=100)
    assert printed.exit_code == 0
    assert same_output(shown, printed.output), printed.output


def test_every_public_name_has_its_place_in_the_reference():
    pages = site_pages()
    shown = pages.pages_by_name()
    missing = [
        f"{package}.{name}"
        for package, name, value in public()
        if pages.identity(package, name, value) not in shown
    ]
    assert not missing


def test_no_name_stands_twice_on_a_page_of_the_reference():
    pages = sorted((DOCS / "reference").glob("*.md"))
    assert len(pages) > 5
    for page in pages:
        names = re.findall(r"^::: (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(names) == len(set(names)), page.name


def test_every_public_name_has_an_example_that_runs():
    """In its own docstring, in a file whose examples are run; nothing is skipped."""
    missing = []
    for package, name, value in public():
        if isinstance(value, str | int | float | type(None)):
            continue  # a constant has no docstring of its own
        text = value.__doc__ or ""
        file = Path(inspect.getsourcefile(inspect.unwrap(value))).resolve()
        run = file.is_relative_to(ROOT / "src") and "+SKIP" not in text
        if ">>> " not in text or not run:
            missing.append(f"{package}.{name}")
    assert not missing
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pytest_settings = settings["tool"]["pytest"]["ini_options"]
    assert "--doctest-modules" in pytest_settings["addopts"]
    assert "src" in pytest_settings["testpaths"]


def public():
    """Every public name that is not a module: its package, the name and what it stands for."""
    pages = site_pages()
    for package in pages.packages():
        module = importlib.import_module(package)
        for name in pages.public_names(package):
            value = getattr(module, name)
            if not inspect.ismodule(value):
                yield package, name, value


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
    assert len(pages) >= 30
    assert [path.name for path in (tmp_path / "site").rglob("*.py*")] == []
    # an address may be linked to for reading, but nothing may be loaded from it
    loads = re.compile(r"<(?:script|img|iframe)[^>]+src=\"https?:|<link[^>]+stylesheet[^>]+https?:")
    for page in pages:
        assert not loads.search(page.read_text(encoding="utf-8")), page.name
    check_commands_page(tmp_path / "site" / "reference" / "commands.html")


def check_commands_page(page):
    """Every command and every option of the command line stands on its page."""
    text = page.read_text(encoding="utf-8")
    for name, command in command_line().commands.items():
        start = text.index(f'<h2 id="{name}"')
        end = text.find("<h2 ", start + 1)
        section = text[start : end if end > 0 else None]
        for option in command.params:
            for word in option.opts:
                shown = word if word.startswith("-") else option.metavar or option.name.upper()
                assert f"<code>{shown}</code>" in section, (name, word)


def test_what_is_read_aloud_of_a_picture_stands_in_it():
    """Numbers in the text for those who do not see a picture are those of the picture."""
    numbers = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for spoken, picture in re.findall(r"!\[([^\]]+)\]\(([\w./-]+\.svg)\)", text):
            drawn = (page.parent / picture).read_text(encoding="utf-8")
            for number in re.findall(r"\d[\d.,]*\d|\d", spoken):
                numbers += 1
                assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d.,]*\d)", drawn), spoken
    assert numbers >= 3


def test_pictures_are_drawn_by_the_script_and_shown():
    tree = ast.parse((ROOT / "scripts/make_pictures.py").read_text(encoding="utf-8"))
    text = ast.unparse(tree)
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    pictures = sorted((DOCS / "pictures").iterdir())
    assert len(pictures) >= 4
    for picture in pictures:
        assert picture.stem in text, "scripts/make_pictures.py draws it"
        assert f"pictures/{picture.name}" in shown
    assert "docs/pictures/" in (ROOT / "README.md").read_text(encoding="utf-8")
