"""What it means that a stage gives no answer: one definition for every room.

The user says which of three it is:

- "go on": stop at the stage if it answers, else at the next one that does (what cascades do);
- "mistake": no answer is a wrong answer;
- "leave out": an item does not count for a stage that gave no answer on it.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stopwise.checks import fail, one_among

Abstentions = Literal["go on", "mistake", "leave out"]

ABSTENTIONS: tuple[Abstentions, ...] = get_args(Abstentions)

NO_ANSWER = -1
UNKNOWN = -2


def as_abstentions(value: object) -> Abstentions:
    """One of the three, however it is written: "go on", "go-on" and "go_on" are the same.

    >>> as_abstentions("leave-out")
    'leave out'
    """
    for known in ABSTENTIONS:
        if isinstance(value, str) and value.replace("-", " ").replace("_", " ") == known:
            return known
    raise fail("abstentions", value, one_among(value, ABSTENTIONS))


def answering_stages(
    codes: ArrayLike, abstentions: Abstentions, counted: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Which stage gives the answer when a cascade stops at each stage.

    Args:
        codes: outputs, one row per item; -1 where a stage abstained, -2 where it was not called.
        counted: where False, an item does not count for a stage to stop at, though its output is
            known: it was called only because one before it abstained, which says something of the
            item. None counts all.

    Returns:
        For every row and stage to stop at, the stage whose output is the answer; `NO_ANSWER` where
        there is none, which is a mistake; `UNKNOWN` where the log does not tell, or where the item
        does not count.

    >>> answering_stages([[-1, 5, 5], [7, -1, -1]], "go on")
    array([[ 1,  1,  2],
           [ 0, -1, -1]])
    >>> answering_stages([[-1, 5, -2]], "leave out")
    array([[-2,  1, -2]])
    >>> answering_stages([[-1, 5, -2]], "go on", np.array([[True, False, False]]))
    array([[ 1, -2, -2]])
    """
    found = _answering(np.asarray(codes, dtype=np.int64), abstentions)
    return found if counted is None else np.where(counted, found, UNKNOWN)


def _answering(table: NDArray[np.int64], abstentions: Abstentions) -> NDArray[np.int64]:
    stages = np.broadcast_to(np.arange(table.shape[1]), table.shape)
    if abstentions == "leave out":
        return np.where(table >= 0, stages, UNKNOWN)
    if abstentions == "mistake":
        return np.where(table >= 0, stages, np.where(table == UNKNOWN, UNKNOWN, NO_ANSWER))
    result = np.full(table.shape, NO_ANSWER, dtype=np.int64)
    answering = np.full(len(table), NO_ANSWER, dtype=np.int64)
    for stage in range(table.shape[1] - 1, -1, -1):
        own = table[:, stage]
        answering = np.where(own >= 0, stage, np.where(own == UNKNOWN, UNKNOWN, answering))
        result[:, stage] = answering
    return result


def answers(
    codes: ArrayLike, abstentions: Abstentions, counted: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """The answer of the cascade, as a code, when it stops at each stage; below 0 as above.

    >>> answers([[-1, 5, 5], [7, -1, -1]], "go on")
    array([[ 5,  5,  5],
           [ 7, -1, -1]])
    """
    table = np.asarray(codes, dtype=np.int64)
    who = answering_stages(table, abstentions, counted)
    found = np.take_along_axis(table, np.maximum(who, 0), axis=1)
    return np.where(who >= 0, found, who)


def calling_rates(
    codes: ArrayLike,
    number: ArrayLike,
    abstentions: Abstentions,
    counted: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """How often each stage is called when the cascade stops at another: one row per stage to stop.

    Up to the stage itself always; beyond it only where "go on" makes it so.

    >>> calling_rates([[-1, 5], [5, 5]], [1, 3], "go on")
    array([[1.  , 0.25],
           [1.  , 1.  ]])
    """
    table = np.asarray(codes, dtype=np.int64)
    times = np.asarray(number, dtype=np.float64)
    stage_count = table.shape[1]
    rates = np.tril(np.ones((stage_count, stage_count)))
    if abstentions != "go on":
        return rates
    who = answering_stages(table, abstentions, counted)
    for stop in range(stage_count):
        known = who[:, stop] != UNKNOWN
        reached = np.where(who[:, stop] == NO_ANSWER, stage_count - 1, who[:, stop])[known]
        total = times[known].sum()
        for stage in range(stop + 1, stage_count):
            beyond = times[known][reached >= stage].sum()
            rates[stop, stage] = beyond / total if total > 0 else 0.0
    return rates
