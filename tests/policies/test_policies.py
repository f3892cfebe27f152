from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats

from stopwise import Costs, Evidence, Policy, StopwiseError, make_policy, policy_names, register
from stopwise.policies import registry
from stopwise.policies.conformance import check_policy
from stopwise.policies.fixed import FixedStage
from stopwise.policies.hanawal2 import Hanawal2
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_literal import UssTsLiteral
from stopwise.policies.uss_ucb import UssUcb
from stopwise.policies.walks import going_on, step_walk

# ---- conformance ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "uss-ts",
        "uss-ts:prior_disagreed=0.5,prior_agreed=2",
        "uss-ts:prior_disagreed=10,prior_agreed=0.1",
        "uss-ts-literal",
        "uss-ts-literal:prior_disagreed=3,prior_agreed=0.5",
        "uss-ucb",
        "uss-ucb:alpha=0.51",
        "uss-ucb:alpha=10",
        "hanawal-2",
        "hanawal-2:alpha=0.1",
        "fixed",
        "fixed:stage=0",
        "fixed:stage=3",
        "fixed:stage=-2",
        "oracle",
        "oracle:stage=1",
    ],
)
def test_built_in_policies_conform(name):
    check_policy(make_policy(name))


def test_every_name_conforms():
    for name in policy_names():
        policy = registry.policy_class(name)
        if policy.__module__.startswith("stopwise."):
            check_policy(make_policy(name), seed=1)


def uniform(count):
    return np.full(count, 1 / count)


@dataclass(frozen=True)
class Good(Policy):
    name = "good"

    def _depth_probabilities(self, evidence, round, costs):
        return uniform(costs.stage_count)


@dataclass(frozen=True)
class Mutates(Good):
    name = "mutates"

    def _depth_probabilities(self, evidence, round, costs):
        evidence.seen[0, 1] += 1
        return uniform(costs.stage_count)


@dataclass(frozen=True)
class MutatesWhenDrawing(Good):
    name = "mutates-when-drawing"

    def draw(self, evidence, round, costs, rng):
        evidence.add([0, 1])
        return super().draw(evidence, round, costs, rng)


CALLS = []


@dataclass(frozen=True)
class Remembers(Good):
    name = "remembers"

    def _depth_probabilities(self, evidence, round, costs):
        CALLS.append(round)
        p = uniform(costs.stage_count)
        p[0] += 0.01 * (len(CALLS) % 7)
        return p / p.sum()


@dataclass(frozen=True)
class RemembersDraws(Good):
    name = "remembers-draws"

    def draw(self, evidence, round, costs, rng):
        CALLS.append(round)
        return len(CALLS) % costs.stage_count


@dataclass(frozen=True)
class GlobalGenerator(Good):
    name = "global-generator"

    def draw(self, evidence, round, costs, rng):
        return int(np.random.random() * costs.stage_count)  # noqa: NPY002  # what must be caught


@dataclass(frozen=True)
class WrongProbabilities(Good):
    name = "wrong-probabilities"

    def draw(self, evidence, round, costs, rng):
        return 0 if rng.random() < 0.9 else costs.stage_count - 1


@dataclass(frozen=True)
class CountsTooMuch(Good):
    name = "counts-too-much"

    def record(self, evidence, round, prefix):
        evidence.add([*prefix, *[0] * (evidence.stage_count - len(prefix))])


@dataclass(frozen=True)
class TakesAway(Good):
    name = "takes-away"

    def record(self, evidence, round, prefix):
        evidence.seen[:] = 0
        evidence.disagreed[:] = 0


@dataclass(frozen=True)
class ChangesPrefix(Good):
    name = "changes-prefix"

    def record(self, evidence, round, prefix):
        evidence.add(prefix)
        prefix.clear()


@dataclass(frozen=True)
class WrongShape(Good):
    name = "wrong-shape"

    def _depth_probabilities(self, evidence, round, costs):
        return uniform(costs.stage_count + 1)


@dataclass(frozen=True)
class OnlyTwoStages(Good):
    name = "only-two-stages"

    def _depth_probabilities(self, evidence, round, costs):
        return np.array([0.5, 0.5])


@dataclass(frozen=True)
class NotOne(Good):
    name = "not-one"

    def _depth_probabilities(self, evidence, round, costs):
        return uniform(costs.stage_count) * 0.9


@dataclass(frozen=True)
class NegativeProbability(Good):
    name = "negative"

    def _depth_probabilities(self, evidence, round, costs):
        p = np.zeros(costs.stage_count)
        p[:2] = -0.5, 1.5
        return p


@dataclass(frozen=True)
class NotANumber(Good):
    name = "not-a-number"

    def _depth_probabilities(self, evidence, round, costs):
        return np.full(costs.stage_count, np.nan)


@dataclass(frozen=True)
class Crashes(Good):
    name = "crashes"

    def _depth_probabilities(self, evidence, round, costs):
        return uniform(costs.stage_count)[[costs.stage_count]]


@dataclass(frozen=True)
class OutsideCascade(Good):
    name = "outside-cascade"

    def draw(self, evidence, round, costs, rng):
        return costs.stage_count


@dataclass(frozen=True)
class NoInt(Good):
    name = "no-int"

    def draw(self, evidence, round, costs, rng):
        return float(super().draw(evidence, round, costs, rng))


@dataclass(frozen=True)
class Grows(Good):
    name = "grows"
    log: list = dataclasses.field(default_factory=list)

    def record(self, evidence, round, prefix):
        evidence.add(prefix)
        self.log.append(round)


@dataclass(frozen=True)
class NoPickle(Good):
    name = "no-pickle"
    rule: object = dataclasses.field(default_factory=lambda: lambda: 0)


@dataclass(frozen=True, eq=False)
class ComesBackOther(Good):
    name = "comes-back-other"

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


def test_a_good_policy_of_a_user_conforms():
    check_policy(Good())


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        (Mutates(), "changes the evidence"),
        (MutatesWhenDrawing(), "changes the evidence"),
        (Remembers(), "remembers earlier calls"),
        (RemembersDraws(), "draws otherwise with the same seed"),
        (GlobalGenerator(), "draws otherwise with the same seed"),
        (WrongProbabilities(), "but states"),
        (CountsTooMuch(), "counts stages not called"),
        (TakesAway(), "takes evidence away"),
        (ChangesPrefix(), "changes the outputs"),
        (WrongShape(), "gives no distribution"),
        (OnlyTwoStages(), "gives no distribution"),
        (NotOne(), "gives no distribution"),
        (NegativeProbability(), "gives no distribution"),
        (NotANumber(), "gives no distribution"),
        (Crashes(), "raises IndexError"),
        (OutsideCascade(), "outside the cascade"),
        (NoInt(), "no int"),
        (Grows(), "grows as it runs"),
        (ComesBackOther(), "does not come back equal"),
    ],
    ids=lambda value: value.name if isinstance(value, Policy) else "",
)
def test_conformance_catches(policy, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_policy(policy)


def test_conformance_catches_what_cannot_be_pickled():
    with pytest.raises(Exception, match=r"pickle|local object"):
        check_policy(NoPickle())


# ---- USS-TS -----------------------------------------------------------------------------------


def random_evidence(rng, count, most):
    seen = rng.integers(0, most + 1, size=(count, count))
    return Evidence.from_counts(seen, rng.integers(0, seen + 1))


def test_uss_ts_by_hand():
    # Beta(1, 1): P(sample < x) = x. Three stages with prices 0.2 and 0.3.
    p = UssTs().probabilities(Evidence(3), 1, Costs.from_cumulative((0.0, 0.2, 0.5)))
    np.testing.assert_allclose(p, [0.1, 0.9 * 0.3, 0.9 * 0.7], rtol=1e-14)
    # One disagreement, Beta(2, 1): x^2; one agreement, Beta(1, 2): 1 - (1 - x)^2.
    evidence = Evidence.from_counts([[0, 1], [0, 0]], [[0, 1], [0, 0]])
    assert UssTs().probabilities(evidence, 2, Costs.from_cumulative((0, 0.3)))[0] == pytest.approx(
        0.09, rel=1e-14
    )
    evidence = Evidence.from_counts([[0, 1], [0, 0]], [[0, 0], [0, 0]])
    assert UssTs().probabilities(evidence, 2, Costs.from_cumulative((0, 0.3)))[0] == pytest.approx(
        0.51, rel=1e-14
    )


def test_thresholds_that_are_never_or_always_passed():
    evidence = Evidence.from_prefixes(3, [[0, 1, 0]] * 5)
    for policy in (UssTs(), UssTsLiteral(), UssTs(1e-3, 1e-3)):
        assert policy.probabilities(evidence, 6, Costs.from_cumulative((0, 0, 0))).tolist() == [
            0,
            0,
            1,
        ]
        assert policy.probabilities(evidence, 6, Costs.from_cumulative((0, 1, 2))).tolist() == [
            1,
            0,
            0,
        ]
    rng = np.random.default_rng(0)
    extreme = UssTsLiteral(1e-3, 1e-3)  # its draws are often rounded to exactly 0 or 1
    for _ in range(200):
        assert extreme.draw(Evidence(3), 1, Costs.from_cumulative((0, 0, 0)), rng) == 2
        assert extreme.draw(Evidence(3), 1, Costs.from_cumulative((0, 1, 2)), rng) == 0


def exact_walk(cdf, count):
    """Independent: the walk of the pseudo-code over a table of passing probabilities."""
    result, arriving = [], 1.0
    for i in range(count - 1):
        stop = math.prod(cdf[i][j] for j in range(i + 1, count))
        result.append(arriving * stop)
        arriving *= 1 - stop
    return [*result, arriving]


def test_exact_probability_against_scipy():
    rng = np.random.default_rng(11)
    for _ in range(300):
        count = int(rng.integers(2, 9))
        evidence = random_evidence(rng, count, int(rng.choice([1, 10, 1000, 10**6])))
        costs = Costs.from_cumulative(
            tuple(np.cumsum(rng.random(count) * rng.choice([0.02, 0.2, 0.6])))
        )
        a0, b0 = (float(value) for value in rng.choice([0.5, 1.0, 4.0], size=2))
        cdf = [
            [
                scipy.stats.beta.cdf(
                    costs.cumulative[j] - costs.cumulative[i],
                    evidence.disagreed[i, j] + a0,
                    evidence.seen[i, j] - evidence.disagreed[i, j] + b0,
                )
                for j in range(count)
            ]
            for i in range(count)
        ]
        p = UssTs(a0, b0).probabilities(evidence, 1, costs)
        np.testing.assert_allclose(p, exact_walk(cdf, count), atol=1e-12, rtol=0)
        passes, fails = UssTs(a0, b0).pair_tests(evidence, costs)
        upper = np.triu_indices(count, 1)
        np.testing.assert_allclose(passes[upper], np.array(cdf)[upper], atol=1e-12, rtol=0)
        np.testing.assert_allclose((passes + fails)[upper], 1, atol=1e-12)


def test_exact_probability_against_fifty_digits():
    rng = np.random.default_rng(12)
    with mpmath.workdps(50):
        for _ in range(60):
            count = int(rng.integers(2, 6))
            evidence = random_evidence(rng, count, 40)
            costs = Costs.from_cumulative(tuple(np.cumsum(rng.random(count) * 0.4)))
            arriving = mpmath.mpf(1)
            p = UssTs().probabilities(evidence, 1, costs)
            for i in range(count):
                stop = mpmath.mpf(1)
                for j in range(i + 1, count):
                    x = min(float(costs.in_mistakes[j] - costs.in_mistakes[i]), 1.0)
                    a = int(evidence.disagreed[i, j]) + 1
                    b = int(evidence.seen[i, j] - evidence.disagreed[i, j]) + 1
                    stop *= mpmath.betainc(a, b, 0, x, regularized=True)
                expected = arriving * stop
                assert abs(p[i] - expected) <= 1e-13
                # Also the tiny ones keep their digits.
                if expected > 1e-250:
                    assert abs(p[i] / expected - 1) <= 1e-9
                arriving *= 1 - stop


def test_rare_looks_deeper_keep_their_digits():
    assert going_on(np.array([1e-30, 3e-30])) == pytest.approx(4e-30, rel=1e-12)
    passes = np.array([[0, 1 - 1e-18, 1.0], [0, 0, 0.5], [0, 0, 0]])
    fails = np.array([[0, 1e-18, 0.0], [0, 0, 0.5], [0, 0, 0]])
    np.testing.assert_allclose(step_walk(passes, fails), [1, 5e-19, 5e-19], rtol=1e-12)


def test_literal_draws_follow_the_exact_probabilities():
    """Chi-square of 2,000 draws in each of 60 random situations; false-alarm rate 1e-6 in all.

    Depths expected fewer than 20 times are pooled, so that the chi-square law is a good one; the
    level of each comparison is 1e-6 / 60.
    """
    rng = np.random.default_rng(13)
    draws, situations = 2000, 60
    compared = 0
    for _ in range(situations):
        count = int(rng.integers(2, 7))
        evidence = random_evidence(rng, count, int(rng.choice([0, 3, 20])))
        costs = Costs.from_cumulative(tuple(np.cumsum(rng.random(count) * rng.choice([0.3, 0.8]))))
        policy = UssTsLiteral(*(float(v) for v in rng.choice([0.5, 1.0, 3.0], size=2)))
        p = policy.probabilities(evidence, 1, costs)
        counts = np.bincount(
            [policy.draw(evidence, 1, costs, rng) for _ in range(draws)], minlength=count
        )
        assert not counts[p == 0].any()
        expected = p * draws
        small = expected < 20
        expected = np.append(expected[~small], expected[small].sum())
        observed = np.append(counts[~small], counts[small].sum())
        if expected[-1] < 20:  # too rare even together: add them to the most frequent
            most = expected[:-1].argmax()
            expected[most] += expected[-1]
            observed[most] += observed[-1]
            expected, observed = expected[:-1], observed[:-1]
        if len(expected) < 2:
            continue
        compared += 1
        statistic = ((observed - expected) ** 2 / expected).sum()
        tail = scipy.stats.chi2.sf(statistic, len(expected) - 1)
        assert tail > 1e-6 / situations, (p, counts)
    assert compared >= 30


# ---- USS-UCB and Hanawal's Algorithm 2 ----------------------------------------------------------


def test_uss_ucb_tests_both_sides():
    # Stage 1 fails only against 3; stage 2 passes upwards but not downwards: C_2 - C_1 > u_12.
    costs = Costs.from_cumulative((0.0, 0.5, 0.9))
    seen = [[0, 10**6, 10**6], [0, 0, 10**6], [0, 0, 0]]
    disagreed = [[0, 10**5, 95 * 10**4], [0, 0, 10**5], [0, 0, 0]]
    evidence = Evidence.from_counts(seen, disagreed)
    assert UssUcb().probabilities(evidence, 10**6, costs).tolist() == [0, 0, 1]
    assert Hanawal2().probabilities(evidence, 10**6, costs).tolist() == [0, 1, 0]


def test_strict_and_weak_inequalities():
    # At round 1 the bonus is 0, so that u = D/N = 1/4 exactly; the price is exactly 1/4.
    evidence = Evidence.from_counts([[0, 4], [0, 0]], [[0, 1], [0, 0]])
    costs = Costs.from_cumulative((0.0, 0.25))
    assert UssUcb().probabilities(evidence, 1, costs).tolist() == [0, 1]  # needs >
    assert Hanawal2().probabilities(evidence, 1, costs).tolist() == [1, 0]  # needs >=


class PlainUssUcb:
    """USS-UCB written from its pseudo-code, with its own state; arms 1..K."""

    def __init__(self, C, alpha):
        self.C, self.K, self.alpha, self.t = C, len(C), alpha, 0
        self.D, self.N = {}, {}

    def choose(self):
        self.t += 1
        if self.t == 1:
            return self.K
        u = {
            pair: float(Fraction(self.D[pair], self.N[pair]))
            + math.sqrt(self.alpha * math.log(self.t) / self.N[pair])
            for pair in self.N
        }
        C = {i: self.C[i - 1] for i in range(1, self.K + 1)}
        arms = range(1, self.K + 1)
        low = {i for i in arms if all(C[i] - C[j] <= u[j, i] for j in arms if j < i)} | {1}
        high = {i for i in arms if all(C[j] - C[i] > u[i, j] for j in arms if j > i)} | {self.K}
        return min((low & high) | {self.K})

    def observe(self, outputs):
        for j in range(2, len(outputs) + 1):
            for i in range(1, j):
                self.D[i, j] = self.D.get((i, j), 0) + (outputs[i - 1] != outputs[j - 1])
                self.N[i, j] = self.N.get((i, j), 0) + 1


class PlainHanawal2:
    """Algorithm 2 written from its pseudo-code, with counts per arm and running means."""

    def __init__(self, C, alpha):
        self.C, self.K, self.alpha, self.t = C, len(C), alpha, 0

    def choose(self):
        self.t += 1
        if self.t == 1:
            return self.K
        for i in range(1, self.K):
            passes = True
            for j in range(i + 1, self.K + 1):
                if self.n[j] == 0:
                    passes = False
                else:
                    u = float(self.g[i, j]) + math.sqrt(self.alpha * math.log(self.t) / self.n[j])
                    passes = passes and self.C[j - 1] - self.C[i - 1] >= u
            if passes:
                return i
        return self.K

    def observe(self, outputs):
        if self.t == 1:
            self.n = {i: int(i == self.K) for i in range(1, self.K + 1)}
            self.g = {
                (i, j): Fraction(int(outputs[i - 1] != outputs[j - 1]))
                for j in range(2, self.K + 1)
                for i in range(1, j)
            }
            return
        for j in range(1, len(outputs) + 1):
            self.n[j] += 1
            for i in range(1, j):
                differs = int(outputs[i - 1] != outputs[j - 1])
                self.g[i, j] += (differs - self.g[i, j]) / self.n[j]


@pytest.mark.parametrize(
    ("plain", "policy"),
    [
        (PlainUssUcb, UssUcb(0.5)),
        (PlainUssUcb, UssUcb(0.05)),
        (PlainHanawal2, Hanawal2(1.5)),
        (PlainHanawal2, Hanawal2(0.05)),
    ],
    ids=lambda value: value.label() if isinstance(value, Policy) else value.__name__,
)
def test_decisions_equal_the_pseudo_code_round_for_round(plain, policy):
    rng = np.random.default_rng(21)
    depths = set()
    for _ in range(30):
        count = int(rng.integers(2, 7))
        costs = Costs.from_cumulative(
            tuple(np.cumsum(rng.random(count) * rng.choice([0.2, 0.6, 1.5])))
        )
        wrong = rng.random(count) * 0.4
        own = plain(costs.cumulative, policy.alpha)
        evidence = Evidence(count)
        for t in range(1, 301):
            outputs = (rng.random(count) < wrong).astype(int).tolist()
            expected = own.choose() - 1
            depth = policy.draw(evidence, t, costs, rng)
            assert depth == expected, (count, t)
            own.observe(outputs[: depth + 1])
            policy.record(evidence, t, outputs[: depth + 1])
            depths.add((count, depth))
    assert len(depths) >= 12  # the runs did meet many depths


def test_hanawal_first_round_counts_only_pairs_with_the_last_stage():
    evidence = Evidence(3)
    Hanawal2().record(evidence, 1, ["a", "b", "a"])
    assert evidence.seen.tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert evidence.disagreed.tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    Hanawal2().record(evidence, 2, ["a", "b", "a"])
    assert evidence.seen.tolist() == [[0, 1, 2], [0, 0, 2], [0, 0, 0]]


# ---- registry -----------------------------------------------------------------------------------


def test_names_of_the_issue():
    assert policy_names()[:6] == [
        "uss-ts", "uss-ts-literal", "uss-ucb", "hanawal-2", "fixed", "oracle",
    ]  # fmt: skip
    assert make_policy("uss-ucb") == UssUcb(alpha=0.5)
    assert make_policy("hanawal-2") == Hanawal2(alpha=1.5)
    assert make_policy("uss-ts") == UssTs(1.0, 1.0)


@pytest.mark.parametrize("name", ["uss-ucb:alpha=0.51", "uss-ts:prior_agreed=2.0", "fixed:stage=0"])
def test_labels_make_the_policy_again(name):
    policy = make_policy(name)
    assert policy.label() == name
    assert make_policy(policy.label()) == policy
    assert registry.policy_from_json(registry.policy_to_json(policy)) == policy


def test_numpy_settings():
    assert registry.policy_from_json(registry.policy_to_json(UssUcb(np.float32(0.5)))) == UssUcb()
    assert make_policy("fixed", stage=np.int64(1)) == FixedStage(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uss-tsx", "policy: got 'uss-tsx', but need one of uss-ts, uss-ts-literal"),
        ("", "policy: got '', but need one of uss-ts"),
        ("uss-ucb:beta=1", "policy uss-ucb: unknown setting 'beta'; its settings are: alpha"),
        ("uss-ucb:alpha", "policy uss-ucb: got 'alpha', but need settings written as name=value"),
        ("uss-ucb:alpha=", "but need settings written as name=value, separated by ','"),
        ("uss-ucb:alpha=0", "alpha: got 0, but need a number above 0"),
        ("uss-ucb:alpha=nan", "alpha: got 'nan', but need a number above 0"),
        ("uss-ucb:alpha=NaN", "alpha: got nan, but need a number above 0"),
        ("uss-ucb:alpha=1e999", "alpha: got inf, but need a number above 0"),
        ("uss-ucb:alpha=wide", "alpha: got 'wide', but need a number above 0"),
        ("uss-ucb:alpha=1,alpha=2", "policy uss-ucb: setting 'alpha' is given twice"),
        ("uss-ucb:alpha=" + "9" * 5000, "alpha: got '999"),
        ("uss-ucb:alpha=" + "[" * 100_000, "alpha: got '[[["),
        ("uss-ts:prior_agreed=-1", "prior_agreed: got -1, but need a number above 0"),
        ("fixed:stage=abc", "stage: got 'abc', but need a whole number"),
        ("fixed:stage=1.5", "stage: got 1.5, but need a whole number"),
        ("fixed:stage=true", "stage: got True, but need a whole number"),
        ("fixed:stage=null", "stage: got None, but need a whole number"),
        ("oracle:stage=-1", "stage: got -1, but need a whole number, 0 or more"),
        (7, "policy: got 7, but need a policy or one of uss-ts"),
        (None, "policy: got None, but need a policy or one of uss-ts"),
    ],
)
def test_refused_policies(text, message):
    with pytest.raises(StopwiseError) as error:
        make_policy(text)
    assert message in str(error.value)


def test_settings_are_never_ignored():
    with pytest.raises(StopwiseError, match="a name, where settings are given beside it"):
        make_policy(UssUcb(), alpha=1)
    with pytest.raises(StopwiseError, match="setting 'alpha' is given twice"):
        make_policy("uss-ucb:alpha=1", alpha=1)
    with pytest.raises(StopwiseError, match="unknown setting 'beta'"):
        make_policy("uss-ucb", beta=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "policy: got [], but need a JSON object"),
        ('{"policy": 1}', "policy: got 1, but need one of uss-ts"),
        ('{"policy": "uss-ucb", "parameters": []}', "parameters: got [], but need an object"),
        ('{"policy": "uss-ucb", "setting": {}}', "policy: unknown field 'setting'"),
        ('{"policy": "uss-ucb", "version": 9}', "version: got 9, but need version 1"),
    ],
)
def test_refused_json(text, message):
    with pytest.raises(StopwiseError) as error:
        registry.policy_from_json(text)
    assert message in str(error.value)


def test_wrong_use():
    with pytest.raises(StopwiseError, match="evidence: got '2 stages', but need 3 stages"):
        UssTs().probabilities(Evidence(2), 1, Costs.from_cumulative((0, 1, 2)))
    for round in (0, -1, 1.5, None, math.nan):
        with pytest.raises(StopwiseError, match="round: got"):
            UssTs().probabilities(Evidence(2), round, Costs.from_cumulative((0, 1)))
    with pytest.raises(StopwiseError, match="oracle: only a simulation can tell it"):
        make_policy("oracle").probabilities(Evidence(2), 1, Costs.from_cumulative((0, 1)))
    with pytest.raises(StopwiseError, match="stage: got 2, but need a stage from 0 to 1"):
        make_policy("fixed:stage=2").probabilities(Evidence(2), 1, Costs.from_cumulative((0, 1)))


@pytest.fixture
def clean_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


@pytest.mark.usefixtures("clean_registry")
def test_register():
    register(Good)
    assert "good" in policy_names()
    assert make_policy("good") == Good()

    @register
    @dataclass(frozen=True)
    class NeedsStage(Good):
        stage: int
        name = "needs-stage"

    assert make_policy("needs-stage:stage=1") == NeedsStage(stage=1)
    with pytest.raises(StopwiseError, match="policy needs-stage: the setting 'stage' must be giv"):
        make_policy("needs-stage")


@pytest.mark.usefixtures("clean_registry")
def test_refused_registrations():
    @dataclass(frozen=True)
    class Impostor(Good):
        name = "uss-ts"

    @dataclass(frozen=True)
    class Colon(Good):
        name = "a:b"

    @dataclass(frozen=True)
    class NoPolicy:
        name = "no-policy"

    class NoDataclass(Policy):
        name = "no-dataclass"

        def _depth_probabilities(self, evidence, round, costs):
            return uniform(costs.stage_count)

    for policy, message in [
        (Impostor, "a name that no built-in policy has"),
        (Colon, "text without ':', ',', '=' or spaces"),
        (NoPolicy, "a subclass of stopwise.Policy"),
        (Good(), "a subclass of stopwise.Policy"),
        (NoDataclass, "a dataclass, so that its settings can be written down"),
    ]:
        with pytest.raises(StopwiseError) as error:
            register(policy)
        assert message in str(error.value)
