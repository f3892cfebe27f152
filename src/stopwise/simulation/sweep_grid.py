"""What a sweep runs: GRID.toml, read and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from stopwise.checks import (
    StopwiseError,
    fail,
    known_names,
    names_fields,
    names_settings,
    parse_toml,
    whole_number,
)
from stopwise.policies.registry import make_policy
from stopwise.problem import Problem
from stopwise.simulation.engines import EngineName, check_engine
from stopwise.simulation.streams import Stream, check_stream
from stopwise.storage import read_whole

T = TypeVar("T")

_VERSION = 1
_KEYS = ("problems", "policies", "horizons", "seeds", "replications", "stream", "engine")


@dataclass(frozen=True)
class Cell:
    """One simulation of the sweep."""

    problem: str
    policy: str
    horizon: int
    seed: int


@names_fields
@dataclass(frozen=True)
class Sweep:
    """What a sweep runs: every policy on every problem, at every horizon, with every seed.

    Args:
        problems: by the name under which they stand in the table.
        policies: names, with settings after a colon: `"uss-ucb:alpha=0.51"`.
        horizons: rounds in a replication.
        seeds: each of them is a simulation of its own.
        replications: the same for every cell.
        stream: "independent" draws, or "round-robin" over the rows of the problems.
        engine: "auto", "fast" or "reference".

    >>> import stopwise as sw
    >>> problems = {"pima 3": sw.paper.problem("pima", 3)}
    >>> sweep = sw.Sweep(problems, ["uss-ts", "uss-ucb"], [10, 100], replications=20)
    >>> len(sweep.cells), sweep.cells[0]
    (4, Cell(problem='pima 3', policy='uss-ts', horizon=10, seed=0))
    >>> sweep.form()["policies"]
    ['uss-ts', 'uss-ucb']
    """

    problems: Mapping[str, Problem]
    policies: Sequence[str]
    horizons: Sequence[int]
    seeds: Sequence[int] = (0,)
    replications: int = 500
    stream: Stream = "independent"
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        labels = [make_policy(text).label() for text in _texts("policies", self.policies)]
        put("policies", _distinct("policies", labels))
        put("horizons", _numbers("horizons", self.horizons, least=1))
        put("seeds", _numbers("seeds", self.seeds, least=0))
        put("replications", whole_number("replications", self.replications, least=1))
        check_engine(self.engine)
        if not isinstance(self.problems, Mapping) or not self.problems:
            raise fail("problems", self.problems, "problems by name, such as {'one': problem}")
        put("problems", dict(self.problems))
        for name, problem in self.problems.items():
            if not isinstance(problem, Problem):
                raise fail(f"problems[{name!r}]", problem, "a Problem")
            try:
                check_stream(problem, self.stream)
            except StopwiseError as error:
                raise StopwiseError(f"{name}: {error}") from None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All simulations, in the order in which they run."""
        return tuple(
            Cell(*choice)
            for choice in product(self.problems, self.policies, self.horizons, self.seeds)
        )

    def form(self) -> dict[str, Any]:
        """What makes it this sweep and no other; problems by a digest of all they say."""
        return {
            "version": _VERSION,
            "problems": {name: digest(problem) for name, problem in self.problems.items()},
            "policies": list(self.policies),
            "horizons": list(self.horizons),
            "seeds": list(self.seeds),
            "replications": self.replications,
            "stream": self.stream,
            "engine": self.engine,
        }


def digest(problem: Problem) -> str:
    """A short fingerprint of a problem."""
    return hashlib.sha256(problem.to_json().encode()).hexdigest()[:16]


@names_settings
def read_sweep(
    text: str | Path,
    folder: str | Path = "",
    named: Callable[[str], Problem | None] = lambda name: None,
) -> Sweep:
    r"""Read what stands in GRID.toml; a `Sweep` itself needs no file.

    Args:
        text: what stands in it, or the path of the file (`sw.read_sweep("grid.toml")`).
        folder: what paths and patterns of problem files are relative to. Where a path is given, the
            folder of the file, unless another is named.
        named: gives the problem of a name that is no file, or None if it knows none.

    >>> import stopwise as sw
    >>> text = 'problems = ["pima 3"]\npolicies = ["uss-ts"]\nhorizons = [100]'
    >>> read_sweep(text, named=lambda name: sw.paper.problem("pima", 3)).replications
    500
    """
    if isinstance(text, Path) or (isinstance(text, str) and _is_path(text)):
        folder = folder or Path(text).parent
        text = read_whole(text, "grid")
    form = parse_toml("grid", text)
    known_names("grid", form, _KEYS)
    for key in ("problems", "policies", "horizons"):
        if key not in form:
            raise StopwiseError(f"grid: the field {key!r} is missing")
    problems = _read_problems(_texts("problems", form["problems"]), Path(folder), named)
    return Sweep(**{**form, "problems": problems})


def _is_path(text: str) -> bool:
    """Whether this can only be the name of a file: what a file says has a field, so an `=`."""
    return "=" not in text and "\n" not in text.strip() and bool(text.strip())


def _texts(field: str, values: Any) -> list[str]:
    given = _listed(field, values, "a list of texts, at least one")
    if not all(isinstance(value, str) for value in given):
        raise fail(field, values, "a list of texts, at least one")
    return given


def _numbers(field: str, values: Any, *, least: int) -> tuple[int, ...]:
    given = _listed(field, values, "a list of whole numbers, at least one")
    numbers = (whole_number(f"{field}[{at}]", v, least=least) for at, v in enumerate(given))
    return _distinct(field, tuple(numbers))


def _listed(field: str, values: Any, accepted: str) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
        raise fail(field, values, accepted)
    return list(values)


def _distinct(field: str, values: Sequence[T]) -> tuple[T, ...]:
    for value in values:
        if values.count(value) > 1:
            raise fail(field, value, "each only once")
    return tuple(values)


def _read_problems(
    entries: list[str], folder: Path, named: Callable[[str], Problem | None]
) -> dict[str, Problem]:
    problems: dict[str, Problem] = {}
    for entry in entries:
        problem = named(entry)
        found = {entry: problem} if problem is not None else _read_files(entry, folder)
        for name, value in found.items():
            if name in problems:
                raise fail("problems", name, "each only once")
            problems[name] = value
    return problems


def _read_files(entry: str, folder: Path) -> dict[str, Problem]:
    pattern = Path(entry)
    base = Path(pattern.anchor) if pattern.is_absolute() else folder
    paths = sorted(base.glob(str(pattern.relative_to(pattern.anchor))))
    if not paths:
        raise StopwiseError(f"problems: {entry!r} matches no file in {folder}, and no known name")
    problems = {}
    for path in paths:
        text = read_whole(path)
        try:
            problems[str(path.relative_to(base))] = Problem.from_json(text)
        except StopwiseError as error:
            raise StopwiseError(f"{path}: {error}") from None
    return problems
