"""What a sweep runs: GRID.toml, read and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
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
    """What GRID.toml asks for, checked and complete.

    Attributes:
        problems: by the name under which they stand in the table.
        replications: the same for every cell.

    >>> from pathlib import Path
    >>> import stopwise as sw
    >>> costs = sw.Costs.from_stages((0.0, 0.1))
    >>> problem = sw.Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
    >>> lines = ["problems = ['one']", "policies = ['uss-ts', 'uss-ucb']", "horizons = [10, 100]"]
    >>> sweep = sw.read_sweep(chr(10).join(lines), Path(), lambda name: problem)
    >>> len(sweep.cells), sweep.cells[0].policy, sweep.cells[0].horizon
    (4, 'uss-ts', 10)
    """

    problems: dict[str, Problem]
    policies: tuple[str, ...]
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    replications: int
    stream: Stream
    engine: EngineName

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
    text: str, folder: Path, named: Callable[[str], Problem | None] = lambda name: None
) -> Sweep:
    """Read GRID.toml; paths and patterns of problem files are relative to `folder`.

    Args:
        named: gives the problem of a name that is no file, or None if it knows none.

    >>> read_sweep("policies = ['uss-ts']", Path("."))
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: grid: the field 'problems' is missing
    """
    form = parse_toml("grid", text)
    known_names("grid", form, _KEYS)
    for key in ("problems", "policies", "horizons"):
        if key not in form:
            raise StopwiseError(f"grid: the field {key!r} is missing")
    labels = [make_policy(text).label() for text in _texts(form, "policies")]
    grid = Sweep(
        problems=_read_problems(_texts(form, "problems"), folder, named),
        policies=_distinct("policies", labels),
        horizons=_numbers(form, "horizons", least=1),
        seeds=_numbers({"seeds": [0], **form}, "seeds", least=0),
        replications=whole_number("replications", form.get("replications", 500), least=1),
        stream=form.get("stream", "independent"),
        engine=check_engine(form.get("engine", "auto")),
    )
    for name, problem in grid.problems.items():
        try:
            check_stream(problem, grid.stream)
        except StopwiseError as error:
            raise StopwiseError(f"{name}: {error}") from None
    return grid


def _texts(form: dict[str, Any], key: str) -> list[str]:
    values = form[key]
    if not isinstance(values, list) or not values or not all(isinstance(v, str) for v in values):
        raise fail(key, values, "a list of texts, at least one")
    return values


def _numbers(form: dict[str, Any], key: str, *, least: int) -> tuple[int, ...]:
    values = form[key]
    if not isinstance(values, list) or not values:
        raise fail(key, values, "a list of whole numbers, at least one")
    return _distinct(
        key, [whole_number(f"{key}[{at}]", v, least=least) for at, v in enumerate(values)]
    )


def _distinct(key: str, values: Sequence[T]) -> tuple[T, ...]:
    for value in values:
        if values.count(value) > 1:
            raise fail(key, value, "each only once")
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
