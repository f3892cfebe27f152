"""A second opinion on who is right: items are hard for all stages, and mistakes are shared.

The consensus takes errors for independent. Here they are not, in three ways:

- items differ in difficulty: stage s is right on an item of difficulty x (standard normal) with
  probability Phi((t_s - sqrt(r) x) / sqrt(1 - r)), so r is the part that the stages share;
- every item has a usual mistake, which a wrong stage gives with probability c (otherwise any wrong
  answer, all alike);
- stage s repeats what the stage before it said with probability k_s.

None of this can be told apart from agreement with certainty. So no parameter is estimated: beliefs
about them (`Belief`, of what cascades are like: deeper stages tend to be better, copies are rare)
are updated by the log, and the probabilities are averages over what is then still possible. Since
the model is not the truth, a log counts for `MOST_ROWS` rows at most, however long it is.

As for the consensus, only partitions matter (`consensus.Groups`). An item's truth and its usual
mistake are each one of the answers given, or one of those that nobody gave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from stopwise.arrays import FloatArray, IntArray
from stopwise.estimating.consensus import Groups
from stopwise.estimating.ensemble import walk

MOST_ROWS = 300
"""What a log counts for at most: more rows would not make the model less wrong."""

MOST_STAGES = 5
"""With more stages agreement tells enough: there the consensus alone was right more often."""

MOST_CASES = 4000
"""More combinations of partition, truth and usual mistake would take too long."""

_DIFFICULTIES, _WEIGHTS = hermegauss(7)
"""The standard normal distribution of difficulties, as seven points."""

CHAINS, STEPS, KEEP_EVERY = 60, 400, 20

_TRUTH, _USUAL, _OTHER = 0, 1, 2
_AFTER_SAME, _AFTER_NONE, _SILENT = 3, 6, 9
"""Codes of an answer: right, the usual mistake or another one; plus 3 where the stage before gave
the same answer, plus 6 where it gave none. 9: no answer."""

_UNSAID_TRUTH, _UNSAID_MISTAKE = -8, -9


@dataclass(frozen=True)
class Belief:
    """What is believed of a cascade before its log is seen: means and standard deviations.

    Attributes:
        first: of t of the first stage; 0.6 is an accuracy of 73 %.
        step: of the difference of t from one stage to the next.
        repeats: of the log-odds of k.
        shared: of the log-odds of r.
        usual: of the log-odds of c.

    >>> Belief().step
    (0.25, 0.45)
    """

    first: tuple[float, float] = (0.6, 0.6)
    step: tuple[float, float] = (0.25, 0.45)
    repeats: tuple[float, float] = (-3.0, 1.2)
    shared: tuple[float, float] = (-0.4, 1.0)
    usual: tuple[float, float] = (0.0, 1.5)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Of points (t of every stage, k, r, c), one row each."""
        stages = (points.shape[1] - 2) // 2
        parts = (
            (points[:, :1], self.first),
            (np.diff(points[:, :stages], axis=1), self.step),
            (points[:, stages : 2 * stages], self.repeats),
            (points[:, -2:-1], self.shared),
            (points[:, -1:], self.usual),
        )
        total = np.zeros(len(points))
        for values, (mean, deviation) in parts:
            total -= 0.5 * (((values - mean) / deviation) ** 2).sum(axis=1)
        return total

    def draw(self, stages: int, number: int, generator: np.random.Generator) -> FloatArray:
        """Points from this belief."""
        level = generator.normal(*self.first, (number, 1))
        steps = generator.normal(*self.step, (number, stages - 1)).cumsum(axis=1)
        repeats = generator.normal(*self.repeats, (number, stages))
        ends = [generator.normal(*part, (number, 1)) for part in (self.shared, self.usual)]
        return np.concatenate([level, level + steps, repeats, *ends], axis=1)


def shared_difficulty(
    groups: Groups, kinds: int, *, belief: Belief | None = None, seed: int = 0
) -> FloatArray | None:
    """The probability that each stage is right on each partition, in many draws.

    Args:
        groups: the rows, reduced to partitions.
        kinds: how many labels there are.

    Returns:
        draws x partitions x stages; None where there are too many stages or partitions for that.

    >>> rows = Groups.of(np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1]]), np.array([80.0, 15.0, 5.0]))
    >>> draws = shared_difficulty(rows, kinds=3)
    >>> draws.shape, bool(draws.mean(axis=0)[0].min() > 0.8)      # all three agree: mostly right
    ((600, 3, 3), True)
    """
    codes, number = groups.codes, groups.number
    if codes.shape[1] > MOST_STAGES:
        return None
    cases = Cases.of(codes, kinds)
    if cases is None:
        return None
    power = min(1.0, MOST_ROWS / float(number.sum()))
    generator = np.random.default_rng(seed)
    belief = Belief() if belief is None else belief

    def log_density(points: FloatArray) -> FloatArray:
        chances = np.add.reduceat(cases.chances(points), cases.starts, axis=1)
        seen = np.log(np.maximum(chances, 1e-300)) @ number
        return np.asarray(power * seen + belief.log_density(points))

    start = belief.draw(codes.shape[1], CHAINS, generator)
    points = walk(log_density, start, steps=STEPS, keep_every=KEEP_EVERY, generator=generator)
    return cases.right(points)


@dataclass(frozen=True)
class Cases:
    """Every partition with every truth and usual mistake that it may have.

    Attributes:
        halves: of the earlier and of the later stages, the codes that occur, one row each.
        at: which row of either half a case has.
        weight: how many pairs of labels (truth, usual mistake) a case stands for.
        starts: the first case of every partition.
        truth: whether each stage gave the truth, one row per case.
    """

    kinds: int
    halves: tuple[IntArray, IntArray]
    at: tuple[IntArray, IntArray]
    weight: FloatArray
    starts: IntArray
    truth: FloatArray

    @classmethod
    def of(cls, partitions: IntArray, kinds: int) -> Cases | None:
        """List them; None if there are more than `MOST_CASES`."""
        codes: list[list[int]] = []
        weights: list[float] = []
        starts = []
        for row in partitions.tolist():
            starts.append(len(codes))
            for weight, truth, usual in _possible(row, kinds):
                codes.append(_coded(row, truth, usual))
                weights.append(weight)
            if len(codes) > MOST_CASES:
                return None
        table = np.array(codes, dtype=np.int64)
        middle = table.shape[1] // 2
        early, at_early = np.unique(table[:, :middle], axis=0, return_inverse=True)
        late, at_late = np.unique(table[:, middle:], axis=0, return_inverse=True)
        return cls(
            kinds=kinds,
            halves=(early, late),
            at=(at_early.ravel(), at_late.ravel()),
            weight=np.array(weights),
            starts=np.array(starts),
            truth=((table % 3 == _TRUTH) & (table != _SILENT)).astype(np.float64),
        )

    def chances(self, points: FloatArray) -> FloatArray:
        """The chance of every case, one row per point, up to a factor.

        Given the difficulty, stages are independent: a case is a product over the earlier and one
        over the later stages, of which few different ones occur.
        """
        middle = self.halves[0].shape[1]
        table = self._answers(points)
        early = _products(table[:, :, :middle], self.halves[0]) * _WEIGHTS[None, :, None]
        late = _products(table[:, :, middle:], self.halves[1])
        joint = early.transpose(0, 2, 1) @ late
        return np.asarray(joint[:, self.at[0], self.at[1]] * self.weight)

    def right(self, points: FloatArray) -> FloatArray:
        """Points x partitions x stages: the probability that each stage gave the truth."""
        chances = self.chances(points)
        total = np.add.reduceat(chances, self.starts, axis=1)
        found = [
            np.add.reduceat(chances * self.truth[:, stage], self.starts, axis=1)
            for stage in range(self.truth.shape[1])
        ]
        return np.asarray(np.stack(found, axis=2) / np.maximum(total, 1e-300)[:, :, None])

    def _answers(self, points: FloatArray) -> FloatArray:
        """Points x difficulties x stages x codes: the chance of each answer."""
        from scipy.special import expit, ndtr

        stages = self.truth.shape[1]
        level = points[:, None, :stages]
        repeats = expit(points[:, None, stages : 2 * stages, None])
        shared, usual = expit(points[:, -2])[:, None, None], expit(points[:, -1])[:, None, None]
        difficulty = _DIFFICULTIES[None, :, None]
        right = ndtr((level - np.sqrt(shared) * difficulty) / np.sqrt(1 - shared))
        other = (1 - right) * (1 - usual) / (self.kinds - 1)
        alone = np.stack([right, (1 - right) * usual + other, other], axis=-1)
        after = (1 - repeats) * alone
        silent = np.ones((*right.shape, 1))
        return np.concatenate([after, after + repeats, alone, silent], axis=-1)


def _products(table: FloatArray, codes: IntArray) -> FloatArray:
    """Points x difficulties x rows of codes."""
    result = table[:, :, 0, codes[:, 0]]
    for stage in range(1, codes.shape[1]):
        result = result * table[:, :, stage, codes[:, stage]]
    return np.asarray(result)


def _possible(row: list[int], kinds: int) -> list[tuple[float, int, int]]:
    """Number of labels, truth and usual mistake of every case of a partition."""
    said = sorted({code for code in row if code >= 0})
    unsaid = max(kinds - len(said), 0)
    cases = []
    for truth in [*said, _UNSAID_TRUTH]:
        for usual in [*said, _UNSAID_MISTAKE]:
            if truth == usual:
                continue
            truths = unsaid if truth == _UNSAID_TRUTH else 1
            left = unsaid - (truth == _UNSAID_TRUTH)
            weight = truths * (left if usual == _UNSAID_MISTAKE else 1)
            if weight > 0:
                cases.append((float(weight), truth, usual))
    return cases


def _coded(row: list[int], truth: int, usual: int) -> list[int]:
    codes = []
    for stage, answer in enumerate(row):
        if answer < 0:
            codes.append(_SILENT)
            continue
        kind = _TRUTH if answer == truth else _USUAL if answer == usual else _OTHER
        before = row[stage - 1] if stage else -1
        shift = _AFTER_NONE if before < 0 else _AFTER_SAME if before == answer else 0
        codes.append(kind + shift)
    return codes
