"""The consensus against a second EM, written for every label with plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise.checks import StopwiseError
from stopwise.estimating import consensus, dependence, estimate, plurality, vote_shares
from stopwise.estimating.consensus import Groups


def brute_force(rows, number, kinds, rounds):
    """Dawid-Skene with one coin for each stage, item by item and label by label."""
    stages = len(rows[0])
    belief = []
    for row in rows:
        votes = [sum(code == label for code in row) for label in range(kinds)]
        most = max(votes)
        winners = [label for label in range(kinds) if votes[label] == most and most > 0]
        belief.append([1 / len(winners) if label in winners else 0.0 for label in range(kinds)])
    accuracy: list[float] = []
    for _ in range(rounds):
        accuracy = []
        for s in range(stages):
            right = answers = 0.0
            for row, times, known in zip(rows, number, belief, strict=True):
                if row[s] >= 0:
                    right += times * known[row[s]]
                    answers += times
            accuracy.append(min(max((right + 2) / (answers + 3), 1e-4), 1 - 1e-4))
        belief = []
        for row in rows:
            weights = []
            for label in range(kinds):
                chance = 1.0
                for s, code in enumerate(row):
                    if code >= 0:
                        wrong = (1 - accuracy[s]) / (kinds - 1)
                        chance *= accuracy[s] if code == label else wrong
                weights.append(chance)
            belief.append([weight / sum(weights) for weight in weights])
    likelihood = 0.0
    for row, times in zip(rows, number, strict=True):
        total = sum(
            math.prod(
                (accuracy[s] if code == label else (1 - accuracy[s]) / (kinds - 1))
                for s, code in enumerate(row)
                if code >= 0
            )
            for label in range(kinds)
        )
        likelihood += times * math.log(total / kinds)
    return accuracy, belief, likelihood


def cascade(rng, items, errors, kinds=3, silent=0.0):
    truth = rng.integers(0, kinds, items)
    columns = []
    for error in errors:
        wrong = (truth + rng.integers(1, kinds, items)) % kinds
        column = np.where(rng.random(items) < error, wrong, truth)
        columns.append(np.where(rng.random(items) < silent, -1, column))
    return np.stack(columns, axis=1), truth


@pytest.mark.parametrize(("kinds", "silent", "seed"), [(2, 0.0, 1), (3, 0.2, 2), (5, 0.4, 3)])
def test_equals_a_second_implementation(kinds, silent, seed):
    codes, _ = cascade(np.random.default_rng(seed), 300, [0.4, 0.25, 0.15, 0.1], kinds, silent)
    found = consensus(codes, labels=kinds, votes=np.ones(4))
    accuracy, belief, likelihood = brute_force(codes.tolist(), [1] * 300, kinds, rounds=300)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-5)
    assert found.log_likelihood == pytest.approx(likelihood, abs=1e-2)
    for row, known, right, elsewhere in zip(
        codes, belief, found.right, found.elsewhere, strict=True
    ):
        expected = [known[code] if code >= 0 else 0.0 for code in row]
        assert right == pytest.approx(expected, abs=1e-4)
        unsaid = sum(p for label, p in enumerate(known) if label not in row)
        assert elsewhere == pytest.approx(unsaid, abs=1e-4)


def test_by_hand_three_rows():
    """Two stages against one: after one round the odds are those of the accuracies."""
    rows, number = [[0, 0, 0], [0, 0, 1], [1, 0, 0]], [6, 1, 1]
    accuracy, belief, _ = brute_force(rows, number, 2, rounds=1)
    assert accuracy == pytest.approx([(7 + 2) / 11, (8 + 2) / 11, (7 + 2) / 11])
    odds = (9 * 10 / 11**2 * 2 / 11) / (2 * 1 / 11**2 * 9 / 11)
    assert belief[1][0] == pytest.approx(odds / (1 + odds))


def test_finds_the_errors_of_independent_stages():
    """20,000 items, a standard error of about 0.003: 0.02 is more than 6 of them."""
    errors = [0.4, 0.25, 0.15, 0.08]
    codes, truth = cascade(np.random.default_rng(4), 20_000, errors, kinds=4)
    found = consensus(codes)
    assert 1 - found.accuracy == pytest.approx(errors, abs=0.02)
    # The stated probabilities are true: outputs said to be right with 90 to 100 % are.
    sure = found.right > 0.9
    assert (codes == truth[:, None])[sure].mean() == pytest.approx(
        found.right[sure].mean(), abs=0.02
    )


def test_abstentions_say_nothing():
    codes, _ = cascade(np.random.default_rng(5), 3000, [0.3, 0.2, 0.1], silent=0.5)
    found = consensus(codes)
    assert 1 - found.accuracy == pytest.approx([0.3, 0.2, 0.1], abs=0.06)
    assert (found.right[codes < 0] == 0).all()


def test_rows_that_nobody_answered_change_nothing():
    codes = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0], [-1, -1, -1]])
    without = consensus(codes[:3], [5, 80, 9], labels=2)
    with_them = consensus(codes, [5, 80, 9, 40], labels=2)
    assert with_them.accuracy == pytest.approx(without.accuracy, abs=1e-9)


def test_copies_share_one_vote():
    """A bad stage, twice: the copies must not outvote two good ones."""
    rng = np.random.default_rng(6)
    codes, truth = cascade(rng, 4000, [0.35, 0.1, 0.1], kinds=3)
    codes = codes[:, [0, 0, 0, 1, 2]]
    assert vote_shares(codes) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1])
    errors = (codes != truth[:, None]).mean(axis=0)
    assert 1 - consensus(codes).accuracy == pytest.approx(errors, abs=0.05)
    naive = consensus(codes, votes=np.ones(5))
    assert abs((1 - naive.accuracy)[0] - errors[0]) > 0.2


def test_plurality_is_the_most_frequent_answer():
    codes = np.array([[0, 0, 1, 1], [2, 2, 2, 1], [-1, 3, -1, -1], [-1, -1, -1, -1]])
    assert plurality(codes).tolist() == [
        [0.5, 0.5, 0.5, 0.5], [1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]
    ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(-2, 3), min_size=3, max_size=3), min_size=1, max_size=20),
    st.permutations(range(4)),
)
def test_names_of_labels_and_order_of_rows_do_not_matter(rows, names):
    table = np.array(rows)
    renamed = np.where(table >= 0, np.array([*names, 0, 0])[table], table)
    a, b = consensus(table, labels=4), consensus(renamed[::-1], labels=4)
    assert a.accuracy == pytest.approx(b.accuracy, abs=1e-6)
    for row, right, elsewhere in zip(table, a.right, a.elsewhere, strict=True):
        said = {code: p for code, p in zip(row.tolist(), right, strict=True) if code >= 0}
        assert sum(said.values()) + elsewhere == pytest.approx(1.0)


def test_the_check_names_stages_that_follow_each_other():
    """Votes that contain each other: neighbours agree more than errors explain."""
    rng = np.random.default_rng(7)
    workers, truth = cascade(rng, 4000, [0.35] * 9, kinds=2)
    votes = [(workers[:, :k].mean(axis=1) > 0.5).astype(int) for k in (1, 3, 5, 7, 9)]
    nested = estimate(np.stack(votes, axis=1), bootstraps=0)
    assert nested.dependence.chain > 0.5
    assert nested.dependence.going_back < 0.75
    assert not nested.passed
    alone = estimate(workers[:, :5], bootstraps=0)
    assert alone.dependence.chain == 0
    assert alone.passed
    assert alone.lean < nested.lean
    errors = (np.stack(votes, axis=1) != truth[:, None]).mean(axis=0)
    # Without the check, the middle ones would look best; they are not.
    assert errors.argmin() == 4
    assert nested.error_rates[-1] < nested.error_rates[:3].min()


def test_unexplained_agreement_by_hand():
    codes = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])
    groups = Groups.of(codes, np.array([70.0, 10, 10, 10]))
    found = dependence(groups, np.array([0.9, 0.9, 0.9]), 2)
    assert found.unexplained[0, 1] == pytest.approx(0.8 - (0.81 + 0.01))
    # Back: the second differs from both others, 10 of 100; explained: .9*.1*.9 + .1*.9*.1.
    assert found.going_back == pytest.approx(0.10 / 0.09)


def test_intervals_cover_under_the_assumption():
    """20 logs, 3 stages, without the lean: the 95 % intervals should cover about 95 % of 60.

    Fewer than 42 of 60 would be a chance below 1e-9 at 95 %.
    """
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(20):
        codes, truth = cascade(rng, 1500, [0.3, 0.2, 0.12], kinds=4)
        found = estimate(codes, labels=4, bootstraps=100)
        low, high = found.interval()
        true = (codes != truth[:, None]).mean(axis=0)
        middle = found.error_rates
        # The lean shifts all; take the width of the interval around the consensus' own.
        own = found.consensus.error_rates()
        covered += int(((own - (middle - low) <= true) & (true <= own + (high - middle))).sum())
    assert covered >= 42


def test_go_on_counts_the_next_answer():
    codes = np.array([[-1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]])
    number = [40, 400, 30, 10]
    going_on = estimate(codes, number, labels=2, bootstraps=0)
    mistake = estimate(codes, number, labels=2, bootstraps=0, abstentions="mistake")
    left_out = estimate(codes, number, labels=2, bootstraps=0, abstentions="leave out")
    assert mistake.error_rates[0] == pytest.approx(going_on.error_rates[0] + 40 / 480, abs=0.01)
    assert left_out.error_rates[0] == pytest.approx(going_on.error_rates[0] * 480 / 440, abs=0.01)
    assert mistake.error_rates[1:] == pytest.approx(going_on.error_rates[1:])


def test_two_stages_estimate_nothing():
    assert not estimate([[0, 1], [0, 0]], [50, 50], bootstraps=0).enough


@pytest.mark.parametrize(
    ("codes", "number"), [([[0]], None), ([], None), ([[0, 1]], [-1]), ([[0, 1]], [1, 2])]
)
def test_refusals(codes, number):
    with pytest.raises(StopwiseError, match=r"codes|number"):
        consensus(codes, number)
