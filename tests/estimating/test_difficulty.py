"""The model of shared difficulty against plain loops over labels, and its sampler against normal
distributions with known moments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from stopwise.estimating import estimate
from stopwise.estimating.consensus import Groups
from stopwise.estimating.difficulty import Belief, Cases, shared_difficulty
from stopwise.estimating.ensemble import walk


def normal_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def chance_by_loops(row, kinds, point):
    """The chance of a row of outputs: over truths, usual mistakes and difficulties, as defined."""
    stages = len(row)
    level, repeats = point[:stages], [1 / (1 + math.exp(-k)) for k in point[stages : 2 * stages]]
    shared, usual_part = (1 / (1 + math.exp(-value)) for value in point[2 * stages :])
    total, of_truth = 0.0, [0.0] * kinds
    for difficulty, weight in zip(*hermegauss(7), strict=True):
        for truth, usual in itertools.permutations(range(kinds), 2):
            chance = weight
            for stage, answer in enumerate(row):
                if answer < 0:
                    continue
                right = normal_cdf(
                    (level[stage] - math.sqrt(shared) * difficulty) / math.sqrt(1 - shared)
                )
                own = right if answer == truth else (1 - right) * (1 - usual_part) / (kinds - 1)
                if answer == usual:
                    own += (1 - right) * usual_part
                if stage and row[stage - 1] >= 0:
                    own = (1 - repeats[stage]) * own
                    own += repeats[stage] * (row[stage - 1] == answer)
                chance *= own
            total += chance
            of_truth[truth] += chance
    return total, [of_truth[answer] / total if answer >= 0 else 0.0 for answer in row]


@pytest.mark.parametrize("kinds", [2, 3, 5])
def test_equals_plain_loops_over_labels(kinds):
    rng = np.random.default_rng(kinds)
    rows = rng.integers(-1, kinds, (40, 4))
    groups = Groups.of(rows, np.ones(len(rows)))
    cases = Cases.of(groups.codes, kinds)
    assert cases is not None
    points = Belief().draw(4, 3, rng)
    chances = np.add.reduceat(cases.chances(points), cases.starts, axis=1)
    right = cases.right(points)
    for at, point in enumerate(points):
        for row, group in zip(rows.tolist(), groups.inverse.tolist(), strict=True):
            expected, truths = chance_by_loops(row, kinds, point.tolist())
            assert chances[at, group] == pytest.approx(expected)
            assert right[at, group] == pytest.approx(truths)


def test_chances_of_all_rows_sum_to_one():
    kinds, stages = 3, 3
    rows = np.array(list(itertools.product(range(kinds), repeat=stages)))
    groups = Groups.of(rows, np.ones(len(rows)))
    cases = Cases.of(groups.codes, kinds)
    assert cases is not None
    points = Belief().draw(stages, 5, np.random.default_rng(0))
    total = np.add.reduceat(cases.chances(points), cases.starts, axis=1) @ groups.number
    # Every pair of a truth and a usual mistake counts once, and a density is not scaled to 1.
    assert total == pytest.approx(kinds * (kinds - 1) * math.sqrt(2 * math.pi))


def test_the_walk_keeps_a_normal_distribution():
    """Means and covariances of 6,000 kept points (correlated: as if 600) within 6 errors."""
    rng = np.random.default_rng(0)
    root = np.array([[1.0, 0.0], [1.5, 0.5]])
    inverse = np.linalg.inv(root @ root.T)

    def log_density(x):
        return -0.5 * np.einsum("ni,ij,nj->n", x - 2.0, inverse, x - 2.0)

    points = walk(log_density, rng.normal(size=(60, 2)), steps=2000, keep_every=10, generator=rng)
    assert len(points) == 6000
    errors = np.sqrt(np.diag(root @ root.T) / 600)
    assert (np.abs(points.mean(axis=0) - 2.0) < 6 * errors).all()
    assert np.cov(points.T) == pytest.approx(root @ root.T, abs=6 * 2.5 * math.sqrt(2 / 600))


def test_belief_draws_what_it_believes():
    belief = Belief()
    points = belief.draw(4, 20_000, np.random.default_rng(1))
    assert points.shape == (20_000, 10)
    steps = np.diff(points[:, :4], axis=1)
    assert steps.mean(axis=0) == pytest.approx([belief.step[0]] * 3, abs=0.03)
    assert steps.std(axis=0) == pytest.approx([belief.step[1]] * 3, abs=0.03)
    top = belief.log_density(np.array([[0.8, 1.05, 1.3, 1.55, -3, -3, -3, -3, -0.4, 0.0]]))
    assert (belief.log_density(points) <= top + 1e-12).all()


def test_too_many_stages_or_partitions_are_left_to_the_consensus():
    rng = np.random.default_rng(0)
    six = rng.integers(0, 3, (50, 6))
    assert shared_difficulty(Groups.of(six, np.ones(50)), 3) is None
    alone = estimate(six, bootstraps=0, second_model=False)
    assert (estimate(six, bootstraps=0).error_rates == alone.error_rates).all()


def test_same_seed_same_estimate_and_rows_in_any_order():
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 500)
    table = np.stack([np.where(rng.random(500) < e, 1 - truth, truth) for e in (0.3, 0.2, 0.1)], 1)
    once = estimate(table)
    again = estimate(table[rng.permutation(500)])
    assert once.error_rates == pytest.approx(again.error_rates, abs=1e-12)
    assert (estimate(table).draws == once.draws).all()


def test_exits_of_one_network_are_read_better_with_the_second_model():
    """Stages that are wrong on the same hard items, with the same mistake: agreement misleads."""
    rng = np.random.default_rng(5)
    gain = []
    for _ in range(8):
        rows = 2000
        truth, hard = rng.integers(0, 4, rows), rng.normal(size=rows)
        usual = (truth + rng.integers(1, 4, rows)) % 4
        columns = []
        for level in (0.2, 0.6, 1.0, 1.3):
            wrong = 0.85 * hard + 0.53 * rng.normal(size=rows) > level
            columns.append(np.where(wrong, usual, truth))
        table = np.stack(columns, axis=1)
        errors = (table != truth[:, None]).mean(axis=0)
        off = [
            np.abs(estimate(table, bootstraps=0, second_model=second).error_rates - errors).mean()
            for second in (False, True)
        ]
        gain.append(off[0] - off[1])
    assert np.mean(gain) > 0.01


def test_copies_are_left_to_the_consensus():
    """A stage that repeats one further up: the second model would take both for right."""
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 3, 2000)
    columns = [
        np.where(rng.random(2000) < e, (truth + 1) % 3, truth) for e in (0.3, 0.2, 0.25, 0.15)
    ]
    table = np.stack([*columns, columns[0]], axis=1)
    alone = estimate(table, bootstraps=0, second_model=False)
    assert (estimate(table, bootstraps=0).error_rates == alone.error_rates).all()
