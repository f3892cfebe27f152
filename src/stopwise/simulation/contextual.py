"""Made-up problems with a context, and what a policy loses on them.

A context x is drawn for every item; stage i errs with a chance that depends on x, and only where
every cheaper stage errs too. Then p_ij(x) is the difference of the two error rates, and the best
stage for x is known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.arrays import IntArray
from stopwise.checks import fail, names_settings, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.decisions import optimal_stages
from stopwise.policies.contextual.glm import logistic
from stopwise.policies.per_item.learning import learn_over
from stopwise.policies.per_item.situation import ItemPolicy
from stopwise.situations.observations import Observations


@dataclass(frozen=True)
class ContextualProblem:
    """Two labels, contexts of normal numbers, errors that lie within those of cheaper stages.

    Args:
        weights: a row per stage but the last, which never errs: intercept first, then one weight
            per number of the context. The first row gives the chance that the first stage errs,
            each further one the chance that its stage errs too where the one before it did.
        costs: what stages and mistakes cost.

    >>> problem = ContextualProblem(((0.0, 2.0),), Costs.from_cumulative((0.0, 0.5)))
    >>> problem.best_stages(np.array([[-1.0], [1.0]]))    # it pays to go on where x is above 0
    array([0, 1])
    """

    weights: tuple[tuple[float, ...], ...]
    costs: Costs

    def __post_init__(self) -> None:
        if len(self.weights) != self.costs.stage_count - 1:
            raise fail("weights", len(self.weights), f"{self.costs.stage_count - 1} rows")
        if len({len(row) for row in self.weights}) != 1 or len(self.weights[0]) < 1:
            raise fail("weights", self.weights, "rows of the same length")

    @property
    def size(self) -> int:
        """How many numbers a context has."""
        return len(self.weights[0]) - 1

    def error_rates(self, contexts: FloatArray) -> FloatArray:
        """The chance of each stage to err, given the context: a row per item."""
        x = np.concatenate([np.ones((len(contexts), 1)), contexts], axis=1)
        factors = np.stack([logistic(x @ np.asarray(row)) for row in self.weights], axis=1)
        return np.concatenate([np.cumprod(factors, axis=1), np.zeros((len(x), 1))], axis=1)

    def best_stages(self, contexts: FloatArray) -> IntArray:
        """The stage with the least expected total, for each context."""
        return optimal_stages(self._totals(contexts))

    def _totals(self, contexts: FloatArray) -> FloatArray:
        return self.error_rates(contexts) + np.asarray(self.costs.in_mistakes)[None]

    def draw(self, number: int, rng: np.random.Generator) -> tuple[Observations, FloatArray]:
        """Complete rows with their contexts as the feature `x`."""
        contexts = rng.normal(size=(number, self.size))
        wrong = rng.random(number)[:, None] < self.error_rates(contexts)
        truth = rng.integers(0, 2, number)
        codes = np.where(wrong, 1 - truth[:, None], truth[:, None])
        return Observations(("0", "1"), codes, None, {"x": contexts}), contexts


@dataclass(frozen=True)
class ContextualRun:
    """One run: the depth of every round, and the expected regret up to it, in mistakes.

    >>> from stopwise.policies import UssPd
    >>> problem = ContextualProblem(((0.0, 4.0),), Costs.from_cumulative((0.0, 0.5)))
    >>> run = simulate_contextual(problem, UssPd(), 50)
    >>> len(run.depths), bool((np.diff(run.regret) >= 0).all())
    (50, True)
    """

    depths: IntArray
    regret: FloatArray


@names_settings
def simulate_contextual(
    problem: ContextualProblem, policy: ItemPolicy, horizon: int, seed: int = 0
) -> ContextualRun:
    """A policy over a stream of items, against the best stage for each context.

    >>> from stopwise.policies.contextual.uss_pd import UssPd
    >>> problem = ContextualProblem(((0.0, 4.0),), Costs.from_cumulative((0.0, 0.5)))
    >>> run = simulate_contextual(problem, UssPd(), 400)
    >>> bool(run.regret[-1] < 40)        # always the last stage, or always the first: 75 or more
    True
    """
    horizon = whole_number("horizon", horizon, least=1)
    drawn, decided = np.random.SeedSequence(seed).spawn(2)
    rows, contexts = problem.draw(horizon, np.random.default_rng(drawn))
    stages = tuple(f"stage {at + 1}" for at in range(problem.costs.stage_count))
    depths, _, _ = learn_over(policy, stages, rows, problem.costs, np.random.default_rng(decided))
    totals = problem._totals(contexts)
    lost = totals[np.arange(horizon), depths] - totals.min(axis=1)
    return ContextualRun(depths, np.cumsum(lost))
