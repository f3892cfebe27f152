"""What the Thompson kernels know of a policy."""

from __future__ import annotations

from typing import NamedTuple

STEP_WALK = 0
JUMP_WALK = 1


class ThompsonSettings(NamedTuple):
    """The settings of USS-TS and its forms.

    Attributes:
        prior_disagreed, prior_agreed: counts before anything was seen.
        walk: to the next stage, or to the stage that the current one failed against.
        temper: how often every observation counts; a whole number.
    """

    prior_disagreed: float
    prior_agreed: float
    walk: int
    temper: int
