"""Plain words everywhere, and texts that name only what exists."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "stopwise"
# Built from parts, so that this file passes its own test.
BANNED = ["de" + "ar", "de" + "arer", "de" + "arest", "an" + "ew", "me" + "nd", "me" + "nds"]
WORDS = re.compile(rf"\b({'|'.join(BANNED)}|me" + r"nded|me" + r"nding)\b", re.IGNORECASE)
MACHINE = re.compile(r"(?<![\w.])/(?:work|root|home|opt|Users|tmp)/\w[\w.-]*")
READ = (
    "src", "docs", "examples", "benchmarks", "scripts", "tests", "README.md", "ARCHITECTURE.md",
    "CONTRIBUTING.md", "Makefile",
)  # fmt: skip


def files():
    """Every text file that the repository holds, or that would be added to it."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, done.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix not in (".png", ".lock", ".parquet"):
            yield name, path.read_text(encoding="utf-8", errors="replace")


def found(pattern, names):
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in files()
        if name.startswith(names)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_word_that_a_reader_must_look_up():
    assert not found(WORDS, READ)


# Phrases that say a number without saying which, and a few that a reader must read twice.
PHRASES = re.compile(
    r"\b(so m" + r"any|so m" + r"uch|an item costs|a row an item|a column a stage"
    r"|all that is called certain is so|if not strict, or equal to it)\b",
    re.IGNORECASE,
)
# Metaphors, and words that say nothing of what the thing is; as names of anything, or parts of it.
METAPHORS = {"desk", "hugging", "rising", "meeting", "knob"}
# Words that do not say what a value is.
VAGUE = {"told", "marks", "following"}


def test_no_phrase_that_must_be_read_twice():
    places = found(PHRASES, tuple(name for name in READ if name != "tests"))
    assert not places


def _defined(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        # Names in what is sent and kept: fields of JSON.
        elif isinstance(node, ast.Dict):
            yield from filter(None, map(_text, node.keys))
        elif isinstance(node, ast.Subscript):
            yield _text(node.slice)


def _text(node):
    """The text that stands there, if one does."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else ""


def test_no_metaphor_is_a_name():
    wrong = set()
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        place = path.relative_to(SOURCE)
        refused = METAPHORS | VAGUE
        for name in (path.stem, *_defined(tree)):
            if refused & set(name.lower().split("_")):
                wrong.add((place.as_posix(), name))
    assert not wrong


def test_pages_name_only_source_files_that_exist():
    """A path such as src/stopwise/storage.py or tests/test_words.py in any page is a file."""
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks").glob("*.md"),
    ]
    pages = [page for page in pages if page.name != "CHANGELOG.md"]  # it tells of what was
    named = {
        (page.name, path)
        for page in pages
        for path in re.findall(
            r"\b((?:src|tests|examples|benchmarks|scripts)/[\w/-]+\.(?:py|md|toml))\b",
            page.read_text(encoding="utf-8"),
        )
    }
    assert len(named) > 10
    assert {(page, path) for page, path in named if not (ROOT / path).exists()} == set()


def test_no_path_of_a_machine():
    places = found(MACHINE, ("",))
    assert not places


def test_architecture_names_only_what_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_0-9/]+(?:\.py|/))`", text))
    assert len(named) > 30
    every = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    every |= {
        path.relative_to(SOURCE).as_posix() + "/" for path in SOURCE.rglob("*") if path.is_dir()
    }
    every |= {path.name + "/" for path in ROOT.iterdir() if path.is_dir()}
    lost = [name for name in named if not any(f"/{each}".endswith(f"/{name}") for each in every)]
    assert not lost


def test_the_map_of_the_architecture_shows_every_room_in_the_order_of_imports():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("## The map\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    shown = [name for row in rows for name in re.findall(r"`([\w.]+/?)`", row)]
    there = {path.name for path in SOURCE.glob("[a-z]*.py")}
    there |= {path.parent.name + "/" for path in SOURCE.glob("*/__init__.py")}
    assert sorted(shown) == sorted(there)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    layer_of = {name.strip(): at for at, row in enumerate(layers) for name in row.split("|")}
    order = [layer_of["stopwise." + name.removesuffix("/").removesuffix(".py")] for name in shown]
    assert order == sorted(order)


def test_the_glossary_has_every_word():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = set(re.findall(r"^\| ([a-z ,]+) \|", text, re.MULTILINE))
    words = {word.strip() for row in words for word in row.split(",")}
    for word in (
        "stage", "output", "answer", "depth", "prefix", "cost", "cumulative cost", "mistake cost",
        "disagreement", "evidence", "policy", "problem", "margin", "look", "full run",
        "confidence", "situation", "reference", "trust", "reading",
    ):  # fmt: skip
        assert word in words, word


def test_the_walks_of_the_architecture_name_what_is_in_each_file():
    """Where a row begins with a name, its file defines that name."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    walks = text.split("## Three walks\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w/]+\.py)` \| `([\w.]+)`", walks, re.MULTILINE)
    assert len(rows) >= 10
    wrong = []
    for file, name in rows:
        tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
        for part in name.split("."):
            inside = [node for node in ast.walk(tree) if getattr(node, "name", None) == part]
            if not inside:
                wrong.append((file, name))
                break
            tree = inside[0]
    assert not wrong
