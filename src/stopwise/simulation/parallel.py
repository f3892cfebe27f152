"""Replications in parallel, in a fixed order, with a clean stop on Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stopwise.checks import whole_number
from stopwise.simulation.engines import CHUNK, Engine
from stopwise.simulation.results import Chunk


def run_in_order(
    run_chunk: Callable[[range], Chunk],
    replications: int,
    engine: Engine,
    *,
    jobs: int,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Chunk]:
    """Yield the chunks in order, computed by `jobs` workers (-1: one for every core)."""
    if jobs != -1:
        jobs = whole_number("jobs", jobs, least=1)
    parts = [
        range(first, min(first + CHUNK, replications)) for first in range(0, replications, CHUNK)
    ]
    done = 0
    for part, chunk in zip(parts, _chunks(run_chunk, parts, engine, jobs), strict=True):
        done += len(part)
        if progress is not None:
            progress(done, replications)
        yield chunk


def _chunks(
    run_chunk: Callable[[range], Chunk], parts: list[range], engine: Engine, jobs: int
) -> Iterator[Chunk]:
    if jobs == 1 or len(parts) == 1:
        yield from map(run_chunk, parts)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(
        n_jobs=jobs, return_as="generator", prefer="threads" if engine.threads else "processes"
    )
    try:
        yield from parallel(delayed(run_chunk)(part) for part in parts)
    except KeyboardInterrupt:
        if not engine.threads:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=False, kill_workers=True)
        raise
