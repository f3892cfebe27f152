"""Replications in parallel, in a fixed order, with a clean stop on Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stopwise.checks import whole_number
from stopwise.costs import FloatArray
from stopwise.problem import IntArray
from stopwise.simulation.engines import Engine
from stopwise.simulation.results import Chunk


def run_part(engine: Engine, gaps: FloatArray, grid: IntArray, seed: int, indices: range) -> Chunk:
    """What a worker does: run some replications, return what the result needs of them."""
    return Chunk.of(engine.depth_counts(grid, seed, indices), gaps)


def run_in_order(
    engine: Engine,
    gaps: FloatArray,
    grid: IntArray,
    seed: int,
    replications: int,
    *,
    jobs: int,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Chunk]:
    """Yield the chunks in order, computed by `jobs` workers (-1: one for every core)."""
    if jobs != -1:
        jobs = whole_number("jobs", jobs, least=1)
    parts = [
        range(first, min(first + engine.chunk, replications))
        for first in range(0, replications, engine.chunk)
    ]
    engine.prepare()
    done = 0
    for part, chunk in zip(parts, _chunks(engine, gaps, grid, seed, parts, jobs), strict=True):
        done += len(part)
        if progress is not None:
            progress(done, replications)
        yield chunk


def _chunks(
    engine: Engine, gaps: FloatArray, grid: IntArray, seed: int, parts: list[range], jobs: int
) -> Iterator[Chunk]:
    if jobs == 1 or len(parts) == 1:
        for part in parts:
            yield run_part(engine, gaps, grid, seed, part)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(
        n_jobs=jobs, return_as="generator", prefer="threads" if engine.threads else "processes"
    )
    try:
        yield from parallel(delayed(run_part)(engine, gaps, grid, seed, part) for part in parts)
    except KeyboardInterrupt:
        if not engine.threads:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=False, kill_workers=True)
        raise
