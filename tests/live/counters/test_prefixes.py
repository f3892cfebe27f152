"""Prefixes that come again are read from memory: the same as if they were read afresh, and few."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopwise.live.counters.prefixes import Prefixes
from stopwise.live.pairs import added_by, compare_answers

COSTS = [0.0, 1.0, 5.0]
outputs = st.one_of(
    st.sampled_from([0, 1, True, False, 1.0, "a", "b" * 65, None, float("nan")]),
    st.lists(st.integers(0, 1), max_size=2),  # cannot be a key
)


@given(st.lists(st.lists(outputs, min_size=1, max_size=3), max_size=20))
def test_reading_from_memory_changes_nothing(rounds: list[list[Any]]) -> None:
    prefixes = Prefixes(COSTS)
    for prefix in rounds:
        if prefix[-1] is None:
            continue  # the last stage answered
        added, outcome = prefixes.read(prefix)
        fresh = added_by(*compare_answers(prefix, None))
        assert (added.pairs, added.answered) == (fresh.pairs, fresh.answered)
        assert outcome.answer is prefix[-1], "1 and True are one key, but not one answer"
        assert outcome.stage == len(prefix) - 1
        assert outcome.cost == COSTS[len(prefix) - 1]


def test_memory_is_bounded() -> None:
    prefixes = Prefixes(COSTS)
    for at in range(5_000):
        prefixes.read([at, at + 1])
        assert len(prefixes.known) <= 512
    prefixes.read(["x" * 1_000, "y"])
    assert ("x" * 1_000, "y") not in prefixes.known, "long texts hardly come twice"


def test_what_cannot_be_a_key_is_read_every_time() -> None:
    prefixes = Prefixes(COSTS)
    added, outcome = prefixes.read([[1], [2]])
    assert added.pairs == ((0, True),)
    assert outcome.answer == [2]
    assert not prefixes.known
