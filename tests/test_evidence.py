from __future__ import annotations

import json
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise import ABSTAINED, Evidence, StopwiseError

output = st.one_of(st.none(), st.sampled_from(["a", "b", "c", 1, 2.5, True]))


def prefixes(count):
    return st.lists(st.lists(output, max_size=count), max_size=12)


def recount(count, rounds):
    """Independent: dictionaries of pairs, and switches read off the answers in order."""
    seen: dict[Any, int] = {}
    disagreed: dict[Any, int] = {}
    once = twice = 0
    for prefix in rounds:
        answers = [(stage, value) for stage, value in enumerate(prefix) if value is not None]
        for at, (j, right) in enumerate(answers):
            for i, left in answers[:at]:
                seen[i, j] = seen.get((i, j), 0) + 1
                disagreed[i, j] = disagreed.get((i, j), 0) + (left != right)
        values = [value for _, value in answers]
        changes = sum(values[k] != values[k + 1] for k in range(len(values) - 1))
        if len(values) >= 3:
            once += changes >= 1
            twice += changes >= 2
    tables = []
    for counts in (seen, disagreed):
        table = np.zeros((count, count), dtype=int)
        for (i, j), number in counts.items():
            table[i, j] = number
        tables.append(table)
    return (*tables, once, twice)


def test_three_observations_by_hand():
    evidence = Evidence(3)
    evidence.add(["x", "y", "x"])
    evidence.add(["x", "x"])
    evidence.add(["x", ABSTAINED, "y"])
    assert evidence.seen.tolist() == [[0, 2, 2], [0, 0, 1], [0, 0, 0]]
    assert evidence.disagreed.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert (evidence.switched, evidence.switched_twice) == (1, 1)
    assert evidence.disagreement[0, 1] == 0.5
    assert np.isnan(evidence.disagreement[1, 0])
    assert np.isnan(Evidence(2).disagreement).all()


@pytest.mark.parametrize(
    ("prefix", "switches"),
    [
        ("aaa", (0, 0)),
        ("aab", (1, 0)),
        ("abb", (1, 0)),
        ("aba", (1, 1)),
        ("abc", (1, 1)),
        ("ab", (0, 0)),  # two answers cannot refute strong dominance
        ("a-bb", (1, 0)),
        ("a-b", (0, 0)),
        ("a-b-a", (1, 1)),
        ("--aaaa", (0, 0)),
    ],
)
def test_switch_counters(prefix, switches):
    evidence = Evidence(6)
    evidence.add([None if sign == "-" else sign for sign in prefix])
    assert (evidence.switched, evidence.switched_twice) == switches


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 8).flatmap(lambda k: st.tuples(st.just(k), prefixes(k), prefixes(k))))
def test_counts_add_up(case):
    count, first, second = case
    one, two = Evidence.from_prefixes(count, first), Evidence.from_prefixes(count, second)
    both = Evidence.from_prefixes(count, first + second)
    seen, disagreed, once, twice = recount(count, first + second)
    assert np.array_equal(both.seen, seen)
    assert np.array_equal(both.disagreed, disagreed)
    assert (both.switched, both.switched_twice) == (once, twice)
    before = one.copy()
    assert one + two == both == two + one
    assert one == before  # adding makes a new one
    one.merge(two)
    assert one == both
    assert Evidence.from_prefixes(count, (first + second)[::-1]) == both
    assert both + Evidence(count) == both


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8).flatmap(lambda k: st.tuples(st.just(k), prefixes(k))))
def test_round_trips(case):
    count, rounds = case
    evidence = Evidence.from_prefixes(count, rounds)
    assert Evidence.from_json(evidence.to_json()) == evidence
    assert Evidence.from_json(evidence.to_json().encode()) == evidence
    assert pickle.loads(pickle.dumps(evidence)) == evidence
    again = Evidence.from_counts(
        evidence.seen, evidence.disagreed, evidence.switched, evidence.switched_twice
    )
    assert again == evidence
    again.add(["a", "b"])
    assert again != evidence  # a copy, not a view
    assert evidence != "evidence"


@settings(max_examples=40, deadline=None)
@given(prefixes(5), st.integers(0, 1000))
def test_times_is_so_many_rounds(rounds, times):
    quick, slow = Evidence(5), Evidence(5)
    for prefix in rounds:
        quick.add(prefix, times=times)
    for _ in range(min(times, 3)):
        for prefix in rounds:
            slow.add(prefix)
    if times <= 3:
        assert quick == slow
    assert (quick.seen == times * Evidence.from_prefixes(5, rounds).seen).all()


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.str_, np.bool_, np.float64])
def test_numpy_outputs_agree_with_their_python_likes(kind):
    evidence = Evidence(3)
    one = kind(1)
    evidence.add([one, one.item(), kind(0)])
    assert evidence.disagreed.tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    array = Evidence(3)
    array.add(np.array([1, 1, 0]))
    assert array == evidence


def test_own_meaning_of_disagreement():
    evidence = Evidence(2)
    evidence.add([0.10, 0.11], differ=lambda a, b: abs(a - b) > 0.05)
    evidence.add([0.10, 0.91], differ=lambda a, b: abs(a - b) > 0.05)
    assert evidence.disagreement[0, 1] == 0.5


def test_a_comparison_that_fails_leaves_nothing_half_counted():
    def picky(left, right):
        if "bad" in (left, right):
            raise RuntimeError("cannot compare")
        return operator.ne(left, right)

    evidence = Evidence(3)
    with pytest.raises(RuntimeError):
        evidence.add(["a", "b", "bad"], differ=picky)
    assert evidence == Evidence(3)


def form(**changes):
    good = json.loads(Evidence.from_prefixes(2, [[0, 1], [0, 0]]).to_json())
    return json.dumps({**good, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (form(seen=[[0, 0], [0, 0]]), "disagreed[0][1]: got 1, but need at most seen[0][1] = 0"),
        (form(seen=[[0, -1], [0, 0]]), "seen: got [[0, -1], [0, 0]], but need a square table of"),
        (form(seen=[[0, 1.5], [0, 0]]), "seen: got [[0, 1.5], [0, 0]], but need a square table"),
        (form(seen=[[0, True], [False, True]]), "but need a square table of whole numbers"),
        (form(seen=[[0, 2**53 + 1], [0, 0]]), f"seen: got {2**53 + 1}, but need whole numbers of"),
        (form(seen=[[0, 2**63], [0, 0]]), f"seen: got {2**63}, but need whole numbers of at most"),
        (form(seen=[[0, 10**30], [0, 0]]), f"seen: got {10**30}, but need whole numbers of at"),
        (form(seen=[[0, 1], [0]]), "seen: got [[0, 1], [0]], but need a square table"),
        (form(seen=[[0, 1]]), "seen: got [[0, 1]], but need a square table"),
        (form(seen=[[5]]), "seen: got [[5]], but need a square table"),
        (form(seen=[]), "seen: got [], but need a square table"),
        (form(seen=None), "seen: got None, but need a square table"),
        (form(seen=[["a", "b"], ["c", "d"]]), "but need a square table of whole numbers"),
        (form(disagreed=[[0] * 3] * 3), "disagreed: got (3, 3), but need a table of the same size"),
        (form(stages=3), "stages: got 3, but need 2, the size of seen"),
        (form(switched=-1), "switched: got -1, but need a whole number, 0 or more"),
        (form(switched_twice=1), "switched_twice: got 1, but need at most switched = 0"),
        (form(switched=None), "switched: got None, but need a whole number"),
        (form(version=2), "version: got 2, but need version 1"),
        (form(version=True), "version: got True, but need version 1"),
        (form(extra=1), "evidence: unknown field 'extra'"),
        ("{}", "evidence: the field 'version' is missing"),
        ("[]", "evidence: got [], but need a JSON object"),
        ("nothing", "evidence: this is not JSON"),
        ('{"version": 1, "version": 1}', "evidence: field 'version' is given twice"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(StopwiseError) as error:
        Evidence.from_json(text)
    assert message in str(error.value)


def test_refused_rounds():
    evidence = Evidence(2)
    for bad, message in [
        ("ab", "prefix: got 'ab', but need a list of outputs in the order of the stages"),
        ([1, 2, 3], "prefix: got [1, 2, 3], but need at most 2 outputs, one for each stage"),
        ([1, float("nan")], "prefix[1]: got nan, but need an output, or None for a stage that"),
        ([1, np.float32("nan")], "but need an output, or None for a stage that abstained"),
    ]:
        with pytest.raises(StopwiseError) as error:
            evidence.add(bad)
        assert message in str(error.value)
    for times in (-1, 0.5, 2**60, "3", None):
        with pytest.raises(StopwiseError, match="times: got"):
            evidence.add([1, 2], times=times)
    with pytest.raises(StopwiseError, match="evidence: got '3 stages', but need 2 stages"):
        evidence.merge(Evidence(3))
    with pytest.raises(TypeError):
        evidence + 1
    for count in (1, 0, -2, 2.5, "2", None, True, float("nan")):
        with pytest.raises(StopwiseError, match="count: got"):
            Evidence(count)
    assert evidence == Evidence(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(evidence)


@pytest.mark.parametrize(
    "codes",
    [
        [[1.5, 1]], [[np.nan, 1]], [[np.inf, 1]], [[2**64 - 1, 0]], [[2**70, 0]], [["a", "b"]],
        [[None, 1]], [0, 1], [[[0, 1]]], [[1, 2], [1]], [], None,
    ],
)  # fmt: skip
def test_codes_that_are_no_whole_numbers_are_refused(codes):
    """Cut to whole numbers, 1.5 and 1 would agree, and a huge code would be an abstention."""
    with pytest.raises(StopwiseError, match=r"^codes: got"):
        Evidence.from_codes(codes)


@pytest.mark.parametrize("number", [[-1, 1], [1.5, 1], [1], [1, 2, 3], 2, [2**60, 1], ["a", 1]])
def test_numbers_of_rows_that_count_nothing_are_refused(number):
    with pytest.raises(StopwiseError, match=r"^number: got"):
        Evidence.from_codes([[0, 1], [0, 0]], number)


def test_codes_of_any_whole_type_count_alike():
    wanted = Evidence.from_codes([[0, 1, -1], [2, 2, 2]], [3, 1])
    for kind in ("int8", "int64", "float32"):
        assert Evidence.from_codes(np.array([[0, 1, -1], [2, 2, 2]], dtype=kind), [3, 1]) == wanted
    assert Evidence.from_codes(np.array([[2, 1]], dtype="uint8")).counts(0, 1) == (1, 1)
    assert Evidence.from_codes([[True, False]]).counts(0, 1) == (1, 1)
    assert Evidence.from_codes(np.zeros((0, 3))) == Evidence(3)


@pytest.mark.parametrize("prefix", [None, {"a": 1}, {1, 2}, "ab"])
def test_what_is_no_list_of_outputs_is_refused(prefix):
    with pytest.raises(StopwiseError, match=r"^prefix: got"):
        Evidence(2).add(prefix)


def test_only_evidence_is_merged():
    with pytest.raises(StopwiseError, match=r"^evidence: got 3"):
        Evidence(2).merge(3)
