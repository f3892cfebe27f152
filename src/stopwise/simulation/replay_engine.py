"""Policies over given rows, compiled: the depth of every round, exact in law.

What the plain loop does (draw a depth, show the policy the outputs up to it, count them), in the
order of the rows. The caller prices rounds and counts changed answers from the depths.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stopwise.checks import StopwiseError, fail, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence
from stopwise.lazy import missing
from stopwise.policies.base import Policy
from stopwise.problem import IntArray
from stopwise.simulation.compiled import (
    SETTINGS_OF,
    confidence_settings,
    has_kernel,
    loop_of,
    thompson_settings,
)

Order = Literal["log", "shuffled"]
Depths = NDArray[np.uint8]

_MOST_STAGES = 255

# (codes, thresholds, four random words, depths); fills the depths.
RowKernel = Callable[[NDArray[np.int32], FloatArray, NDArray[np.uint64], Depths], None]


@dataclass(frozen=True)
class ReplayRun:
    """One replication over rows.

    Attributes:
        order: the row that each round met.
        depths: the depth of each round, 0-based.
    """

    order: IntArray
    depths: Depths


def has_row_kernel(policy: Policy) -> bool:
    """Whether `replay_rows` can run the policy; if not, the caller runs the plain loop.

    The built-in policies have a kernel (counts times a fraction, `temper=1.5`, have none), and so
    has a policy with a `compiled_rule`; all need numba.

    >>> from stopwise import make_policy
    >>> has_row_kernel(make_policy("uss-ts")), has_row_kernel(make_policy("uss-ts-jump:temper=1.5"))
    (True, False)
    """
    if importlib.util.find_spec("numba") is None:
        return False
    return has_kernel(policy)


def replay_rows(
    policy: Policy,
    codes: ArrayLike,
    costs: Costs,
    *,
    order: Order = "log",
    rounds: int | None = None,
    replications: int = 1,
    seed: int = 0,
    jobs: int = 1,
) -> Iterator[ReplayRun]:
    """Run a policy over rows of outputs, one replication after the other.

    Exact in law: depths have the distribution that the plain loop over `policy.draw` and
    `policy.record` gives, with other random numbers. The same seed gives the same runs, whatever
    the number of jobs; with "shuffled" the orders are those of the plain loop in `logs`.

    Args:
        policy: one with a kernel, see `has_row_kernel`. An oracle must have its stage; rules that
            plan ahead take the number of rounds as their horizon, unless they have one.
        codes: one row per item, one column per stage; equal codes agree, and a code below 0 is a
            stage that abstained: neither agreement nor disagreement.
        order: "log" takes the rows as they come, "shuffled" in a new order in every replication.
        rounds: rounds in a replication; by default as many as there are rows.
        replications: independent runs.
        seed: feeds one `numpy.random.SeedSequence`, spawned for every replication.
        jobs: threads; -1 for one for every core.

    >>> from stopwise import make_policy
    >>> codes, costs = [[0, 0], [0, 1], [1, -1]] * 100, Costs.from_cumulative((0, 0.6))
    >>> runs = list(replay_rows(make_policy("uss-ts"), codes, costs, replications=2))
    >>> len(runs), runs[0].depths.shape, runs[0].depths.mean() < 0.5
    (2, (300,), np.True_)
    """
    table = _check_codes(codes, costs)
    if order not in get_args(Order):
        raise fail("order", order, " or ".join(get_args(Order)))
    length = len(table)
    if rounds is not None:
        length = min(length, whole_number("rounds", rounds, least=1))
    replications = whole_number("replications", replications, least=1)
    if jobs != -1:
        jobs = whole_number("jobs", jobs, least=1)
    seeds = np.random.SeedSequence(whole_number("seed", seed, least=0)).spawn(replications)
    ready = policy.for_horizon(length)
    # A setting that does not fit this cascade is refused here, before the rows are met.
    ready.probabilities(Evidence(costs.stage_count), 1, costs)
    kernel = row_kernel(ready)
    thresholds = np.array(costs.thresholds)

    def run(child: np.random.SeedSequence) -> ReplayRun:
        order_seed, policy_seed = child.spawn(2)
        index = np.arange(length)
        if order == "shuffled":
            index = np.random.default_rng(order_seed).permutation(len(table))[:length]
        depths = np.zeros(length, dtype=np.uint8)
        state = policy_seed.generate_state(4, np.uint64).astype(np.uint64)
        kernel(np.ascontiguousarray(table[index]), thresholds, state, depths)
        return ReplayRun(index, depths)

    if jobs == 1 or replications == 1:
        yield from map(run, seeds)
        return
    from joblib import Parallel, delayed

    # The kernels free the interpreter, so threads are enough and the rows are not copied.
    workers = Parallel(n_jobs=jobs, return_as="generator", prefer="threads")
    yield from workers(delayed(run)(child) for child in seeds)


def row_kernel(policy: Policy) -> RowKernel:
    """The compiled loop of a policy over rows; refused where it has none."""
    if importlib.util.find_spec("numba") is None:
        raise missing("replay: the compiled loop", "numba")
    if not has_kernel(policy):
        raise StopwiseError(
            f"replay: {policy.name} has no compiled loop; run the plain one, or give the policy a"
            " compiled_rule"
        )
    return loop_of(policy, decided=_always, built_in=_built_in, own=_own)


def _own(rule: Any) -> RowKernel:
    from stopwise.simulation.kernels import plain

    return lambda codes, thresholds, state, depths: plain.run_rows(
        codes, thresholds, rule, state, depths
    )


def _built_in(policy: Policy) -> RowKernel:
    from stopwise.simulation.kernels.confidence import over_rows as confidence
    from stopwise.simulation.kernels.thompson import over_rows as thompson
    from stopwise.simulation.kernels.value import over_rows as value

    make = SETTINGS_OF[type(policy)]
    settings = make(policy)
    if make is thompson_settings:
        return lambda codes, thresholds, state, depths: thompson.run_rows(
            codes, thresholds, settings, state, depths
        )
    run = confidence.run_rows if make is confidence_settings else value.run_rows
    return lambda codes, thresholds, state, depths: run(codes, thresholds, settings, depths)


def _always(policy: Any) -> RowKernel:
    """A rule that has decided needs no loop."""

    def fill(codes: Any, thresholds: FloatArray, state: Any, depths: Depths) -> None:
        depths[:] = range(len(thresholds))[policy.stage]

    return fill


def _check_codes(codes: ArrayLike, costs: Costs) -> NDArray[np.int32]:
    accepted = f"rows of {costs.stage_count} whole numbers, at least one row"
    table = np.asarray(codes)
    if table.ndim != 2 or table.shape[1] != costs.stage_count or not len(table):
        raise fail("codes", f"a table of shape {table.shape}", accepted)
    if table.dtype.kind not in "iu" or table.max() > np.iinfo(np.int32).max:
        raise fail("codes", table.dtype, accepted + ", below 2^31")
    if costs.stage_count > _MOST_STAGES:
        raise fail("codes", f"{costs.stage_count} stages", f"at most {_MOST_STAGES} stages")
    return np.asarray(np.maximum(table, -1), dtype=np.int32)
