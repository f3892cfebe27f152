"""The shape of the tree: a name is one thing; rooms and files are small enough to look over."""

import ast
import re
from collections import defaultdict
from doctest import DocTestParser
from pathlib import Path

import stopwise

SOURCE = Path(stopwise.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# Tests of the project as a whole whose name is also that of a module.
OF_THE_WHOLE = {"test_words.py"}

LARGEST_ROOM = 14
LONGEST_FILE = 400


def _names(tree):
    """Classes and the other capitalised names that a module defines or renames."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and not target.id.isupper():
                yield target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (part.asname for part in node.names if part.asname not in (None, part.name))


def test_no_two_public_classes_or_types_share_a_name():
    where = defaultdict(list)
    for path in MODULES:
        for name in _names(ast.parse(path.read_text(encoding="utf-8"))):
            if name[0].isupper():
                where[name].append(str(path.relative_to(SOURCE)))
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


def test_no_class_has_the_name_of_a_well_known_one():
    names = {name for path in MODULES for name in _names(ast.parse(path.read_text("utf-8")))}
    assert (
        names & {"Path", "Enum", "Any", "Callable", "Iterator", "Queue", "Thread", "Lock"} == set()
    )


def test_rooms_hold_few_files():
    crowded = {}
    for folder in {path.parent for path in MODULES}:
        own = [p for p in folder.glob("*.py") if p.name not in ("__init__.py", "__main__.py")]
        if len(own) > LARGEST_ROOM:
            crowded[str(folder.relative_to(SOURCE))] = len(own)
    assert crowded == {}


def _lines_but_for_examples(text):
    """How long a file is: no method may go without an example for want of lines."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    docstrings = [ast.get_docstring(node) or "" for node in documented]
    examples = [each for doc in docstrings for each in DocTestParser().get_examples(doc)]
    return len(text.splitlines()) - sum((e.source + e.want).count("\n") for e in examples)


def test_examples_do_not_count_as_lines():
    text = "def f():\n    '''F.\n\n    >>> f()\n    1\n    '''\n"
    assert _lines_but_for_examples(text) == 4


def test_files_are_short():
    long = {}
    for path in [*MODULES, *sorted(TESTS.rglob("*.py"))]:
        lines = _lines_but_for_examples(path.read_text(encoding="utf-8"))
        if lines > LONGEST_FILE:
            long[path.name] = lines
    assert long == {}


def _rooms_by_name():
    """Where each name of the package stands; a folder may also be tested from the one around it."""
    rooms = defaultdict(set)
    for path in MODULES:
        if path.name != "__init__.py":
            rooms[path.stem].add(path.parent.relative_to(SOURCE))
        elif path.parent != SOURCE:
            folder = path.parent.relative_to(SOURCE)
            rooms[folder.name] |= {folder, folder.parent}
    return rooms


def test_tests_lie_where_what_they_test_lies():
    rooms = _rooms_by_name()
    files = sorted(TESTS.rglob("*.py"))
    folders = {path.parent.relative_to(TESTS) for path in files}
    assert {
        folder for folder in folders if not (SOURCE / folder / "__init__.py").is_file()
    } == set()
    tests = [path for path in files if path.name.startswith("test_")]
    elsewhere = {}
    for path in tests:
        own = rooms.get(path.stem.removeprefix("test_"))
        if own and path.name not in OF_THE_WHOLE and path.parent.relative_to(TESTS) not in own:
            elsewhere[path.relative_to(TESTS).as_posix()] = sorted(map(str, own))
    assert elsewhere == {}


WRITES = re.compile(
    r"\b(?:write_text|write_bytes|to_csv|write_csv|savefig|write_parquet|os\.rename|os\.replace)"
    r"\(([^)]*)"
)


def test_whole_files_are_written_in_one_place():
    """Only `storage.write_whole` writes whole files, so that all of them survive a power cut."""
    allowed = {
        "simulation/kernels/cache.py",  # a stamp beside compiled code: lost, it is compiled again
        "storage.py",
    }
    wrong, found = [], set()
    for path in MODULES:
        name = path.relative_to(SOURCE).as_posix()
        for line in path.read_text(encoding="utf-8").splitlines():
            given = WRITES.search(line)
            into_memory = given is not None and given[1].startswith(("buffer", "picture"))
            if given and name in allowed:
                found.add(name)
            if name not in allowed and given and not into_memory and ">>>" not in line:
                wrong.append((name, line.strip()))
    assert wrong == []
    assert found == allowed, "the search finds what there is"


def test_choices_stand_in_one_place():
    """The words of a `Literal` stand once; whoever needs them as a tuple asks `get_args`."""
    named, places = set(), defaultdict(set)
    for path in MODULES:
        name = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) > 1:
                words = [each.value for each in node.elts if isinstance(each, ast.Constant)]
                if len(words) == len(node.elts):
                    places[frozenset(words)].add((name, node.lineno))
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
                choices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                words = [each.value for each in choices if isinstance(each, ast.Constant)]
                named.add(frozenset(words))
    assert len(named) > 15
    twice = {tuple(words): places[words] for words in named if len(places[words]) > 1}
    # An order in which something is told, or words of a sentence, are no settings.
    own = {"paper/comparison.py", "logs/reporting/headline.py"}
    assert {w: p for w, p in twice.items() if len([1 for at, _ in p if at not in own]) > 1} == {}


def test_connections_are_closed():
    """`with sqlite3.connect(...)` ends a transaction and closes nothing: Python 3.13 warns."""
    files = [*MODULES, *sorted(TESTS.rglob("*.py"))]
    kept_open = re.compile(r"^ *with sqlite3\.connect\(", re.MULTILINE)
    open_ones = [path.name for path in files if kept_open.search(path.read_text("utf-8"))]
    assert open_ones == []
