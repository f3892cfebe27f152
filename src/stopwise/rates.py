"""From error and disagreement rates to a joint distribution that has them, or to "none exists".

Only *which stages are wrong together* matters to rates, so a joint distribution is a distribution
over sets of wrong stages. Up to `ENUMERATE_UP_TO` stages all sets are enumerated and a linear
programme decides. Beyond, sets are generated as the programme asks for them (column generation),
because 2^50 of them cannot be written down.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stopwise.checks import StopwiseError, fail, finite_number
from stopwise.costs import FloatArray

ENUMERATE_UP_TO = 10
_TOLERANCE = 1e-9

BoolArray = NDArray[np.bool_]


def joint_from_rates(
    error_rates: Sequence[float], disagreements: Sequence[Sequence[float | None]]
) -> tuple[BoolArray, FloatArray]:
    """Find sets of wrong stages and their probabilities with the given rates.

    Where the rates leave freedom (few stages), the result is half way between the two extreme
    solutions: that in which all stages are wrong together least often, and most often.

    Args:
        error_rates: the error rate of every stage.
        disagreements: a K x K table; `[i][j]` for i < j is read. None leaves a pair free.

    Returns:
        A boolean table (one row for each set: which stages are wrong) and the probabilities.

    >>> wrong, p = joint_from_rates([0.4, 0.1], [[0, 0.3], [0.3, 0]])
    >>> [(row.tolist(), round(float(q), 6)) for row, q in zip(wrong, p)]
    [([False, False], 0.6), ([True, False], 0.3), ([True, True], 0.1)]
    """
    errors = [_rate(f"error_rates[{i}]", value) for i, value in enumerate(error_rates)]
    count = len(errors)
    if count < 2:
        raise fail("error_rates", errors, "at least two stages")
    if len(disagreements) != count or any(len(row) != count for row in disagreements):
        raise StopwiseError(
            f"disagreements: need a {count} x {count} table, one row for each error rate"
        )
    pairs: list[tuple[int, int]] = []
    targets = [1.0, *errors]
    for i, j in itertools.combinations(range(count), 2):
        value = disagreements[i][j]
        if value is not None:
            pairs.append((i, j))
            targets.append(_rate(f"disagreements[{i}][{j}]", value))
            _check_pair(i, j, errors, targets[-1])
    target = np.asarray(targets)
    if count <= ENUMERATE_UP_TO:
        wrong, p = _by_enumeration(count, pairs, target)
    else:
        wrong, p = _by_column_generation(count, pairs, target)
    keep = p > 1e-15
    return wrong[keep], p[keep] / p[keep].sum()


def _rate(field: str, value: object) -> float:
    number = finite_number(field, value, "a rate between 0 and 1")
    if not 0 <= number <= 1:
        raise fail(field, value, "a rate between 0 and 1")
    return number


def _check_pair(i: int, j: int, errors: list[float], disagreement: float) -> None:
    """Name a pair that is impossible on its own.

    Two binary outputs that are both wrong agree, so the triangle inequalities hold:
    |g_i - g_j| <= p_ij <= min(g_i + g_j, 2 - g_i - g_j).
    """
    low = abs(errors[i] - errors[j])
    high = min(errors[i] + errors[j], 2 - errors[i] - errors[j])
    if not low - _TOLERANCE <= disagreement <= high + _TOLERANCE:
        raise fail(
            f"disagreements[{i}][{j}]",
            disagreement,
            f"a rate between {low:.6g} and {high:.6g}, given the two error rates"
            " (no joint distribution exists)",
        )


def _columns(wrong: BoolArray, pairs: list[tuple[int, int]]) -> FloatArray:
    """One column a set: total probability, then who is wrong, then which pairs disagree."""
    rows = [np.ones(len(wrong)), *wrong.T]
    rows += [wrong[:, i] != wrong[:, j] for i, j in pairs]
    return np.asarray(rows, dtype=np.float64)


def _by_enumeration(
    count: int, pairs: list[tuple[int, int]], target: FloatArray
) -> tuple[BoolArray, FloatArray]:
    from scipy.optimize import linprog

    wrong = np.array(list(itertools.product([False, True], repeat=count)))
    columns = _columns(wrong, pairs)
    all_wrong = np.zeros(len(wrong))
    all_wrong[-1] = 1.0
    ends = []
    for objective in (all_wrong, -all_wrong):
        result = linprog(objective, A_eq=columns, b_eq=target, bounds=(0, None), method="highs")
        if result.status != 0:
            raise StopwiseError(
                "disagreements: no joint distribution has these error and disagreement rates"
                " (each pair is possible alone, all together are not)"
            )
        ends.append(np.maximum(result.x, 0.0))
    return wrong, np.asarray((ends[0] + ends[1]) / 2)


def _by_column_generation(
    count: int, pairs: list[tuple[int, int]], target: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Minimise the total misfit over the sets known so far; add the set that helps most; repeat."""
    from scipy.optimize import linprog

    order = np.argsort(-target[1 : count + 1])
    # Nested sets (only the worst stage wrong, the two worst, ...) are a good and feasible start.
    start = [np.isin(np.arange(count), order[:size]) for size in range(count + 1)]
    wrong = np.array(start)
    rng = np.random.default_rng(0)
    while True:
        columns = _columns(wrong, pairs)
        slack = np.eye(len(target))
        result = linprog(
            np.concatenate([np.zeros(len(wrong)), np.ones(2 * len(target))]),
            A_eq=np.hstack([columns, slack, -slack]),
            b_eq=target,
            bounds=(0, None),
            method="highs",
        )
        if result.status != 0:
            raise StopwiseError(f"disagreements: the linear programme failed ({result.message})")
        if result.fun <= _TOLERANCE:
            return wrong, np.maximum(result.x[: len(wrong)], 0.0)
        duals = np.asarray(result.eqlin.marginals)
        found = _best_sets(count, pairs, duals, rng)
        if not len(found):
            raise StopwiseError(
                "disagreements: no joint distribution has these error and disagreement rates"
            )
        wrong = np.unique(np.vstack([wrong, found]), axis=0)


def _best_sets(
    count: int, pairs: list[tuple[int, int]], duals: FloatArray, rng: np.random.Generator
) -> BoolArray:
    """Sets whose column has a positive dual value: local search first, exact search to be sure."""
    linear = duals[1 : count + 1]
    quadratic = np.zeros((count, count))
    for (i, j), value in zip(pairs, duals[count + 1 :], strict=True):
        quadratic[i, j] = quadratic[j, i] = value

    def value_of(sets: FloatArray) -> FloatArray:
        differ = sets @ quadratic * (1 - sets)
        return np.asarray(duals[0] + sets @ linear + differ.sum(axis=1))

    sets = (rng.random((64, count)) < rng.random((64, 1))).astype(np.float64)
    for _ in range(4 * count):
        signs = 1 - 2 * sets
        gains = signs * (linear + (quadratic.sum(axis=1) - 2 * sets @ quadratic))
        best = gains.argmax(axis=1)
        improving = gains[np.arange(len(sets)), best] > 1e-12
        if not improving.any():
            break
        rows = np.flatnonzero(improving)
        sets[rows, best[rows]] = 1 - sets[rows, best[rows]]
    good = sets[value_of(sets) > 1e-10]
    if not len(good):
        exact = _best_set_exactly(count, pairs, duals)
        good = exact[value_of(exact) > 1e-10]
    return np.unique(good, axis=0).astype(bool)


def _best_set_exactly(
    count: int, pairs: list[tuple[int, int]], duals: FloatArray
) -> NDArray[np.float64]:
    """Integer programme: d_ij = e_i xor e_j, made linear by the four triangle inequalities."""
    from scipy.optimize import LinearConstraint, milp

    rows, high = [], []
    for at, (i, j) in enumerate(pairs):
        for wi, wj, wd, limit in ((1, -1, -1, 0), (-1, 1, -1, 0), (1, 1, 1, 2), (-1, -1, 1, 0)):
            row = np.zeros(count + len(pairs))
            row[i], row[j], row[count + at] = wi, wj, wd
            rows.append(row)
            high.append(limit)
    result = milp(
        -duals[1:],
        integrality=np.concatenate([np.ones(count), np.zeros(len(pairs))]),
        bounds=(0, 1),
        constraints=LinearConstraint(np.asarray(rows), -np.inf, np.asarray(high)),
        options={"time_limit": 120.0},
    )
    if result.status != 0:
        raise StopwiseError(
            "disagreements: could not decide within two minutes whether a joint distribution"
            " exists; give fewer pairs (null leaves a pair free)"
        )
    return np.round(np.asarray(result.x[:count]))[None, :]
