"""Error rates of the stages without a label, with intervals and a check of the assumption.

Agreement alone has a known weakness: a deep stage that is right where all others are wrong looks
wrong. So a part of the belief is not given to the consensus but to the deeper stages, each of which
counts twice the one before it (four times, of three stages): people rarely pay more for a stage
that is worse, though it happens. That part is `LEAN`; it is larger with three stages, and it grows
where the check shows that agreement is less worth, because stages follow each other in a chain.
These figures were chosen on 200 made-up and 41 real cascades with known truth.

Half of the belief goes to a second model (`difficulty`), in which errors are not independent. Two
models that err differently are better than either: on cascades that nothing was chosen on, the
average names the best stage more often than each alone. A fifth of the error rates comes from a
third opinion, in which no stage votes on itself (`others`): each is held against the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from stopwise.abstentions import NO_ANSWER, UNKNOWN, Abstentions, answering_stages
from stopwise.arrays import FloatArray, IntArray
from stopwise.checks import names_settings
from stopwise.estimating.consensus import (
    Consensus,
    Groups,
    as_codes,
    label_count,
    maximise,
    plurality_of,
    row_numbers,
    vote_shares,
)
from stopwise.estimating.dependence import Dependence, dependence
from stopwise.estimating.difficulty import shared_difficulty
from stopwise.estimating.others import held_against_others

LEAN = 0.3
"""The part of the belief that goes to the deeper stages, whatever the consensus says."""

LEAN_OF_THREE = 0.5
"""With three stages, of which two that share their errors outvote the third unseen."""

LEAD_STARTS, LEAD_ENDS = 0.1, 0.3
"""Between these leads of an earlier stage over the last of three, the lean falls to nothing, in a
chain too: a last stage that contradicts both others follows neither."""

LEAN_IN_CHAIN = 0.6
DOUBLING, DOUBLING_OF_THREE, DOUBLING_IN_CHAIN = 2.0, 4.0, 4.0

SECOND_MODEL = 0.5
"""The part of the belief that goes to the model of shared difficulty: as much as to the other."""

OTHERS = 0.2
"""The part of the error rates that comes from each stage held against the others; none where
stages are copies or follow each other in a chain."""

SUSPICION = 0.6
"""By what a deeper stage is suspected to be worse: this much of the second model, the rest of the
consensus, no belief in deeper stages. In a chain the belief stays: there agreement alone is a bad
judge of them."""

FEW_DIFFERENCES = 20
"""With fewer items than this on which stages differ, nothing is estimated."""

BOOTSTRAPS = 200

_CELLS = 4_000_000
"""Numbers held at once: more samples than fit are taken in turns."""


@dataclass(frozen=True)
class Estimate:
    """Estimated error rates, and how far to trust them.

    Attributes:
        error_rates: share of items on which each stage is wrong (or gives no answer at all).
        draws: the same over samples of the items drawn with replacement, one row each.
        consensus: the model of agreement that they rest on.
        plurality_error_rates: what they would be if the most frequent answer were right.
        suspected_error_rates: by both models, without the belief in deeper stages, by which an
            expensive stage is suspected to be worse than a cheaper one (`SUSPICION`).
        dependence: the check of the assumption.
        lean: the part of the belief that goes to deeper stages, from 0 to 1.
        belief: of each stage, its part of that lean.
        right: one row per row of outputs: the probability that each output is right, by both
            models and the belief in deeper stages.
        enough: whether there are enough items on which stages differ.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 3000)
    >>> outputs = [np.where(rng.random(3000) < e, (truth + 1) % 3, truth) for e in (0.3, 0.2, 0.1)]
    >>> found = estimate(np.stack(outputs, axis=1))
    >>> found.enough, int(found.error_rates.argmin())
    (True, 2)
    >>> low, high = found.interval()
    >>> bool((low <= found.error_rates).all() and (found.error_rates <= high).all())
    True
    """

    error_rates: FloatArray
    draws: FloatArray
    consensus: Consensus
    plurality_error_rates: FloatArray
    suspected_error_rates: FloatArray
    dependence: Dependence
    lean: float
    belief: FloatArray
    right: FloatArray
    enough: bool

    @property
    def passed(self) -> bool:
        """Whether the check passed: no pair agrees far more than its errors explain."""
        return self.enough and not self.dependence.pairs

    @names_settings
    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Bounds on the error rates over the bootstrap; they hold under the assumption alone."""
        tail = (1 - level) / 2
        low, high = np.quantile(self.draws, [tail, 1 - tail], axis=0)
        return np.asarray(low), np.asarray(high)


@dataclass(frozen=True)
class AgreementModel:
    """The consensus over the partitions of the rows, and how far agreement can be trusted.

    Attributes:
        groups: the rows, reduced to their partitions.
        kinds: how many labels there are.
        votes: the share of a vote that each stage has.
        accuracy: of every stage.
        right: for each partition and stage, the chance that its output is right.
        elsewhere: of each partition, the chance that the truth is none of the outputs.
        log_likelihood: of the rows, under the model.
        dependence: the check of the assumption.
    """

    groups: Groups
    kinds: int
    votes: FloatArray
    accuracy: FloatArray
    right: FloatArray
    elsewhere: FloatArray
    log_likelihood: float
    dependence: Dependence

    @property
    def consensus(self) -> Consensus:
        """The same for every row of outputs."""
        return Consensus(
            accuracy=self.accuracy,
            right=self.right[self.groups.inverse],
            elsewhere=self.elsewhere[self.groups.inverse],
            votes=self.votes,
            log_likelihood=self.log_likelihood,
        )


def agreement_of(table: IntArray, times: FloatArray, labels: int | None = None) -> AgreementModel:
    """What agreement alone says: the part of `estimate` that leans on no belief in deeper stages.

    >>> found = agreement_of(np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1]]), np.array([80.0, 15, 5]))
    >>> int(found.accuracy.argmax()), found.right.shape
    (1, (3, 3))
    """
    return _agreement(
        Groups.of(table, times), label_count(table, labels), vote_shares(table, times)
    )


def _agreement(groups: Groups, kinds: int, votes: FloatArray) -> AgreementModel:
    accuracy, right, elsewhere, likelihood = maximise(groups, groups.number[None], kinds, votes)
    check = dependence(groups, _observed_accuracy(groups, right[0]), kinds)
    return AgreementModel(
        groups, kinds, votes, accuracy[0], right[0], elsewhere[0], float(likelihood[0]), check
    )


@names_settings
def estimate(
    codes: ArrayLike,
    number: ArrayLike | None = None,
    *,
    abstentions: Abstentions = "go on",
    labels: int | None = None,
    bootstraps: int = BOOTSTRAPS,
    second_model: bool = True,
    seed: int = 0,
) -> Estimate:
    """Estimate how often the answer is wrong if one stops at each stage.

    Args:
        codes: outputs, one row per item or pattern; -1: abstained, -2: not called.
        number: how many items each row stands for.
        abstentions: what it means that a stage gives no answer (`stopwise.abstentions`).
        labels: how many different answers there are.
        bootstraps: samples of the items, for intervals.
        second_model: whether the model of shared difficulty has its part; it takes most of the
            time, and is left out where there are more than five stages.

    >>> rows = [[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    >>> found = estimate(rows, [700, 20, 200, 80], labels=2)
    >>> found.error_rates.argmin(), found.passed
    (np.int64(2), True)
    """
    table = as_codes(codes)
    times = row_numbers(table, number)
    groups = Groups.of(table, times)
    found = _estimated(
        _Partitions.of(groups),
        label_count(table, labels),
        tuple(vote_shares(table, times).tolist()),
        abstentions,
        bootstraps,
        second_model,
        seed,
    )
    of_rows = replace(
        found.consensus,
        right=found.consensus.right[groups.inverse],
        elsewhere=found.consensus.elsewhere[groups.inverse],
    )
    return replace(found, consensus=of_rows, right=found.right[groups.inverse])


class _Partitions(NamedTuple):
    """The different partitions of a log and how many items have each, as a key."""

    stages: int
    codes: bytes
    number: bytes

    @classmethod
    def of(cls, groups: Groups) -> _Partitions:
        codes, number = groups.codes.astype(np.int64), groups.number.astype(np.float64)
        return cls(codes.shape[1], codes.tobytes(), number.tobytes())

    def groups(self) -> Groups:
        codes: IntArray = np.frombuffer(self.codes, dtype=np.int64).reshape(-1, self.stages)
        return Groups.of(codes, np.frombuffer(self.number, dtype=np.float64))


@lru_cache(maxsize=4)
def _estimated(
    key: _Partitions,
    kinds: int,
    shares: tuple[float, ...],
    abstentions: Abstentions,
    bootstraps: int,
    second_model: bool,
    seed: int,
) -> Estimate:
    """The estimate, one row per partition, kept for a while.

    One log is asked several times: with its stages in a cascade and alone, and at other costs.
    """
    groups, votes = key.groups(), np.array(shares)
    found = _agreement(groups, kinds, votes)
    check = found.dependence
    number_of, accuracy, right = groups.number[None], found.accuracy[None], found.right[None]
    items = float(groups.number.sum())
    chain = check.chain * (1 - _contradicted(accuracy[0]))
    lean, belief = leaning(accuracy[0], chain)
    deeper = _believed(groups, belief)
    who = answering_stages(groups.codes, abstentions)
    answered = (groups.codes >= 0).any(axis=1)
    differing = answered & ~(groups.codes <= 0).all(axis=1)
    enough = key.stages >= 3 and bool(groups.number[differing].sum() >= FEW_DIFFERENCES)
    # The second model knows no copies but of the stage before, and in the plurality of the others
    # each has a vote: copies are left to the consensus.
    copied = float(np.clip(2 - 2 * votes.min(), 0.0, 1.0))
    worlds = None
    if second_model and enough and copied < 1:
        worlds = shared_difficulty(groups, kinds, seed=seed)
    part = 0.0 if worlds is None else SECOND_MODEL * (1 - copied)

    def all_counted(truths: FloatArray, second: FloatArray | float) -> FloatArray:
        return (1 - part) * ((1 - lean) * truths + lean * deeper) + part * second

    held = held_against_others(groups, accuracy[0], votes, kinds)[None]
    third = OTHERS * (1 - copied) * (1 - chain) if key.stages >= 3 else 0.0

    def rates_of(sample: FloatArray, together: FloatArray) -> FloatArray:
        alone = _error_rates(who, sample, np.where(np.isnan(held), together, held))
        return (1 - third) * _error_rates(who, sample, together) + third * alone

    draws = []
    generator = np.random.default_rng(seed)
    most = max(1, min(bootstraps, _CELLS // max(right.size, 1)))
    for start in range(0, bootstraps, most):
        size = min(most, bootstraps - start)
        sample = generator.multinomial(round(items), groups.number / items, size=size).astype(
            np.float64
        )
        truths = maximise(groups, sample, kinds, votes, start=right[0])[1]
        # Each sample goes with one of the worlds that the second model holds possible.
        second = 0.0 if worlds is None else worlds[generator.integers(0, len(worlds), size)]
        draws.append(rates_of(sample, all_counted(truths, second)))
    second = 0.0 if worlds is None else worlds.mean(axis=0)
    together = all_counted(right, second)
    error_rates = rates_of(number_of, together)
    of_second = 0.0 if worlds is None else SUSPICION * (1 - copied)
    without = (1 - of_second) * right + of_second * second
    suspected = _error_rates(who, number_of, chain * together + (1 - chain) * without)
    result = Estimate(
        error_rates=error_rates[0],
        draws=np.concatenate(draws) if draws else error_rates,
        consensus=found.consensus,
        plurality_error_rates=_error_rates(who, number_of, plurality_of(groups)[None])[0],
        suspected_error_rates=suspected[0],
        dependence=check,
        lean=float(lean),
        belief=belief,
        right=together[0],
        enough=enough,
    )
    for shared in (
        result.error_rates, result.draws, result.plurality_error_rates,
        result.suspected_error_rates, result.belief, result.consensus.accuracy,
        result.consensus.votes,
    ):  # fmt: skip
        shared.flags.writeable = False  # they are handed out more than once
    return result


def leaning(accuracy: FloatArray, chain: float = 0.0) -> tuple[float, FloatArray]:
    """The part of the belief that goes to deeper stages, and each stage's part of that.

    >>> leaning(np.array([0.7, 0.8, 0.9, 0.9]))[0], leaning(np.array([0.7, 0.8, 0.9]))[0]
    (0.3, 0.5)
    >>> leaning(np.array([0.7, 0.9, 0.5]))[0]    # a last stage that both others contradict
    0.0
    """
    lean, doubling = LEAN, DOUBLING
    if len(accuracy) == 3:
        lean, doubling = LEAN_OF_THREE * (1 - _contradicted(accuracy)), DOUBLING_OF_THREE
    lean += (LEAN_IN_CHAIN - lean) * chain
    doubling += (DOUBLING_IN_CHAIN - doubling) * chain
    belief = doubling ** np.arange(len(accuracy), dtype=np.float64)
    return lean, belief / belief.sum()


def _contradicted(accuracy: FloatArray) -> float:
    """How far, from 0 to 1, both others contradict the last of three stages; more can err alike."""
    if len(accuracy) != 3:
        return 0.0
    lead = float(accuracy[:-1].max() - accuracy[-1])
    return float(np.clip((lead - LEAD_STARTS) / (LEAD_ENDS - LEAD_STARTS), 0.0, 1.0))


def _error_rates(who: IntArray, number: FloatArray, right: FloatArray) -> FloatArray:
    """The share of counted items on which the answer at each stage is wrong, of every sample."""
    columns = []
    for stop in range(who.shape[1]):
        giver = who[:, stop]
        counts = number * (giver != UNKNOWN)
        hit = np.where(
            giver == NO_ANSWER, 0.0, right[:, np.arange(len(giver)), np.maximum(giver, 0)]
        )
        total = counts.sum(axis=1)
        wrong = (counts * (1 - hit)).sum(axis=1)
        columns.append(np.where(total > 0, wrong / np.maximum(total, 1e-300), np.nan))
    return np.stack(columns, axis=1)


def _observed_accuracy(groups: Groups, right: FloatArray) -> FloatArray:
    """How often each stage is right where it answers, from the truths themselves, no prior."""
    answers = groups.number @ (groups.codes >= 0)
    return np.asarray(groups.number @ right / np.maximum(answers, 1e-300))


def _believed(groups: Groups, belief: FloatArray) -> FloatArray:
    """The probability that each output is right if the belief in every stage is given."""
    answered = (groups.codes >= 0) * belief
    total = answered.sum(axis=1, keepdims=True)
    return np.asarray(groups.same @ belief / np.where(total > 0, total, 1.0))


@names_settings
def answer_probabilities(
    codes: ArrayLike, abstentions: Abstentions = "go on", *, labels: int | None = None
) -> FloatArray:
    """For every item and stage, the probability that the answer there is right.

    >>> answer_probabilities([[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]] * 50)[1].round(2)
    array([0.42, 0.42, 0.58])
    """
    table = as_codes(codes)
    found = estimate(table, abstentions=abstentions, labels=labels, bootstraps=0)
    who = answering_stages(table, abstentions)
    given = np.take_along_axis(found.right, np.maximum(who, 0), axis=1)
    return np.asarray(np.where(who >= 0, given, 0.0))
