"""USS-PD (Verma, Hanawal, Szepesvari, Saligrama, NeurIPS 2020): contextual USS by optimism.

A context x of the item is known before the first call, and the depth is fixed from x alone. The
chance that stages i and j differ is p_ij(x) = mu(x . theta_ij), mu the logistic function. Under
contextual weak dominance the best stage for x is the first i with C_j - C_i > p_ij(x) for all
j > i; each p_ij(x) is replaced by an upper bound.

What is certain of the paper: the model, the criterion, optimism. Fairly certain: the last stage is
played at the start until the contexts seen span all directions (as in UCB-GLM, Li, Lu and Zhou
2017); theta_ij is the maximum of the likelihood over the rounds that saw both; the bound is
mu(x . theta_ij) + alpha_t ||x|| in the norm of the inverse of V_j, the sum of x x' over the rounds
that saw stage j. Its text could not be established further. So these are choices of this project:
alpha_t = sqrt(alpha ln t), which is USS-UCB where there is no context; when the start ends; how
features become x; a ridge where the likelihood has no maximum; and that theta is fitted again when
rounds have grown by a factor (1 fits it in every round), while V_j grows in every round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.checks import fail, names_fields, number_within, positive_number, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.decisions import first_passing_stage
from stopwise.evidence import Evidence
from stopwise.policies.base import certain_depth
from stopwise.policies.contextual.glm import RIDGE, fit_logistic, logistic
from stopwise.policies.per_item.logistic.features import FeatureColumn
from stopwise.policies.per_item.situation import RowPolicy
from stopwise.policies.uss_ucb import bound_of
from stopwise.situations.observations import Observations

MOST_ROUNDS = 20_000
"""Of the rounds that saw a stage, the newest this many are kept to fit theta on."""

_SPANNED = 1.0  # the least eigenvalue of V after the start, in the directions that exist


@names_fields
@dataclass(frozen=True)
class UssPd(RowPolicy):
    """Fix the depth from the item's context, by upper bounds on logistic disagreements.

    A reconstruction: the module says what of it is certain. The depth is known before the first
    call and not random, so the probability of each decision is 1 given the rounds before it.
    Features of the items are the context; without any it is the stopping test of USS-UCB.

    Args:
        alpha: width of the bounds, sqrt(alpha ln t) times the norm of the context.
        start: least number of rounds at the start that play the last stage.
        growth: theta is fitted again when rounds have grown by this factor; 1: in every round.

    >>> UssPd().probabilities(Evidence(3), 1, Costs.from_cumulative((0.0, 0.1, 0.2)))
    array([0., 0., 1.])
    """

    alpha: float = 0.5
    start: int = 16
    growth: float = 1.1

    name = "uss-pd"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number("alpha", self.alpha)
        whole_number("start", self.start, least=1)
        number_within("growth", self.growth, "a number, 1 or more", least=1)

    def full_run_probability(self, round: int, costs: Costs) -> float:
        """Never: it explores by optimism, not at random."""
        return 0.0

    def learner(self, stages: tuple[str, ...], costs: Costs) -> PairLearner:
        """One that has seen nothing yet."""
        return PairLearner(self, costs)

    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        """Without a context: x is 1 everywhere, V_j the number of rounds that saw stage j."""
        stage_count = costs.stage_count
        scaled_log = self.alpha * math.log(round)
        upper = np.zeros((stage_count, stage_count))
        for i in range(stage_count):
            for j in range(i + 1, stage_count):
                upper[i, j] = bound_of(evidence, i, j, scaled_log)
        return certain_depth(stage_count, first_passing_stage(costs.thresholds, upper))


@dataclass
class PairLearner:
    """What USS-PD has learned: theta of every pair, V of every stage, and the rounds behind them.

    Attributes:
        columns: how features become numbers, from the contexts of the start; none before.
        contexts: of the rounds kept, with a 1 in front.
        codes: their outputs, as far as they went.
        thetas: for each pair of stages.
        spread: V_j, with a ridge, for each stage.
    """

    policy: UssPd
    costs: Costs
    round: int = 0
    columns: tuple[FeatureColumn, ...] | None = None
    early: list[Observations] = field(default_factory=list)
    contexts: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))
    codes: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    thetas: dict[tuple[int, int], FloatArray] = field(default_factory=dict)
    spread: list[FloatArray] = field(default_factory=list)

    @property
    def started(self) -> bool:
        """Whether the rounds that always play the last stage are over."""
        return self.columns is not None

    def until_next(self) -> int:
        """Rounds to the next fit."""
        if not self.started:
            return max(self.policy.start - self.round, 1)
        return max(int(self.round * self.policy.growth) - self.round, 1)

    def depths(self, rows: Observations) -> IntArray:
        """The depth of the next rounds, each fixed from its context before the first call."""
        last = self.costs.stage_count - 1
        if not self.started:
            return np.full(len(rows), last, dtype=np.int64)
        x = self._contexts(rows)
        inverse = [np.linalg.inv(matrix) for matrix in self.spread]
        chances = {pair: logistic(x @ theta) for pair, theta in self.thetas.items()}
        thresholds = np.asarray(self.costs.thresholds)
        upper = np.zeros(thresholds.shape)
        depths = np.empty(len(rows), dtype=np.int64)
        for at, context in enumerate(x):
            scale = math.sqrt(self.policy.alpha * math.log(self.round + at + 1))
            norms = [scale * math.sqrt(max(context @ m @ context, 0.0)) for m in inverse]
            for (i, j), chance in chances.items():
                upper[i, j] = chance[at] + norms[j]
            depths[at] = first_passing_stage(thresholds, upper)
            # How deep it goes is known, so V is too, whatever the outputs will be.
            for j in range(1, int(depths[at]) + 1):
                moved = inverse[j] @ context
                inverse[j] = inverse[j] - np.outer(moved, moved) / (1 + context @ moved)
        return depths

    def answering(self, rows: Observations) -> IntArray:
        """The stage that was played, as in the paper."""
        return np.full(len(rows), rows.stage_count - 1, dtype=np.int64)

    def record(self, rows: Observations, full: NDArray[np.bool_]) -> None:
        """Take finished rounds."""
        self.round += len(rows)
        if not self.started:
            self.early.append(rows)
            return
        x = self._contexts(rows)
        self._keep(x, rows)

    def refresh(self) -> None:
        """End the start if the contexts span all directions; fit theta again."""
        if not self.started:
            self._try_to_start()
        if not self.started:
            return
        stage_count = self.costs.stage_count
        seen = self.codes >= 0
        for i in range(stage_count):
            for j in range(i + 1, stage_count):
                both = seen[:, i] & seen[:, j]
                differ = self.codes[both, i] != self.codes[both, j]
                before = self.thetas.get((i, j))
                self.thetas[i, j] = fit_logistic(self.contexts[both], differ, before)

    def _try_to_start(self) -> None:
        from_start = [rows.features for rows in self.early]
        columns = tuple(
            FeatureColumn.fit(name, np.concatenate([np.asarray(f[name]) for f in from_start]))
            for name in from_start[0]
        )
        x = np.concatenate([contexts_of(rows, columns) for rows in self.early])
        eigenvalues = np.linalg.eigvalsh(x.T @ x)
        exist = eigenvalues > 1e-9 * eigenvalues[-1]
        if self.round < self.policy.start or eigenvalues[exist].min() < _SPANNED:
            return
        self.columns = columns
        self.contexts = np.zeros((0, x.shape[1]))
        self.codes = np.zeros((0, self.costs.stage_count), dtype=np.int64)
        self.spread = [RIDGE * np.eye(x.shape[1]) for _ in range(self.costs.stage_count)]
        for rows in self.early:
            self._keep(contexts_of(rows, columns), rows)
        self.early = []

    def _keep(self, x: FloatArray, rows: Observations) -> None:
        reached = rows.depths
        for j in range(1, self.costs.stage_count):
            part = x[reached >= j]
            self.spread[j] = self.spread[j] + part.T @ part
        # A round that stopped at the first stage compares nothing.
        deep = reached >= 1
        self.contexts = np.concatenate([self.contexts, x[deep]])[-MOST_ROUNDS:]
        self.codes = np.concatenate([self.codes, rows.codes[deep]])[-MOST_ROUNDS:]

    def _contexts(self, rows: Observations) -> FloatArray:
        assert self.columns is not None
        return contexts_of(rows, self.columns)


def contexts_of(rows: Observations, columns: tuple[FeatureColumn, ...]) -> FloatArray:
    """The context of every item: a 1, then its features as numbers.

    >>> rows = Observations(("a",), np.zeros((2, 2), dtype=int), None, {"n": np.array([1.0, 3.0])})
    >>> contexts_of(rows, (FeatureColumn.fit("n", rows.features["n"]),)).tolist()
    [[1.0, -1.0, 0.0], [1.0, 1.0, 0.0]]
    """
    parts = [np.ones((len(rows), 1))]
    for column in columns:
        if column.name not in rows.features:
            raise fail("features", sorted(rows.features), f"the feature {column.name!r} too")
        parts.append(column.matrix(np.asarray(rows.features[column.name])))
    return np.concatenate(parts, axis=1)
