"""When a pair is settled: the posterior of a mean, with what is predicted of every item taken off.

The values Z of a pair (+1, 0, -1 on the items on which it differs) are predicted from how the
stages agree, before any label. Z less its prediction (centred) has the same mean and varies less,
so fewer labels tell the mean from a threshold. The posterior of the mean is Student's t, with a
few observations of a usual spread put in front, and a correction for the list being finite. A pair
is settled when the posterior probability of being on the wrong side of the threshold falls below a
third of what is allowed: the third makes up for looking after every label. This is a posterior
statement, not one that holds for every possible log; simulated audits erred in far less than the
1 % allowed (docs/audit.md). For a guarantee whatever the log, there is `strict`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from stopwise.costs import FloatArray

TRUST = 0.7
"""How much of the prediction is taken off."""

USUAL_SPREAD, USUAL_NUMBER = 0.8, 4.0
LEAST_LABELS = 10
LOOKS = 3.0
"""The tail is divided by this, to make up for looking after every label."""


def first_settled(
    values: ArrayLike,
    predicted: ArrayLike,
    size: int,
    mean_above: float,
    mean_below: float,
    alpha: float,
) -> tuple[int, int] | None:
    """When it is first settled that the mean lies above the one claim, or below the other.

    Args:
        values: Z of the labelled items, in the random order in which they were drawn.
        predicted: what was predicted of them, less its mean over the whole list.
        size: length of the whole list.

    Returns:
        (draws, +1 or -1), or None if neither is settled at the end.

    >>> first_settled([1] * 50, [0.0] * 50, 400, 0.0, 0.0, 0.01)
    (10, 1)
    >>> first_settled([1, -1] * 20, [0.0] * 40, 400, 0.0, 0.0, 0.01) is None
    True
    """
    drawn = np.asarray(values, dtype=np.float64)
    if not len(drawn):
        return None
    numbers = np.arange(1, len(drawn) + 1)
    above, below = _tails(
        drawn - TRUST * np.asarray(predicted, dtype=np.float64), numbers, size, mean_above,
        mean_below,
    )  # fmt: skip
    enough = (numbers >= LEAST_LABELS) & (numbers < size)
    limit = alpha / LOOKS
    # What is left undrawn may not be able to turn the mean any more: that needs no posterior.
    sums, left = np.cumsum(drawn), size - numbers
    is_above = (enough & (above <= limit)) | (sums - left > size * mean_above + 1e-9)
    is_below = (enough & (below <= limit)) | (sums + left <= size * mean_below + 1e-9)
    either = is_above | is_below
    if not either.any():
        return None
    at = int(either.argmax())
    return at + 1, 1 if is_above[at] else -1


def _tails(
    values: FloatArray, numbers: ArrayLike, size: int, mean_above: float, mean_below: float
) -> tuple[FloatArray, FloatArray]:
    """Posterior probabilities that the mean is not above the one claim, and not below the other."""
    from scipy.special import stdtr

    n = np.asarray(numbers, dtype=np.float64)
    mean = np.cumsum(values) / n
    spread = np.maximum(np.cumsum(values * values) / n - mean * mean, 0.0)
    usual = (n * spread + USUAL_NUMBER * USUAL_SPREAD) / (n + USUAL_NUMBER)
    error = np.sqrt(usual / n * np.maximum(1 - n / size, 1e-12))
    freedom = n + USUAL_NUMBER
    return (
        np.asarray(stdtr(freedom, -(mean - mean_above) / error)),
        np.asarray(stdtr(freedom, (mean - mean_below) / error)),
    )
