"""`simulate`: many replications of a policy on a problem, in parallel, the same for every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stopwise.checks import a_function, fail, names_settings, whole_number
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy
from stopwise.policies.oracle import with_oracle_stage
from stopwise.policies.registry import make_policy
from stopwise.problem import Problem
from stopwise.simulation.engines import EngineName, choose_engine
from stopwise.simulation.grids import GridName, make_grid
from stopwise.simulation.parallel import Backend, Workers, run_in_order
from stopwise.simulation.results import Simulation, summarise
from stopwise.simulation.streams import Stream, check_stream


@names_settings
def simulate(
    problem: Problem,
    policy: str | Policy,
    *,
    horizon: int,
    replications: int,
    seed: int = 0,
    stream: Stream = "independent",
    grid: GridName | Sequence[int] = "linear",
    engine: EngineName = "auto",
    jobs: int = 1,
    backend: Backend = "auto",
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Run a policy on a problem and measure its regret.

    The result is bit-identical for the same seed, whatever the number of jobs and wherever
    they run.

    Args:
        problem: what is true; the policy never sees it.
        policy: a policy, or the name of a registered one, with settings (`"uss-ucb:alpha=0.51"`).
        horizon: rounds in a replication.
        replications: independent runs.
        seed: feeds one `numpy.random.SeedSequence`, spawned for every replication.
        stream: "independent" draws, or "round-robin" over the rows of a data set.
        grid: rounds at which the curve is reported: "linear", "log" or a list.
        engine: "auto" (the fast one where it knows the policy), "fast", or "reference" for the
            literal loop.
        jobs: how many workers; -1 for all cores.
        backend: "auto", "threads", "processes", or "dask" for a cluster (`stopwise[cluster]`).
        scheduler: the address of the Dask scheduler, such as "tcp://127.0.0.1:8786".
        progress: called with (replications done, replications in all).

    >>> from stopwise import Costs
    >>> costs = Costs.from_cumulative((0.0, 0.1))
    >>> problem = Problem.from_rates([0.3, 0.1], [[0, 0.2], [0.2, 0]], costs)
    >>> result = simulate(problem, "fixed:stage=0", horizon=100, replications=3)
    >>> round(result.regret.mean, 6), result.stage_share
    (10.0, (1.0, 0.0))
    """
    if not isinstance(problem, Problem):
        raise fail("problem", problem, "a Problem, such as sw.paper.problem('pima', 3)")
    workers = Workers(jobs, backend, scheduler)
    horizon = whole_number("horizon", horizon, least=1)
    replications = whole_number("replications", replications, least=1)
    seed = whole_number("seed", seed, least=0)
    if progress is not None:
        a_function("progress", progress, "a function of (done, total), or None")
    chosen = make_policy(policy)
    checked_stream = check_stream(problem, stream)
    label = chosen.label()
    ready = with_oracle_stage(chosen, problem.optimal_stage).for_horizon(horizon)
    # A setting that does not fit this cascade is refused here, whichever engine runs.
    ready.probabilities(Evidence(problem.stage_count), 1, problem.costs)
    rounds = make_grid(grid, horizon)
    picked = choose_engine(engine, problem, ready, checked_stream)
    chunks = run_in_order(
        picked, problem.gaps, rounds, seed, replications, workers=workers, progress=progress
    )
    regret, curve, finals, stage_counts = summarise(chunks, rounds)
    return Simulation(
        policy=label,
        horizon=horizon,
        replications=replications,
        seed=seed,
        stream=checked_stream,
        engine=picked.name,
        optimal_stage=problem.optimal_stage,
        weak_dominance=problem.weak_dominance,
        regret=regret,
        stage_share=tuple(
            float(share) for share in stage_counts.sum(axis=0) / (horizon * replications)
        ),
        curve=curve,
        finals=finals,
        stage_counts=stage_counts,
        stages=problem.stages,
    )
