"""Which sets of wrong stages have given rates, where there are too many sets to write down.

The rates are those of a mixture of sets, each with one column of numbers (`set_columns`). The
search keeps a mixture of few sets that comes nearest to the target in least squares. What is
missing, the residual, is a direction: a set whose column points that way brings the mixture nearer,
so the best such sets are added and the weights solved again. Where no set points that way the
residual separates the target from every mixture, which proves that none has these rates.
"""

from __future__ import annotations

import numpy as np

from stopwise.arrays import BoolArray, FloatArray
from stopwise.checks import StopwiseError

TOLERANCE = 1e-9
_BATCH, _STARTS = 40, 256
_ROUNDS = 3000

PairList = list[tuple[int, int]]


def set_columns(wrong: BoolArray, pairs: PairList) -> FloatArray:
    """One column a set: total probability, then who is wrong, then which pairs disagree.

    >>> set_columns(np.array([[True, False]]), [(0, 1)]).ravel()
    array([1., 1., 0., 1.])
    """
    rows = [np.ones(len(wrong)), *wrong.T]
    rows += [wrong[:, i] != wrong[:, j] for i, j in pairs]
    return np.asarray(rows, dtype=np.float64)


def search_sets(
    stage_count: int, pairs: PairList, target: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Sets and weights with `set_columns(sets) @ weights == target`, or an error that none exist.

    >>> sets, p = search_sets(2, [(0, 1)], np.array([1.0, 0.4, 0.1, 0.3]))
    >>> np.round(set_columns(sets, [(0, 1)]) @ p, 6)
    array([1. , 0.4, 0.1, 0.3])
    """
    order = np.argsort(-target[1 : stage_count + 1])
    # Nested sets (none wrong, only the worst stage, the two worst, ...) are a good start.
    sets = np.array(
        [np.isin(np.arange(stage_count), order[:size]) for size in range(stage_count + 1)]
    )
    columns = set_columns(sets, pairs)
    weights = np.zeros(len(sets))
    rng = np.random.default_rng(0)  # only to find sets; whichever are found, the rates are the same
    for _ in range(_ROUNDS):
        weights = _nearest_weights(columns, target, weights)
        used = weights > 0
        sets, columns, weights = sets[used], columns[:, used], weights[used]
        residual = target - columns @ weights
        if np.abs(residual).max() <= TOLERANCE:
            return sets, weights
        added = _sets_along(stage_count, pairs, residual / np.linalg.norm(residual), sets, rng)
        if not len(added):
            raise StopwiseError(
                "disagreements: no joint distribution has these error and disagreement rates"
                " (any three stages are possible alone, all together are not)"
            )
        sets = np.vstack([sets, added])
        columns = np.hstack([columns, set_columns(added, pairs)])
        weights = np.concatenate([weights, np.zeros(len(added))])
    raise StopwiseError(_UNDECIDED)


_UNDECIDED = (
    "disagreements: could not decide whether a joint distribution has these rates;"
    " give fewer pairs (None leaves a pair free)"
)


def _nearest_weights(columns: FloatArray, target: FloatArray, weights: FloatArray) -> FloatArray:
    """Least squares with weights >= 0, started from `weights`, by active sets (Lawson, Hanson).

    Where simply cutting off all negative weights comes nearer to the target, that is done instead
    of the guaranteed step that drops one at a time: far fewer systems are solved.
    """
    from scipy.linalg import cho_factor, cho_solve

    gram, projected = columns.T @ columns, columns.T @ target
    weights = weights.copy()
    active = np.arange(len(weights))
    misfit = _misfit(columns, target, weights)
    while True:
        part = gram[np.ix_(active, active)]
        # Columns may be dependent: a tiny ridge, whose effect three refinements take away again.
        factor = cho_factor(part + 1e-12 * np.eye(len(active)), lower=True, check_finite=False)
        solution = cho_solve(factor, projected[active], check_finite=False)
        for _ in range(3):
            error = projected[active] - part @ solution
            solution += cho_solve(factor, error, check_finite=False)
        negative = solution <= 1e-14
        cut = np.zeros(len(weights))
        cut[active] = np.where(negative, 0.0, solution)
        if not negative.any():
            return cut
        if (cut_misfit := _misfit(columns, target, cut)) < misfit:
            weights, misfit = cut, cut_misfit
            active = active[~negative]
            continue
        old = weights[active]
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(negative, old / (old - solution), np.inf)
        steps[np.isnan(steps)] = 0.0
        old = old + min(max(float(steps.min()), 0.0), 1.0) * (solution - old)
        drop = negative & (old <= 1e-14)
        drop[steps.argmin()] = True
        weights[active] = np.where(drop, 0.0, old)
        active = active[~drop]
        misfit = _misfit(columns, target, weights)


def _misfit(columns: FloatArray, target: FloatArray, weights: FloatArray) -> float:
    used = weights > 0
    return float(((target - columns[:, used] @ weights[used]) ** 2).sum())


def _sets_along(
    stage_count: int,
    pairs: PairList,
    direction: FloatArray,
    known: BoolArray,
    rng: np.random.Generator,
) -> BoolArray:
    """The best sets whose column points along `direction`: local search, then exact search."""
    linear = direction[1 : stage_count + 1]
    quadratic = np.zeros((stage_count, stage_count))
    for (i, j), value in zip(pairs, direction[stage_count + 1 :], strict=True):
        quadratic[i, j] = quadratic[j, i] = value

    def value_of(sets: FloatArray) -> FloatArray:
        differ = sets @ quadratic * (1 - sets)
        return np.asarray(direction[0] + sets @ linear + differ.sum(axis=1))

    # Half of the starts are random, half lie near sets already in use.
    half = _STARTS // 2
    fresh = rng.random((half, stage_count)) < rng.random((half, 1))
    near = known[rng.integers(len(known), size=half)] ^ (
        rng.random((half, stage_count)) < 3 / stage_count
    )
    sets = np.vstack([fresh, near]).astype(np.float64)
    moving = np.arange(len(sets))
    for _ in range(6 * stage_count):
        there = sets[moving]
        gains = (1 - 2 * there) * (linear + quadratic.sum(axis=1) - 2 * there @ quadratic)
        best = gains.argmax(axis=1)
        better = gains[np.arange(len(moving)), best] > 1e-13
        moving, best = moving[better], best[better]
        if not len(moving):
            break
        sets[moving, best] = 1 - sets[moving, best]
    sets = np.unique(sets, axis=0)
    values = value_of(sets)
    if values.max() <= TOLERANCE:
        sets = _best_set_exactly(stage_count, pairs, direction)
        values = value_of(sets)
    top = np.argsort(-values)[:_BATCH]
    return sets[top[values[top] > TOLERANCE]].astype(bool)


def _best_set_exactly(stage_count: int, pairs: PairList, direction: FloatArray) -> FloatArray:
    """Integer programme: d_ij = e_i xor e_j, made linear by the four triangle inequalities."""
    from scipy.optimize import LinearConstraint, milp

    rows, high = [], []
    for at, (i, j) in enumerate(pairs):
        for wi, wj, wd, limit in ((1, -1, -1, 0), (-1, 1, -1, 0), (1, 1, 1, 2), (-1, -1, 1, 0)):
            row = np.zeros(stage_count + len(pairs))
            row[i], row[j], row[stage_count + at] = wi, wj, wd
            rows.append(row)
            high.append(limit)
    result = milp(
        -direction[1:],
        integrality=np.concatenate([np.ones(stage_count), np.zeros(len(pairs))]),
        bounds=(0, 1),
        constraints=LinearConstraint(np.asarray(rows), -np.inf, np.asarray(high)),
        options={"time_limit": 120.0},
    )
    if result.status != 0:
        raise StopwiseError(_UNDECIDED)
    return np.round(np.asarray(result.x[:stage_count]))[None, :]
