"""The one rule for counting a round: against every pair compared by hand."""

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stopwise import ABSTAINED, Evidence
from stopwise.agreement import count_partition, distinct, partitions

OUTPUTS = st.lists(st.sampled_from(["a", "b", "c", ABSTAINED]), min_size=1, max_size=6)
TABLES = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(st.integers(-2, 3), min_size=width, max_size=width), min_size=1)
)


@given(st.lists(OUTPUTS, max_size=8))
def test_each_pair_of_answers_is_counted_once(rounds):
    evidence = Evidence.from_prefixes(6, rounds)
    for i, j in combinations(range(6), 2):
        both = [
            (prefix[i], prefix[j])
            for prefix in rounds
            if j < len(prefix) and prefix[i] is not ABSTAINED and prefix[j] is not ABSTAINED
        ]
        assert evidence.seen[i, j] == len(both)
        assert evidence.disagreed[i, j] == sum(one != other for one, other in both)


@given(TABLES)
def test_a_partition_keeps_which_outputs_are_equal_and_nothing_else(table):
    for row, groups in zip(table, partitions(table), strict=True):
        for i, j in combinations(range(len(row)), 2):
            if row[i] >= 0 and row[j] >= 0:
                assert (row[i] == row[j]) == (groups[i] == groups[j])
        assert [g for g, code in zip(groups, row, strict=True) if code < 0] == [
            code for code in row if code < 0
        ]
        first_seen = list(dict.fromkeys(int(g) for g in groups if g >= 0))
        assert first_seen == list(range(len(first_seen)))  # numbered as they come


@given(TABLES)
def test_distinct_rows_with_their_numbers(table):
    found = dict(distinct(np.array(table, dtype=np.int64)))
    assert {row: int(number) for row, number in found.items()} == Counter(map(tuple, table))


def test_a_switch_needs_three_answers():
    two, back = count_partition((0, 1)), count_partition((0, 1, 0))
    assert (two.switched, two.switched_twice) == (0, 0)
    assert (back.switched, back.switched_twice) == (1, 1)
    assert count_partition((0, -1, 1)).pairs == ((0, 2, True),)
