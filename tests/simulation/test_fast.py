"""The fast engine has the law of the printed algorithms, and its results hang together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from independent import play
from instances import NAMES, instance
from stopwise import Costs, Evidence, Policy, Problem, StopwiseError, simulate
from stopwise.policies.conformance import check_policy
from two_samples import assert_same_law

FAMILY_RATE = 1e-6
"""Chance that this file rejects a correct engine (a theorem: see two_samples.py)."""
COMPARISONS = 4096
"""More than all comparisons made here; each gets the share FAMILY_RATE / COMPARISONS."""
REPLICATIONS = 1000

# policy of the engine, algorithm of independent.py, its settings, horizon. The second alpha is
# narrower than any theory allows, so that short runs too pass through all that can happen.
POLICIES = {
    "uss-ts": ("uss-ts", (1.0, 1.0), 500),
    "uss-ts-literal": ("uss-ts", (1.0, 1.0), 150),
    "uss-ucb": ("uss-ucb", (0.5,), 1500),
    "uss-ucb:alpha=0.1": ("uss-ucb", (0.1,), 600),
    "hanawal-2": ("hanawal-2", (1.5,), 1500),
    "hanawal-2:alpha=0.1": ("hanawal-2", (0.1,), 600),
}
made = 0


def compare(
    problem: Problem,
    policy: str,
    *,
    stream: str,
    seed: int,
    horizon: int | None = None,
    algorithm: str | None = None,
    settings: tuple[float, ...] = (),
) -> None:
    """Final regret and every stage's count against the printed algorithm."""
    global made
    if algorithm is None:
        algorithm, settings, usual = POLICIES[policy]
        horizon = horizon or usual
    assert horizon is not None
    ours = simulate(
        problem, policy, horizon=horizon, replications=REPLICATIONS, seed=seed, stream=stream,
        grid=[horizon], engine="fast",
    )  # fmt: skip
    theirs = play(
        problem, algorithm, horizon=horizon, replications=REPLICATIONS, seed=seed + 1,
        stream=stream, settings=settings,
    )  # fmt: skip
    assert (ours.stage_counts.sum(axis=1) == horizon).all()
    pairs = [("regret", ours.finals, theirs @ problem.gaps)]
    for stage in range(problem.stage_count):
        pairs.append((f"stage {stage}", ours.stage_counts[:, stage], theirs[:, stage]))
    for what, one, two in pairs:
        made += 2
        assert made <= COMPARISONS
        # Regret is a sum of products: equal counts must be equal to the last bit.
        one, two = np.round(one, 9), np.round(two, 9)
        assert_same_law(one, two, rate=FAMILY_RATE, comparisons=COMPARISONS, what=what)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", NAMES)
def test_law_on_the_paper(name: str, policy: str) -> None:
    # Each rule meets both streams on every other instance.
    at = (NAMES.index(name) + list(POLICIES).index(policy)) % 2
    stream = ("independent", "round-robin")[at]
    compare(instance(name, stream), policy, stream=stream, seed=NAMES.index(name) * 10 + at)


@pytest.mark.parametrize(
    ("name", "policy", "stream"),
    [
        ("bsc-2", "uss-ts", "independent"),
        ("pima-2", "uss-ts", "round-robin"),
        ("heart-3", "uss-ucb", "independent"),
        ("pima-1", "uss-ucb", "round-robin"),
        ("pima-3", "hanawal-2", "independent"),
        ("heart-1", "hanawal-2", "round-robin"),
    ],
)
def test_law_at_the_horizon_of_the_paper(name: str, policy: str, stream: str) -> None:
    compare(instance(name, stream), policy, stream=stream, seed=77, horizon=4000)


def random_problem(rng: np.random.Generator, count: int) -> Problem:
    """Three labels, outputs that depend on one another, rows, thresholds also <= 0 and >= 1."""
    items = int(rng.integers(20, 200))
    truth = rng.integers(0, 3, size=items)
    outputs = np.empty((items, count), dtype=int)
    for stage in range(count):
        source = outputs[:, stage - 1] if stage and rng.random() < 0.7 else truth
        wrong = rng.random(items) < rng.choice([0.01, 0.1, 0.3])
        outputs[:, stage] = np.where(wrong, rng.integers(0, 3, size=items), source)
    scale = rng.choice([0.02, 0.1, 0.4])
    costs = np.cumsum(rng.random(count) * scale * (rng.random(count) < 0.85))
    if rng.random() < 0.3:
        costs[-1] += 1.0
    mistake = float(rng.choice([0.5, 1.0, 2.0]))
    return Problem.from_predictions(
        outputs.tolist(),
        truth.tolist(),
        Costs.from_cumulative(tuple((costs * mistake).tolist()), mistake),
    )


@pytest.mark.parametrize("count", [2, 3, 4, 6, 8, 12])
def test_law_on_random_problems(count: int) -> None:
    rng = np.random.default_rng(100 + count)
    for at, stream in enumerate(("independent", "round-robin")):
        problem = random_problem(rng, count)
        s, f = rng.choice([0.3, 0.5, 1.0, 2.0, 3.7], size=2)
        alpha = float(rng.choice([0.05, 0.2, 0.5]))
        for policy, algorithm, settings in (
            (f"uss-ts:prior_disagreed={s},prior_agreed={f}", "uss-ts", (s, f)),
            (f"uss-ucb:alpha={alpha}", "uss-ucb", (alpha,)),
            (f"hanawal-2:alpha={alpha}", "hanawal-2", (alpha,)),
        ):
            horizon = 1200 // count if algorithm == "uss-ts" else 400
            compare(
                problem, policy, stream=stream, seed=at, horizon=horizon, algorithm=algorithm,
                settings=settings,
            )  # fmt: skip


def test_rules_that_have_decided_are_exact() -> None:
    problem = instance("bsc-1")
    for policy, stage in (("oracle", 0), ("fixed:stage=1", 1), ("fixed", 2)):
        result = simulate(problem, policy, horizon=1000, replications=3, engine="fast")
        assert (result.stage_counts[:, stage] == 1000).all()
    with pytest.raises(StopwiseError, match="stage: got 7"):
        simulate(problem, "fixed:stage=7", horizon=10, replications=1)


@pytest.mark.parametrize("policy", ["uss-ts", "uss-ucb:alpha=0.1", "hanawal-2:alpha=0.1"])
@pytest.mark.parametrize("stream", ["independent", "round-robin"])
def test_grid(policy: str, stream: str) -> None:
    """Counts at the grid sum to the round and never fall; the grid does not change the law."""
    from stopwise.simulation.engines import choose_engine
    from stopwise.simulation.grids import make_grid

    global made
    for name in ("pima-2", "heart-1", "bsc-4"):
        problem = instance(name, stream)
        engine = choose_engine("fast", problem, _policy(policy), stream)  # type: ignore[arg-type]
        fine = np.arange(1, 3001, dtype=np.int64)
        for grid in (make_grid("linear", 3000), make_grid("log", 10**7), fine):
            counts = engine.depth_counts(grid, 3, range(64))
            assert (counts.sum(axis=2) == grid).all()
            steps = np.diff(counts, axis=1, prepend=0)
            assert (steps >= 0).all()
        runs = [
            simulate(problem, policy, horizon=3000, replications=512, seed=9 + at, stream=stream,
                     grid=grid).stage_counts
            for at, grid in enumerate((fine.tolist(), [3000]))
        ]  # fmt: skip
        for stage in range(3):
            made += 2
            assert_same_law(
                runs[0][:, stage], runs[1][:, stage],
                rate=FAMILY_RATE, comparisons=COMPARISONS, what=f"{name} stage {stage}",
            )  # fmt: skip


def _policy(text: str) -> Policy:
    from stopwise import make_policy

    return make_policy(text)


@pytest.mark.parametrize("policy", ["uss-ts", "uss-ucb", "hanawal-2", "uss-ts-literal"])
def test_same_bits_for_any_number_of_workers(policy: str) -> None:
    problem = instance("pima-1")
    runs = [
        simulate(problem, policy, horizon=2000, replications=200, seed=4, jobs=jobs)
        for jobs in (1, 2, -1)
    ]
    for run in runs[1:]:
        assert run.to_dict() == runs[0].to_dict()
        assert np.array_equal(run.stage_counts, runs[0].stage_counts)
    longer = simulate(problem, policy, horizon=2000, replications=264, seed=4, jobs=2)
    # 192 replications are whole chunks of both.
    assert np.array_equal(longer.stage_counts[:192], runs[0].stage_counts[:192])
    other = simulate(problem, policy, horizon=2000, replications=200, seed=5)
    assert not np.array_equal(other.finals, runs[0].finals)


def test_fifty_stages() -> None:
    problem = random_problem(np.random.default_rng(8), 50)
    for policy in ("uss-ts", "uss-ucb", "hanawal-2"):
        for stream in ("independent", "round-robin"):
            result = simulate(
                problem, policy, horizon=2000, replications=2, stream=stream, engine="fast"
            )
            assert (result.stage_counts.sum(axis=1) == 2000).all()


def test_a_billion_rounds() -> None:
    for name in ("bsc-1", "heart-2", "pima-4"):
        result = simulate(
            instance(name), "uss-ts", horizon=10**9, replications=2, grid="log", engine="fast"
        )
        assert (result.stage_counts.sum(axis=1) == 10**9).all()
        # Weak dominance holds: the optimal stage takes nearly all rounds.
        assert result.stage_share[result.optimal_stage] > 0.999


@dataclass(frozen=True)
class Halves(Policy):
    """Stop at the first stage whose disagreements with the next are under half the threshold."""

    weight: float = 0.5
    name = "halves"

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> np.ndarray:
        depths, left = np.zeros(costs.stage_count), 1.0
        for i in range(costs.stage_count - 1):
            seen, disagreed = evidence.seen[i, i + 1], evidence.disagreed[i, i + 1]
            stop = self.weight if disagreed <= costs.thresholds[i, i + 1] * seen else 0.1
            depths[i] = left * stop
            left -= depths[i]
        depths[-1] = left
        return depths

    def compiled_rule(self):  # type: ignore[no-untyped-def]
        from numba import njit

        weight = self.weight

        @njit
        def rule(seen, disagreed, thresholds, round, depths):  # type: ignore[no-untyped-def]
            left = 1.0
            for i in range(len(depths) - 1):
                low = disagreed[i, i + 1] <= thresholds[i, i + 1] * seen[i, i + 1]
                depths[i] = left * (weight if low else 0.1)
                left -= depths[i]
            depths[-1] = left

        return rule


@dataclass(frozen=True)
class WrongHalves(Halves):
    """Its compiled rule belongs to other settings."""

    name = "wrong-halves"

    def compiled_rule(self):  # type: ignore[no-untyped-def]
        return Halves(self.weight + 0.01).compiled_rule()


def test_a_rule_compiled_by_its_author() -> None:
    global made
    check_policy(Halves())
    with pytest.raises(AssertionError, match="compiled_rule of wrong-halves"):
        check_policy(WrongHalves())
    for stream in ("independent", "round-robin"):
        problem = instance("heart-3", stream)
        fast, slow = (
            simulate(problem, Halves(), horizon=30, replications=500, seed=seed, stream=stream,
                     engine=engine)
            for seed, engine in ((1, "auto"), (2, "reference"))
        )  # fmt: skip
        assert (fast.engine, slow.engine) == ("fast", "reference")
        for stage in range(3):
            made += 2
            assert_same_law(
                fast.stage_counts[:, stage], slow.stage_counts[:, stage],
                rate=FAMILY_RATE, comparisons=COMPARISONS, what=f"stage {stage}",
            )  # fmt: skip


def test_engine_errors() -> None:
    problem = instance("bsc-1")

    @dataclass(frozen=True)
    class Plain(Policy):
        name = "plain"

        def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> np.ndarray:
            return np.array([1.0, 0.0, 0.0])

    with pytest.raises(StopwiseError, match="no kernel for plain"):
        simulate(problem, Plain(), horizon=10, replications=1, engine="fast")
    assert simulate(problem, Plain(), horizon=10, replications=1).engine == "reference"
    with pytest.raises(StopwiseError, match="engine: got 'quick', but need 'auto', 'fast' or"):
        simulate(problem, "uss-ts", horizon=10, replications=1, engine="quick")


def test_without_numba(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "numba" else find(name)
    )
    problem = instance("bsc-1")
    with pytest.raises(StopwiseError, match=r"needs numba, .*: pip install 'stopwise\[fast\]'"):
        simulate(problem, "uss-ts", horizon=10, replications=1, engine="fast")
    assert simulate(problem, "uss-ts", horizon=10, replications=1).engine == "reference"
    assert "slow reference engine" in capsys.readouterr().err
