"""A sweep: problems x policies x horizons x seeds, one row for each, kept as soon as it is known.

A folder holds the sweep: `grid.json` says which one it is, `cells/` has one small Parquet file for
every finished cell, and `sweep.parquet` has them all once the last is done. Every file appears
whole or not at all, so a sweep that was stopped, however rudely, goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from stopwise.checks import StopwiseError, fail, finite_number, known_keys, whole_number
from stopwise.lazy import load
from stopwise.policies.registry import make_policy
from stopwise.problem import Problem
from stopwise.simulation.run import simulate
from stopwise.simulation.streams import check_stream
from stopwise.version import __version__

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


@dataclass(frozen=True)
class Sweep:
    """What GRID.toml asks for, checked and complete.

    Attributes:
        problems: by the name under which they stand in the table.
        replications: the same for every cell.
    """

    problems: dict[str, Problem]
    policies: tuple[str, ...]
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    replications: int
    stream: str
    engine: str

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
    try:
        form = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StopwiseError(f"grid: this is not TOML ({error})") from None
    known_keys("grid", form, _KEYS)
    for key in ("problems", "policies", "horizons"):
        if key not in form:
            raise StopwiseError(f"grid: the field {key!r} is missing")
    labels = [make_policy(text).label() for text in _texts(form, "policies")]
    sweep = Sweep(
        problems=_read_problems(_texts(form, "problems"), folder, named),
        policies=_distinct("policies", labels),
        horizons=_numbers(form, "horizons", least=1),
        seeds=_numbers({"seeds": [0], **form}, "seeds", least=0),
        replications=whole_number("replications", form.get("replications", 500), least=1),
        stream=form.get("stream", "independent"),
        engine=form.get("engine", "auto"),
    )
    if sweep.engine not in ("auto", "fast", "reference"):
        raise fail("engine", sweep.engine, "auto, fast or reference")
    for name, problem in sweep.problems.items():
        try:
            check_stream(problem, sweep.stream)
        except StopwiseError as error:
            raise StopwiseError(f"{name}: {error}") from None
    return sweep


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
        try:
            problems[str(path.relative_to(base))] = Problem.from_json(path.read_bytes())
        except OSError as error:
            raise StopwiseError(f"{path}: cannot be read ({error.strerror})") from None
        except StopwiseError as error:
            raise StopwiseError(f"{path}: {error}") from None
    return problems


# ---- running it -----------------------------------------------------------------------------


def run_sweep(
    sweep: Sweep,
    out: Path,
    *,
    jobs: int = 1,
    backend: str = "auto",
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    finished: Callable[[Cell, int, int], None] | None = None,
) -> Path:
    """Run what is not done yet and return the path of the table of all cells.

    Args:
        out: the folder of the sweep; refused if it holds another one.
        progress: called with (replications done, replications in all), over the whole sweep.
        finished: called with (cell, cells done, cells in all) after each cell.
    """
    polars = load("sweep: writing Parquet", "polars")
    _claim(sweep, out)
    cells = sweep.cells
    total = len(cells) * sweep.replications
    for at, cell in enumerate(cells):
        path = _cell_path(out, at)
        if not path.exists():
            row = _run_cell(sweep, cell, at, total, jobs, backend, scheduler, progress)
            _write_whole(path, polars.DataFrame([row]).write_parquet)
            if finished is not None:
                finished(cell, at + 1, len(cells))
        if progress is not None:
            progress((at + 1) * sweep.replications, total)
    table = out / "sweep.parquet"
    frames = [polars.read_parquet(_cell_path(out, at)) for at in range(len(cells))]
    _write_whole(table, polars.concat(frames).write_parquet)
    return table


def cells_done(sweep: Sweep, out: Path) -> int:
    """How many cells of the sweep are already in the folder."""
    return sum(_cell_path(out, at).exists() for at in range(len(sweep.cells)))


def _cell_path(out: Path, at: int) -> Path:
    return out / "cells" / f"{at:06}.parquet"


def _claim(sweep: Sweep, out: Path) -> None:
    """Make the folder this sweep's own, or refuse it if it is another's."""
    mark = out / "grid.json"
    wanted = json.dumps(sweep.form(), indent=2)
    if mark.exists():
        if mark.read_text(encoding="utf-8") != wanted:
            raise StopwiseError(
                f"{out}: holds the results of another grid; give another folder with --out,"
                " or remove this one"
            )
        for rest in out.glob("**/*.part"):
            rest.unlink()
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StopwiseError(f"{out}: is not empty and holds no sweep; give another with --out")
    (out / "cells").mkdir(parents=True, exist_ok=True)
    _write_whole(mark, lambda part: part.write_text(wanted, encoding="utf-8"))


def _write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """The file appears under its name when all of it is on the disk, and not before."""
    part = path.with_name(path.name + ".part")
    write(part)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)


def _run_cell(
    sweep: Sweep,
    cell: Cell,
    at: int,
    total: int,
    jobs: int,
    backend: str,
    scheduler: str | None,
    progress: Callable[[int, int], None] | None,
) -> dict[str, Any]:
    problem = sweep.problems[cell.problem]
    start = time.perf_counter()
    before = at * sweep.replications
    result = simulate(
        problem,
        cell.policy,
        horizon=cell.horizon,
        replications=sweep.replications,
        seed=cell.seed,
        stream=sweep.stream,
        grid=[cell.horizon],
        engine=sweep.engine,
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        progress=None if progress is None else lambda done, _: progress(before + done, total),
    )
    regret = {
        f"regret_{key}": finite_number(key, value) if value == value else None  # nan is no value
        for key, value in vars(result.regret).items()
    }
    return {
        "problem": cell.problem,
        "problem_digest": digest(problem),
        "policy": result.policy,
        "horizon": cell.horizon,
        "seed": cell.seed,
        "replications": sweep.replications,
        "stream": result.stream,
        "engine": result.engine,
        **regret,
        "stages": list(problem.stages),
        "stage_share": list(result.stage_share),
        "optimal_stage": result.optimal_stage,
        "weak_dominance": result.weak_dominance,
        "seconds": time.perf_counter() - start,
        "stopwise_version": __version__,
    }
