"""From error and disagreement rates to a joint distribution that has them, or to "none exists".

Only *which stages are wrong together* matters to rates, so a joint distribution is a distribution
over sets of wrong stages. Up to `ENUMERATE_UP_TO` stages all sets are enumerated and a linear
programme decides. Beyond, `rates_search` finds the sets that are needed, because 2^50 of them
cannot be written down.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from stopwise.arrays import BoolArray, FloatArray
from stopwise.checks import StopwiseError, fail, number_within
from stopwise.problem.rates_search import search_sets, set_columns

ENUMERATE_UP_TO = 10
_TOLERANCE = 1e-9


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
    stage_count = len(errors)
    if stage_count < 2:
        raise fail("error_rates", errors, "at least two stages")
    if len(disagreements) != stage_count or any(len(row) != stage_count for row in disagreements):
        raise StopwiseError(
            f"disagreements: need a {stage_count} x {stage_count} table,"
            " one row for each error rate"
        )
    pairs: list[tuple[int, int]] = []
    targets = [1.0, *errors]
    for i, j in itertools.combinations(range(stage_count), 2):
        value = disagreements[i][j]
        if value is not None:
            pairs.append((i, j))
            targets.append(_rate(f"disagreements[{i}][{j}]", value))
            _check_pair(i, j, errors, targets[-1])
            _check_mirror(i, j, targets[-1], disagreements[j][i])
    _check_triples(stage_count, dict(zip(pairs, targets[stage_count + 1 :], strict=True)))
    target = np.asarray(targets)
    if stage_count <= ENUMERATE_UP_TO:
        wrong, p = _by_enumeration(stage_count, pairs, target)
    else:
        wrong, p = search_sets(stage_count, pairs, target)
    keep = p > 1e-15
    return wrong[keep], p[keep] / p[keep].sum()


def _rate(field: str, value: object) -> float:
    return number_within(field, value, "a rate between 0 and 1", least=0, most=1)


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


def _check_mirror(i: int, j: int, disagreement: float, mirror: object) -> None:
    """A full table must be symmetric; the lower half may also be left empty (None or 0)."""
    if mirror is None or mirror == 0:
        return
    if abs(_rate(f"disagreements[{j}][{i}]", mirror) - disagreement) > _TOLERANCE:
        raise fail(
            f"disagreements[{j}][{i}]", mirror, f"{disagreement!r}, as disagreements[{i}][{j}]"
        )


def _check_triples(stage_count: int, known: dict[tuple[int, int], float]) -> None:
    """Name three stages that are impossible together.

    Who disagrees with both of two others sees these agree: p_ik <= p_ij + p_jk for binary outputs
    and all orders, and not all three pairs can disagree at once: p_ij + p_jk + p_ik <= 2.
    """
    for i, j, k in itertools.combinations(range(stage_count), 3):
        sides = [(i, j), (i, k), (j, k)]
        if not all(side in known for side in sides):
            continue
        total = sum(known[side] for side in sides)
        longest = max(sides, key=lambda side: known[side])
        limit = min(total - known[longest], 2 - total + known[longest])
        if known[longest] > limit + _TOLERANCE:
            raise fail(
                f"disagreements[{longest[0]}][{longest[1]}]",
                known[longest],
                f"a rate of at most {limit:.6g}, given the disagreements of both with stage"
                f" {({i, j, k} - set(longest)).pop()} (no joint distribution exists)",
            )


def _by_enumeration(
    stage_count: int, pairs: list[tuple[int, int]], target: FloatArray
) -> tuple[BoolArray, FloatArray]:
    from scipy.optimize import linprog

    wrong = np.array(list(itertools.product([False, True], repeat=stage_count)))
    columns = set_columns(wrong, pairs)
    all_wrong = np.zeros(len(wrong))
    all_wrong[-1] = 1.0
    ends = []
    for objective in (all_wrong, -all_wrong):
        result = linprog(objective, A_eq=columns, b_eq=target, bounds=(0, None), method="highs")
        if result.status != 0:
            raise StopwiseError(
                "disagreements: no joint distribution has these error and disagreement rates"
                " (any three stages are possible alone, all together are not)"
            )
        ends.append(np.maximum(result.x, 0.0))
    return wrong, np.asarray((ends[0] + ends[1]) / 2)
