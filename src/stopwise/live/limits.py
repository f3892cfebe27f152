"""How large the numbers of rounds may be: what is written must be readable again and add up."""

from __future__ import annotations

from typing import Any

from stopwise.checks import fail, finite_number, whole_number

MOST_ROUNDS = 2**53
"""Numbers of rounds beyond this are not exact in every store."""
LARGEST_COST = 1e100
"""What a call may cost at most, so that sums of costs stay finite."""
LARGEST_ROUND_COST = 1e110
"""What all calls of a round may cost."""
_LEAST_PROBABILITY = 1e-300  # its inverse is finite


def check_cost(field: str, value: Any, most: float = LARGEST_COST) -> float:
    """A cost that can be counted.

    >>> check_cost("cost", 1e308)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: cost: got 1e+308, but need a number from 0 to 1e+100
    """
    if type(value) is float and 0.0 <= value <= most:
        return value  # most are: the words below take longer than all else
    accepted = f"a number from 0 to {most:g}"
    number = finite_number(field, value, accepted)
    if not 0 <= number <= most:
        raise fail(field, value, accepted)
    return number


def enough_for_sums(left: float) -> float:
    """What is left of a budget, with room for the rounding of sums: ten calls' worth must buy ten.

    >>> left = 0.3 - 0.1 - 0.1
    >>> left < 0.1 <= enough_for_sums(left)
    True
    """
    if left == float("inf"):
        return left
    return left + 1e-9 * (left if left > 1.0 else max(1.0, -left))


def check_probability(field: str, value: Any) -> float:
    """A probability of something that has happened.

    >>> check_probability("probability", 0.25)
    0.25
    """
    number = finite_number(field, value, "a probability, above 0 and at most 1")
    if not _LEAST_PROBABILITY <= number <= 1 + 1e-9:
        raise fail(field, value, "a probability, above 0 and at most 1")
    return number


def check_whole(field: str, value: Any) -> int:
    """A whole number that a store may hold.

    >>> check_whole("begun", 3)
    3
    """
    number = whole_number(field, value, least=0)
    if number > MOST_ROUNDS // 4:  # what is counted on from there must be readable again
        raise fail(field, value, "a whole number, at most 2^51")
    return number
