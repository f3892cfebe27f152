"""The counters of a segment: sums that add up, names read back, numbers that are refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise import Evidence, StopwiseError
from stopwise.live.counters.layout import layout_of
from stopwise.live.counters.lending import lent_evidence
from stopwise.live.counters.many import count_columns
from stopwise.live.counters.tally import LARGEST, Tally, checked_counters
from stopwise.live.pairs import added_by, compare_answers
from stopwise.live.record import RoundRecord

COSTS = (0.5, 1.5, 4.0)
prefixes = st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=3)
answered_prefixes = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3)


def record_of(number: int, prefix: list[str | None], **more: Any) -> RoundRecord:
    answered, disagreed = compare_answers(prefix, None)
    last = answered.bit_length() - 1
    return RoundRecord(
        number=number, writer=0, sequence=number, segment="", depth=len(prefix) - 1,
        probability=1.0, stage=last if answered else None, called=len(prefix), answered=answered,
        disagreed=disagreed, cost=COSTS[len(prefix) - 1], **more,
    )  # fmt: skip


def counted(rounds: list[list[str | None]], discount: float = 1.0) -> Tally:
    tally = Tally(3, discount)
    for number, prefix in enumerate(rounds, 1):
        tally.apply(record_of(number, prefix))
    return tally


@given(st.lists(prefixes, max_size=8))
def test_rounds_are_counted_as_evidence_counts_them(rounds: list[list[str | None]]) -> None:
    evidence = Evidence(3)
    for prefix in rounds:
        evidence.add(prefix)
    tally = counted(rounds)
    assert tally.evidence() == evidence
    assert tally.rounds == len(rounds)
    assert tally.spent == pytest.approx(sum(COSTS[len(prefix) - 1] for prefix in rounds))


@given(st.lists(prefixes, max_size=5), st.lists(prefixes, max_size=5))
def test_two_tallies_add_up_in_any_order(one: Any, two: Any) -> None:
    first, second, both = counted(one), counted(two), counted(one + two)
    first.add(counted(two))
    second.add(counted(one))
    assert first.values == pytest.approx(both.values)
    assert second.values == pytest.approx(both.values)


@given(answered_prefixes, st.integers(1, 5))
def test_equal_rounds_at_once_are_those_rounds_one_by_one(prefix: Any, times: int) -> None:
    tally = Tally(3)
    tally.add_rounds(tally.values, added_by(*compare_answers(prefix, None)), times, COSTS)
    assert tally.values == pytest.approx(counted([prefix] * times).values)


@given(st.lists(answered_prefixes, min_size=1, max_size=8))
def test_columns_are_counted_as_their_rows(rounds: Any) -> None:
    import numpy as np

    codes = np.full((len(rounds), 3), -1)
    for at, prefix in enumerate(rounds):
        codes[at, : len(prefix)] = [ord(answer) for answer in prefix]
    depths = np.array([len(prefix) - 1 for prefix in rounds])
    one_by_one = counted(rounds)
    found = count_columns(3, depths, codes)
    assert found.evidence() == one_by_one.evidence()
    for start in (found.layout.lengths, found.layout.stops):
        assert found.of_stages(start) == one_by_one.of_stages(start)


@given(st.data(), st.integers(2, 6))
def test_columns_of_any_number_of_stages_are_counted_as_evidence_is(data: Any, width: int) -> None:
    """Few stages are counted by which pairs differ, more by their partitions."""
    import numpy as np

    row = st.lists(st.integers(0, 2), min_size=1, max_size=width)
    rounds = data.draw(st.lists(row, min_size=1, max_size=20))
    table = np.array([one + [-1] * (width - len(one)) for one in rounds])
    depths = np.array([len(one) - 1 for one in rounds])
    assert count_columns(width, depths, table).evidence() == Evidence.from_prefixes(width, rounds)


@given(st.lists(prefixes, max_size=8), st.sampled_from([1.0, 0.9, 0.5]))
def test_counters_are_read_back_by_their_names(rounds: Any, discount: float) -> None:
    tally = counted(rounds, discount)
    again = Tally(3, discount)
    again.set_counters(tally.to_counters())
    assert again.values == tally.values


@given(st.lists(prefixes, max_size=10))
def test_recent_counts_are_sums_of_powers(rounds: Any) -> None:
    """Every round counts for the discount to the power of its age."""
    tally = counted(rounds, 0.9)
    expected = 0.0
    for age, prefix in enumerate(reversed(rounds)):
        if len(prefix) > 1 and None not in prefix[:2] and prefix[0] != prefix[1]:
            expected += 0.9**age
    assert tally.recent_evidence().disagreed[0, 1] == pytest.approx(expected)
    assert tally.evidence() == counted(rounds).evidence(), "the exact counts are kept beside"


def test_an_interrupt_leaves_the_old_counters_or_the_new_ones() -> None:
    tally = Tally(3)
    before = tally.values
    tally.apply(record_of(1, ["a", "b"]))
    assert before == [0] * layout_of(3).size, "the list that stood there was not changed"


@pytest.mark.parametrize(
    ("counters", "message"),
    [
        ({"seen 0-9": 1}, "counters: unknown counter 'seen 0-9'"),
        ({"seen 0-1": 1.0}, "counter 'seen 0-1': got 1.0, but need a whole number"),
        ({"seen 0-1": True}, "counter 'seen 0-1': got True, but need a whole number"),
        ({"seen 0-1": -1}, "but need a number from 0 to 9007199254740992"),
        ({"seen 0-1": LARGEST + 1}, "but need a number from 0 to 9007199254740992"),
        ({"spent": math.inf}, "counter 'spent': got inf, but need a number from 0 to 1e+130"),
        ({"spent": math.nan}, "counter 'spent': got nan, but need a number from 0 to 1e+130"),
        ({"spent": "1"}, "counter 'spent': got '1', but need a number"),
        ({"disagreed 1-2": 1}, "counter 'disagreed 1-2': got 1, but need at most 0"),
    ],
)
def test_counters_that_cannot_be_are_refused(counters: Any, message: str) -> None:
    with pytest.raises(StopwiseError) as error:
        checked_counters(3, counters)
    assert message in str(error.value)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_every_counter_has_one_place_and_one_name(count: int) -> None:
    layout = layout_of(count)
    assert len(layout.names) == len(set(layout.names)) == layout.size == len(layout.real)
    assert layout.names[layout.rounds] == "rounds"
    assert layout.names[layout.disagreed] == "disagreed 0-1"
    assert layout.names[layout.recent_seen] == "recent_seen 0-1"
    assert layout.names[layout.advised + count - 1] == f"advised {count - 1}"
    assert not layout.real[layout.seen]
    assert layout.real[layout.recent_seen]


@settings(max_examples=60)
@given(
    st.lists(prefixes, max_size=6),
    st.lists(prefixes, max_size=20),
    st.sampled_from([0.0, 3.5, 1e9]),
)
def test_others_lend_at_most_the_strength(own: Any, others: Any, strength: float) -> None:
    tally, pool = counted(own), counted(own + others)
    lent = lent_evidence(tally, pool, strength, recent=False)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        n, d = lent.seen[i, j], lent.disagreed[i, j]
        mine, all_of_them = tally.evidence(), pool.evidence()
        rest = all_of_them.seen[i, j] - mine.seen[i, j]
        assert n == pytest.approx(mine.seen[i, j] + min(rest, strength))
        assert 0 <= d <= n + 1e-12
        if rest:  # what is lent disagrees as often as the others do
            share = (all_of_them.disagreed[i, j] - mine.disagreed[i, j]) / rest
            assert d == pytest.approx(mine.disagreed[i, j] + share * min(rest, strength))
