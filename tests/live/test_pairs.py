"""Pairs as bits: the numbers of pairs, what a round adds, answers of which only bits are kept."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise.live.pairs import (
    added_by,
    bits,
    compare_answers,
    pair_count,
    pair_list,
    pair_number,
    tokens,
)

answers = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=6)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_pairs_are_numbered_without_a_gap_and_shorter_prefixes_come_first(count: int) -> None:
    numbers = [pair_number(i, j) for i, j in pair_list(count)]
    assert numbers == list(range(pair_count(count)))
    assert set(pair_list(count)) == set(itertools.combinations(range(count), 2))
    assert pair_list(count)[: pair_count(count - 1)] == pair_list(count - 1)


@given(answers)
def test_what_a_round_adds_is_what_a_reader_would_count(prefix: list[str | None]) -> None:
    """Against counting by hand, from the answers themselves."""
    added = added_by(*compare_answers(prefix, None))
    gave = [stage for stage, answer in enumerate(prefix) if answer is not None]
    by_hand = {(i, j): prefix[i] != prefix[j] for i, j in itertools.combinations(gave, 2)}
    assert {pair_list(len(prefix))[pair]: differs for pair, differs in added.pairs} == by_hand
    assert bits(added.answered) == gave
    assert added.last == (gave[-1] if gave else -1)
    said = [prefix[stage] for stage in gave]
    changes = sum(one != two for one, two in itertools.pairwise(said))
    assert added.switched == (len(said) >= 3 and changes >= 1)
    assert added.switched_twice == (len(said) >= 3 and changes >= 2)


@given(answers, st.integers(0, 5))
def test_agreement_with_the_last_answer(prefix: list[str | None], stage: int) -> None:
    added = added_by(*compare_answers(prefix, None))
    said = [answer for answer in prefix if answer is not None]
    until = [answer for answer in prefix[: stage + 1] if answer is not None]
    expected = None if not until or stage > added.last else until[-1] == said[-1]
    assert added.agrees_with_last(stage) == expected


@given(answers)
def test_tokens_compare_as_the_answers_did(prefix: list[str | None]) -> None:
    stand_ins = tokens(*compare_answers(prefix, None), len(prefix))
    assert [token is None for token in stand_ins] == [answer is None for answer in prefix]
    for i, j in itertools.product(range(len(prefix)), repeat=2):
        if prefix[i] is not None and prefix[j] is not None:
            assert (stand_ins[i] != stand_ins[j]) == (prefix[i] != prefix[j])
            assert (stand_ins[i] == stand_ins[j]) == (prefix[i] == prefix[j])


def test_a_comparator_is_asked_only_of_answers_in_their_order() -> None:
    asked: list[tuple[int, int]] = []

    def differ(earlier: int, later: int) -> bool:
        asked.append((earlier, later))
        return abs(earlier - later) > 1

    assert compare_answers([1, None, 2, 5], differ) == (0b1101, 0b101000)
    assert asked == [(1, 2), (1, 5), (2, 5)]


def test_an_undecided_pair_is_neither_seen_nor_disagreed() -> None:
    added = added_by(0b111, 0b101, undecided=0b001)
    assert added.pairs == ((1, False), (2, True))


def test_equal_rounds_share_one_object() -> None:
    assert added_by(0b11, 0b1) is added_by(0b11, 0b1)
