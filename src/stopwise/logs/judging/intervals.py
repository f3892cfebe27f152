"""How many rows would bring the upper bound of a share below a threshold."""

from __future__ import annotations

import math

from stopwise.theory import share_bounds


def rows_needed(share: float, threshold: float, tail: float, unsure: float = 0.0) -> int | None:
    """About how many rows make the upper bound of this share fall below the threshold.

    None where no number would, because the share itself does not lie below.

    Args:
        unsure: how far below the threshold its own lower bound would lie with one row, where it is
            measured too; that falls with the square root of the rows.

    >>> rows_needed(0.0, 0.0295, 0.05)
    101
    >>> rows_needed(0.1, 0.1, 0.05) is None
    True
    """
    if share >= threshold:
        return None
    if threshold >= 1 and unsure <= 0:
        return 0

    def enough(rows: int) -> bool:
        bound = threshold - unsure / math.sqrt(rows)
        return bool(share_bounds(share * rows, rows, tail)[1] < bound)

    most = 1
    while not enough(most):
        most *= 2
        if most > 10**15:
            return None
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most
