"""Replications in parallel, in a fixed order, with a clean stop on Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, get_args

from stopwise.checks import StopwiseError, fail, one_of, whole_number
from stopwise.costs import FloatArray
from stopwise.lazy import load
from stopwise.problem import IntArray
from stopwise.simulation.engines import Engine
from stopwise.simulation.results import Chunk

Backend = Literal["auto", "threads", "processes", "dask"]

# What is handed to a Dask cluster at a time, in tasks for every core: enough to keep it busy, and
# progress is shown after each helping (joblib's Dask backend returns whole lists only).
_HELPING = 8


@dataclass(frozen=True)
class Workers:
    """Who computes: threads or processes of this machine, or a Dask cluster.

    Args:
        jobs: how many workers; -1 for one for every core. A cluster uses all it has.
        backend: "auto" takes threads where the engine frees the interpreter, else processes.
        scheduler: the address of a Dask scheduler, such as "tcp://127.0.0.1:8786".

    >>> Workers(jobs=2, backend="dask")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: scheduler: got None, but need the address of a Dask scheduler,
    such as tcp://127.0.0.1:8786
    """

    jobs: int = 1
    backend: Backend = "auto"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.jobs != -1:
            whole_number("jobs", self.jobs, least=1)
        one_of("backend", self.backend, get_args(Backend))
        if self.backend == "dask" and not self.scheduler:
            raise fail(
                "scheduler",
                self.scheduler,
                "the address of a Dask scheduler, such as tcp://127.0.0.1:8786",
            )
        if self.backend != "dask" and self.scheduler is not None:
            raise StopwiseError('scheduler: an address is of use with backend "dask" only')


def run_part(engine: Engine, gaps: FloatArray, grid: IntArray, seed: int, indices: range) -> Chunk:
    """What a worker does: run some replications, return what the result needs of them."""
    return Chunk.of(engine.depth_counts(grid, seed, indices), gaps)


Work = tuple[Engine, FloatArray, IntArray, int, range]


def run_packed(work: Work) -> Chunk:
    """The same from one tuple, which Dask sends along with the task.

    Larger arguments it would keep on a few workers, and lose with them.
    """
    return run_part(*work)


def run_in_order(
    engine: Engine,
    gaps: FloatArray,
    grid: IntArray,
    seed: int,
    replications: int,
    *,
    workers: Workers,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Chunk]:
    """Yield the chunks in order, whoever computes them."""
    firsts = range(0, replications, engine.chunk)
    # Made as they are needed: a million replications are not a list.
    work = (
        (engine, gaps, grid, seed, range(first, min(first + engine.chunk, replications)))
        for first in firsts
    )
    engine.prepare()
    done = 0
    for chunk in _chunks(engine, work, len(firsts), workers):
        done += len(chunk.finals)
        if progress is not None:
            progress(done, replications)
        yield chunk


def _chunks(engine: Engine, work: Iterable[Work], number: int, workers: Workers) -> Iterator[Chunk]:
    if workers.backend == "dask":
        assert workers.scheduler is not None
        yield from _on_cluster(iter(work), workers.scheduler)
        return
    if workers.jobs == 1 or number == 1:
        yield from map(run_packed, work)
        return
    from joblib import Parallel, delayed

    threads = engine.threads if workers.backend == "auto" else workers.backend == "threads"
    parallel = Parallel(
        n_jobs=workers.jobs,
        return_as="generator",
        prefer="threads" if threads else "processes",
    )
    try:
        yield from parallel(delayed(run_packed)(item) for item in work)
    except KeyboardInterrupt:
        if not threads:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=False, kill_workers=True)
        raise


def _on_cluster(work: Iterator[Work], scheduler: str) -> Iterator[Chunk]:
    from joblib import Parallel, delayed, parallel_config

    with _client(scheduler) as client, parallel_config(backend="dask", client=client):
        helping = _HELPING * max(1, sum(client.ncores().values()))
        while items := list(islice(work, helping)):
            try:
                yield from Parallel(batch_size=1)(delayed(run_packed)(item) for item in items)
            except TimeoutError:
                raise StopwiseError(
                    f"scheduler: {scheduler} has no workers; start some with"
                    f" `dask worker {scheduler}` on machines where stopwise is installed"
                ) from None


@contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    """A connection to a Dask scheduler, or an error that says what is missing."""
    distributed = load("backend: dask", "distributed")
    try:
        client = distributed.Client(scheduler, timeout=5, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StopwiseError(
            f"scheduler: no Dask scheduler answers at {scheduler!r}; start one with"
            f" `dask scheduler` and give its address ({type(error).__name__})"
        ) from None
    try:
        yield client
    finally:
        client.close()
