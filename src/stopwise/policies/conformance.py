"""One suite of checks for every policy: the built-in ones and yours.

from stopwise.policies.conformance import check_policy
check_policy(MyPolicy())
"""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable, Iterator

import numpy as np

from stopwise.checks import StopwiseError, names_settings
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.policies.base import Policy
from stopwise.policies.oracle import with_oracle_stage
from stopwise.policies.registry import make_policy, policy_from_json, policy_names, policy_to_json

FALSE_ALARM_RATE = 1e-9
"""Chance that `check_policy` rejects a correct policy, by its one statistical check (bounded)."""

_HORIZON = 1000


@names_settings
def check_policy(policy: Policy | str, seed: int = 0) -> None:
    """Raise AssertionError, saying what is wrong, unless the policy keeps the rules of the frame.

    Args:
        policy: a policy, or its name as `simulate` takes it.
        seed: of the situations that it is tried in.

    >>> from stopwise.policies.uss_ts import UssTs
    >>> check_policy(UssTs())
    """
    checks: list[Callable[[Policy, np.random.SeedSequence], None]] = [
        check_is_pure,
        check_survives_pickle_and_json,
        check_same_seed_same_draws,
        check_draws_follow_probabilities,
        check_record_stays_within_prefix,
        check_memory_is_bounded,
        check_compiled_rule,
    ]
    checked = make_policy(policy)
    seeds = np.random.SeedSequence(seed).spawn(len(checks))
    for check, check_seed in zip(checks, seeds, strict=True):
        check(checked, check_seed)


def random_situations(
    policy: Policy, seed: np.random.SeedSequence, number: int = 30
) -> Iterator[tuple[Policy, Evidence, int, Costs, np.random.Generator]]:
    """Cascades of 2 to 8 stages with random costs and random, partly empty evidence."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        stage_count = int(rng.integers(2, 9))
        costs = Costs.from_stages((rng.random(stage_count) * rng.choice([0.1, 0.5, 1.0])).tolist())
        evidence = Evidence(stage_count)
        for _ in range(int(rng.choice([0, 1, 5, 30]))):
            outputs = rng.integers(0, 3, size=int(rng.integers(1, stage_count + 1))).tolist()
            evidence.add([None if rng.random() < 0.05 else output for output in outputs])
        ready = with_oracle_stage(policy, int(rng.integers(stage_count))).for_horizon(_HORIZON)
        if not _takes(ready, costs):
            continue
        yield ready, evidence, int(rng.integers(1, _HORIZON)), costs, rng


def _takes(policy: Policy, costs: Costs) -> bool:
    """Whether the policy can be used on this cascade at all, and then without an error.

    A policy may refuse by a StopwiseError of its own, as a fixed stage that the cascade does not
    have does; anything else that it raises, and any answer that is no distribution, is its fault.
    """
    try:
        policy._depth_probabilities(Evidence(costs.stage_count), 1, costs)
    except StopwiseError:
        return False
    except Exception as error:
        raise AssertionError(
            f"{policy.name} raises {type(error).__name__} on {costs.stage_count} stages: {error}"
        ) from error
    try:
        policy.probabilities(Evidence(costs.stage_count), 1, costs)
    except ValueError as error:
        raise AssertionError(f"{policy.name} gives no distribution: {error}") from error
    return True


def check_is_pure(policy: Policy, seed: np.random.SeedSequence) -> None:
    """Same arguments, same probabilities, whatever was asked before; arguments unchanged."""
    answers = []
    for ready, evidence, round, costs, rng in random_situations(policy, seed):
        before = evidence.copy()
        first = ready.probabilities(evidence, round, costs)
        ready.draw(evidence, round, costs, rng)
        assert evidence == before, f"{policy.name} changes the evidence it is given"
        answers.append((ready, evidence, round, costs, first))
    assert answers, f"{policy.name} cannot be used on any cascade of 2 to 8 stages"
    for ready, evidence, round, costs, first in reversed(answers):
        again = ready.probabilities(evidence, round, costs)
        assert np.array_equal(first, again), f"{policy.name} remembers earlier calls"


def check_survives_pickle_and_json(policy: Policy, seed: np.random.SeedSequence) -> None:
    """A copy through pickle, and through JSON if its name is registered, decides alike."""
    copies = [pickle.loads(pickle.dumps(policy))]
    if policy.name in policy_names():
        copies.append(policy_from_json(policy_to_json(policy)))
    for copy in copies:
        assert copy == policy, f"{policy.name} does not come back equal from pickle or JSON"
    for ready, evidence, round, costs, _ in random_situations(policy, seed, 5):
        twin = pickle.loads(pickle.dumps(ready))
        assert np.array_equal(
            ready.probabilities(evidence, round, costs), twin.probabilities(evidence, round, costs)
        ), f"{policy.name} decides otherwise after pickling"


def check_same_seed_same_draws(policy: Policy, seed: np.random.SeedSequence) -> None:
    """Randomness comes from the generator alone."""
    for ready, evidence, round, costs, rng in random_situations(policy, seed, 10):
        key = int(rng.integers(2**32))
        one, two = np.random.default_rng(key), np.random.default_rng(key)
        draws = [ready.draw(evidence, round, costs, one) for _ in range(20)]
        again = [ready.draw(evidence, round, costs, two) for _ in range(20)]
        assert draws == again, f"{policy.name} draws otherwise with the same seed"
        for depth in draws:
            assert isinstance(depth, int), f"{policy.name} draws {depth!r}, which is no int"
            assert 0 <= depth < costs.stage_count, (
                f"{policy.name} draws a depth outside the cascade"
            )


def check_draws_follow_probabilities(policy: Policy, seed: np.random.SeedSequence) -> None:
    """`draw` has the distribution that `probabilities` states.

    Per depth, Bernstein's inequality bounds the chance that the count of a correct policy strays by
    more than the tolerance; summed over all comparisons it is below FALSE_ALARM_RATE.
    """
    draws, situations = 400, 20
    logarithm = np.log(2 * 8 * situations / FALSE_ALARM_RATE)
    for ready, evidence, round, costs, rng in random_situations(policy, seed, situations):
        p = ready.probabilities(evidence, round, costs)
        counts = np.bincount(
            [ready.draw(evidence, round, costs, rng) for _ in range(draws)],
            minlength=costs.stage_count,
        )
        assert len(counts) == costs.stage_count, f"{policy.name} draws a depth outside the cascade"
        variance = draws * p * (1 - p)
        tolerance = logarithm / 3 + np.sqrt((logarithm / 3) ** 2 + 2 * variance * logarithm)
        tolerance[(p == 0) | (p == 1)] = 0
        strays = np.abs(counts - draws * p) > tolerance
        assert not strays.any(), f"{policy.name} draws {counts / draws} but states {p}"


def check_record_stays_within_prefix(policy: Policy, seed: np.random.SeedSequence) -> None:
    """Counting a round touches only pairs of stages that were called, and never takes away."""
    for ready, evidence, _, costs, rng in random_situations(policy, seed):
        for round in (1, 2, 50):
            depth = int(rng.integers(costs.stage_count))
            after = evidence.copy()
            prefix = rng.integers(0, 2, size=depth + 1).tolist()
            given = list(prefix)
            ready.record(after, round, prefix)
            assert prefix == given, f"{policy.name} changes the outputs it is given"
            change = after.seen - evidence.seen
            assert (change >= 0).all(), f"{policy.name} takes evidence away"
            assert not change[:, depth + 1 :].any(), f"{policy.name} counts stages not called"
            differed = after.disagreed - evidence.disagreed
            assert (differed >= 0).all(), f"{policy.name} takes evidence away"
            assert (differed <= change).all(), (
                f"{policy.name} counts more disagreements than it saw"
            )


def check_memory_is_bounded(policy: Policy, seed: np.random.SeedSequence) -> None:
    """A policy is the same size after a thousand rounds."""
    costs = Costs.from_cumulative((0.1, 0.2, 0.3))
    ready = with_oracle_stage(policy, 0).for_horizon(_HORIZON)
    rng = np.random.default_rng(seed)
    evidence = Evidence(3)
    if not _takes(ready, costs):
        return
    size = len(pickle.dumps(ready))
    for round in range(1, _HORIZON + 1):
        depth = ready.draw(evidence, round, costs, rng)
        ready.record(evidence, round, rng.integers(0, 2, size=depth + 1).tolist())
    assert len(pickle.dumps(ready)) == size, f"{policy.name} grows as it runs"


def check_compiled_rule(policy: Policy, seed: np.random.SeedSequence) -> None:
    """Where the rule is written a second time, for numba, both give the same probabilities."""
    if importlib.util.find_spec("numba") is None:
        return
    rules: dict[Policy, Callable[..., None] | None] = {}  # each is compiled when first called
    for ready, evidence, round, costs, _ in random_situations(policy, seed):
        rule = rules[ready] if ready in rules else rules.setdefault(ready, ready.compiled_rule())
        if rule is None:
            return
        depths = np.zeros(costs.stage_count)
        rule(evidence.seen, evidence.disagreed, np.array(costs.thresholds), round, depths)
        p = ready.probabilities(evidence, round, costs)
        assert np.allclose(depths, p, rtol=1e-9, atol=1e-300), (
            f"the compiled_rule of {policy.name} gives {depths} where the rule gives {p}"
        )
