"""`replay`: a policy over a log as if live, beside the honest baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, get_args

import numpy as np

from stopwise.checks import StopwiseError, names_options, names_settings, one_of, whole_number
from stopwise.display import frame, html_table
from stopwise.evidence import ABSTAINED, Evidence
from stopwise.logs.formatting import amount, counted, share
from stopwise.logs.reading.call_order import in_call_order
from stopwise.logs.reading.rows import LogRows, read_rows
from stopwise.logs.replaying.alone import run_alone
from stopwise.logs.replaying.outcomes import ReplayOutcome, RunDepths, Scorer, baselines, summarise
from stopwise.logs.reporting.drawing import plot_stage_shares
from stopwise.logs.settings import LogOptions, LogSettings, settings_from
from stopwise.policies.base import Policy
from stopwise.policies.oracle import with_oracle_stage
from stopwise.policies.per_item.learning import run_over
from stopwise.policies.per_item.situation import ItemPolicy
from stopwise.policies.registry import DEFAULT_POLICY, make_policy
from stopwise.problem import IntArray
from stopwise.simulation.replay_engine import Order, has_row_kernel, replay_rows

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Replay:
    """The result of `replay`: the policy first, then the baselines.

    Attributes:
        over_time: stage share of the policy in each part of the rounds.
        optimal_stage: with truth, the best fixed stage of these rows.
        notes: what should be said of the truth's labels.

    >>> import stopwise as sw
    >>> settings = sw.example_settings()
    >>> result = sw.replay(sw.example_log(), "fixed:stage=0", replications=2, **settings)
    >>> result.stages, result.rounds
    (('tree', 'linear', 'kernel'), 1797)
    >>> result.to_frame().height == len(result.outcomes)
    True
    >>> result.to_dict()["policy"], result.plot().get_xlabel()
    ('fixed:stage=0', 'rounds')
    """

    policy: str
    stages: tuple[str, ...]
    rounds: int
    replications: int
    order: str
    seed: int
    left_out: int
    outcomes: tuple[ReplayOutcome, ...]
    over_time: tuple[tuple[int, tuple[float, ...]], ...]
    optimal_stage: int | None
    notes: tuple[str, ...] = ()

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row for each way to stop: the policy first."""
        return frame([_record(self, outcome) for outcome in self.outcomes])

    @names_settings
    def plot(self, ax: Axes | None = None) -> Axes:
        """Where the policy stopped, in each part of the rounds, on matplotlib axes."""
        return plot_stage_shares(self.stages, self.over_time, ax)

    def __str__(self) -> str:
        first = self.outcomes[0]
        return (
            f"{self.policy} over {counted(self.rounds, 'item')}: each costs {amount(first.cost)} on"
            f" average, and {share(first.differs)} of the answers differ from those of"
            f" {self.stages[-1]}"
        )

    def __repr__(self) -> str:
        return f"<Replay of {self.policy} over {counted(self.rounds, 'item')}>"

    def _repr_html_(self) -> str:
        rows = [[one.name, amount(one.cost), *_shares(one)] for one in self.outcomes]
        known = self.outcomes[0].error_rate is not None
        titles = ["way to stop", "cost per item", f"differs from {self.stages[-1]}", "no answer"]
        titles += ["wrong"] * known + [f"stops at {stage}" for stage in self.stages]
        return html_table(titles, rows, title=str(self))

    def to_dict(self) -> dict[str, Any]:
        """What `stopwise replay --json` prints; regrets are in mistakes per item."""
        return {
            "version": 1,
            "policy": self.policy,
            "stages": list(self.stages),
            "rounds": self.rounds,
            "replications": self.replications,
            "order": self.order,
            "seed": self.seed,
            "rows_left_out": self.left_out,
            "notes": list(self.notes),
            "optimal_stage": None
            if self.optimal_stage is None
            else self.stages[self.optimal_stage],
            "outcomes": [
                {key: list(v) if isinstance(v, tuple) else v for key, v in vars(outcome).items()}
                for outcome in self.outcomes
            ],
            "over_time": [
                {"rounds": rounds, "stage_share": list(share)} for rounds, share in self.over_time
            ],
        }


def _shares(outcome: ReplayOutcome) -> list[str]:
    """What a notebook shows in percent."""
    wrong = [] if outcome.error_rate is None else [outcome.error_rate]
    return [
        share(one) for one in (outcome.differs, outcome.no_answer, *wrong, *outcome.stage_share)
    ]


def _record(result: Replay, outcome: ReplayOutcome) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": outcome.name,
        "cost": outcome.cost,
        "differs": outcome.differs,
        "no_answer": outcome.no_answer,
    }
    if outcome.error_rate is not None:
        record |= {"error_rate": outcome.error_rate, "regret": outcome.regret}
    for stage, value in zip(result.stages, outcome.stage_share, strict=True):
        record[f"stops at {stage}"] = value
    return record


@names_options(LogOptions)
def replay(
    log: object,
    policy: str | Policy = DEFAULT_POLICY,
    settings: LogSettings | None = None,
    *,
    order: Order = "log",
    replications: int = 20,
    rounds: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    **given: Unpack[LogOptions],
) -> Replay:
    """Run a policy over a log, showing it in each round only the stages that it calls.

    Args:
        order: "log" takes the rows as they come, "shuffled" in a new order in every replication.
        replications: independent runs.
        rounds: rows in a run; by default all.
        given: as for `analyze`. With `calls="alone"` a round calls the policy's stage, and all
            stages in full runs of a known, falling probability.
        jobs: workers; -1 for one for every core. The result does not depend on it.

    >>> import polars
    >>> frame = polars.DataFrame({"fast": [0, 1] * 200, "slow": [0, 1] * 200})
    >>> result = replay(frame, stages=["fast", "slow"], costs=[0, 0.5], replications=5)
    >>> result.outcomes[0].differs, result.outcomes[0].stage_share[0] > 0.9
    (0.0, True)
    """
    settings = in_call_order(log, settings_from(settings, given))
    one_of("order", order, get_args(Order))
    replications = whole_number("replications", replications, least=1)
    seed = whole_number("seed", seed, least=0)
    rows = read_rows(log, settings)
    if settings.truth is not None:
        rows = _with_known_truth(rows)
    length = len(rows.codes)
    if rounds is not None:
        length = min(length, whole_number("rounds", rounds, least=1))
    if order == "log":
        rows = rows.where(np.arange(length))
    chosen = make_policy(policy)
    scorer = Scorer(rows)
    if chosen.name == "oracle" and scorer.optimal_stage is None:
        raise StopwiseError(
            "policy oracle: give truth (--truth), which alone can tell it the best stage"
        )
    ready = with_oracle_stage(chosen, scorer.optimal_stage or 0).for_horizon(length)
    runs = list(_runs(rows, ready, order, length, replications, seed, jobs, progress))
    outcome, over_time = summarise(chosen.label(), scorer, runs)
    return Replay(
        policy=chosen.label(),
        stages=rows.stages,
        rounds=length,
        replications=replications,
        order=order,
        seed=seed,
        left_out=rows.left_out,
        outcomes=(outcome, *baselines(scorer, outcome)),
        over_time=over_time,
        optimal_stage=scorer.optimal_stage,
        notes=rows.notes,
    )


def run_once(rows: LogRows, policy: Policy, order: IntArray, rng: np.random.Generator) -> RunDepths:
    """One run over the rows in this order: how deep every round goes and who answers it.

    The policy is handed the answers at the stages that it called and nothing else.
    """
    if isinstance(policy, ItemPolicy):
        met = rows.observations().where(order)
        run = run_over(policy, rows.stages, met, rows.costs, rng)
        return RunDepths(order, run.depths, run.answering)
    evidence = Evidence(len(rows.stages))
    answers = rows.counted_answers()[order]
    outputs = [tuple(ABSTAINED if code < 0 else code for code in row) for row in answers.tolist()]
    depths = np.empty(len(order), dtype=np.int64)
    for at, output in enumerate(outputs):
        depth = policy.draw(evidence, at + 1, rows.costs, rng)
        policy.record(evidence, at + 1, output[: depth + 1])
        depths[at] = depth
    return RunDepths(order, depths, depths)


def _runs(
    rows: LogRows,
    policy: Policy,
    order: Order,
    length: int,
    replications: int,
    seed: int,
    jobs: int,
    progress: Callable[[int, int], None] | None,
) -> Iterator[RunDepths]:
    """Runs in the compiled engine; policies without a kernel in the plain loop."""
    runs: Iterator[RunDepths]
    if has_row_kernel(policy) and not rows.alone:
        compiled = replay_rows(
            policy, rows.counted_answers(), rows.costs, order=order, rounds=length,
            replications=replications, seed=seed, jobs=jobs,
        )  # fmt: skip
        done = ((run.order, run.depths.astype(np.int64)) for run in compiled)
        runs = (RunDepths(index, depths, depths) for index, depths in done)
    else:
        runs = _plain_runs(rows, policy, order, length, replications, seed, jobs)
    for at, run in enumerate(runs):
        if progress is not None:
            progress(at + 1, replications)
        yield run


def _plain_runs(
    rows: LogRows, policy: Policy, order: str, length: int, replications: int, seed: int, jobs: int
) -> Iterator[RunDepths]:
    seeds = np.random.SeedSequence(seed).spawn(replications)
    tasks = ((rows, policy, order, length, child) for child in seeds)
    if jobs == 1 or replications == 1:
        yield from (_one(*task) for task in tasks)
        return
    from joblib import Parallel, delayed

    workers = Parallel(n_jobs=jobs, return_as="generator")
    yield from workers(delayed(_one)(*task) for task in tasks)


def _one(
    rows: LogRows, policy: Policy, order: str, length: int, seed: np.random.SeedSequence
) -> RunDepths:
    order_seed, policy_seed = seed.spawn(2)
    index = np.arange(length)
    if order == "shuffled":
        index = np.random.default_rng(order_seed).permutation(len(rows.codes))[:length]
    rng = np.random.default_rng(policy_seed)
    if rows.alone:
        run = run_alone(rows, policy, index, rng)
        return RunDepths(index, run.answered_by, run.answered_by, run.more)
    return run_once(rows, policy, index, rng)


def _with_known_truth(rows: LogRows) -> LogRows:
    assert rows.truth is not None
    known = rows.truth >= 0
    if not known.any():
        raise StopwiseError("truth: the column is blank in every complete row")
    return rows.where(known)
