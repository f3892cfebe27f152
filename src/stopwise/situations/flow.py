"""Whether counts can be what rounds left behind: no more goes on from a situation than came there.

Counts come back from files, and a file may be cut, mixed up or written by hand. A rule made from
counts that do not add up divides by nothing, or prices situations that were never met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from stopwise.checks import fail

MOST = 2**53
"""Beyond this the sums would no longer be exact as floating-point numbers."""

Moves = Mapping[tuple[int, int], int]


class Flow(Protocol):
    """What was counted, as `stopwise.situations.transitions` keeps it."""

    first: dict[int, int]
    moves: list[dict[tuple[int, int], int]]
    full: dict[int, int]
    ends: list[dict[tuple[int, int], int]]

    def visits(self, stage: int) -> dict[int, int]:
        """How many rounds were in each situation after a stage."""


def check_flow(counts: Flow, *, whole: bool) -> None:
    """Refuse counts that no rounds leave behind.

    Args:
        whole: whether they are counts of whole rows, which move once.
    """
    if sum(counts.first.values()) > MOST:
        raise fail("first", sum(counts.first.values()), f"at most {MOST} rounds")
    if whole:
        _within("moves", _starts(counts.moves[0]), counts.first)
        if {key for key, _ in counts.moves[0]} != set(counts.first) or any(counts.moves[1:]):
            raise fail("moves", "other rows than those of first", "the same rows in both")
        return
    for stage, moves in enumerate(counts.moves):
        _within("moves", _starts(moves), counts.visits(stage))
    arrived = counts.visits(len(counts.moves))
    _within("full", counts.full, arrived)
    for moves, ends in zip(counts.moves, counts.ends, strict=False):
        _within("ends", _starts(ends), _starts(moves))
        _within("ends", _arrivals(ends), counts.full)


def _within(name: str, some: Mapping[int, int], of: Mapping[int, int]) -> None:
    for key, number in some.items():
        if number > of.get(key, 0):
            raise fail(
                name, f"{number} from situation {key:x}", f"at most the {of.get(key, 0)} met there"
            )


def _starts(pairs: Moves) -> dict[int, int]:
    return _sums((before, number) for (before, _), number in pairs.items())


def _arrivals(pairs: Moves) -> dict[int, int]:
    return _sums((after, number) for (_, after), number in pairs.items())


def _sums(numbers: Iterable[tuple[int, int]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for key, number in numbers:
        found[key] = found.get(key, 0) + number
    return found
