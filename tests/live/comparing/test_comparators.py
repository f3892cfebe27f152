"""When two answers agree: what is read, what is an abstention, what is refused."""

import asyncio
import functools
import json
import re
import threading
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from stopwise import StopwiseError
from stopwise.live import (
    Cascade,
    Learner,
    MisusedComparatorError,
    Reported,
    RoundLog,
    Stage,
    by,
    by_key,
    fenced_json,
    json_fields,
    judge,
    letter,
    majority_vote,
    number,
    python_source,
    read_rounds,
    tool_call,
)

# ---- letters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("b", "B"),
        ("(B)", "B"),
        ("**B**", "B"),
        ("B.", "B"),
        ("The answer is (C).", "C"),
        ("the answer is c", "C"),
        ("Answer: d", "D"),
        ("The correct answer is **A**.", "A"),
        ("The answer is A", "A"),
        ("The answer is a.", "A"),
        ("Answer: A because it says so", "A"),
        ("Answer: C because B is wrong", "C"),
        ("First I thought the answer is A. No, the answer is B.", "B"),
        (r"So \boxed{D}", "D"),
        (r"The answer is $\boxed{\text{C}}$", "C"),
        ("B) Paris", "B"),
        ("B. Paris", "B"),
        ("(b) Paris", "B"),
        ("B: Paris", "B"),
        ("I choose B", "B"),
        ("I would go with option C!", "C"),
        ("I think it is D", "D"),
        ("Option B is correct.", "B"),
        ("B is the right one", "B"),
        ("The answer is a matter of taste", None),
        ("Answer B is incorrect", None),
        ("The answer is not B", None),
        ("I would not choose B", None),
        ("Option C is wrong.", None),
        ("B is not correct", None),
        ("Either A or B", None),
        ("A cat sat on the mat", None),
        ("A good question", None),
        ("I think so", None),
        ("Vitamin B is healthy", None),
        ("Plan B is a film", None),
        ("", None),
        ("E", None),
        ("Both B and C could be", None),
        ("Answer: B or C", None),
        ("Answer: B/C", None),
        ("Answer: B, C", None),
        ("Answer: A, B", None),
        ("Answer: B-C", None),
        ("Answer: b.c.", None),
        ("(B) or (C)", None),
        ("B) or C)", None),
        ("**B** or **C**", None),
        ("A. one\nB. two", None),
        (r"\boxed{B, C}", None),
        ("The answer is B. Wait, no, C.", None),
        ("The answer is B? No: C", None),
        ("Is the answer B?", None),
        ("B?", None),
        ("~B", None),
        ("If the answer is B then we are wrong", None),
        ("The answer might be B", None),
        ("The answer is B unless it rains, then C", None),
        ("It is not the case that the answer is B", None),
        ("B is correct and so is C", None),
        ("Answer: D (all of B, C)", None),
        ("A) Paris\nB) Rome\nAnswer: B", "B"),
        ("The answer is B, because C is wrong", "B"),
        ("Final answer: **(B)**", "B"),
    ],
)
def test_letters(text, found):
    assert letter().key_of(text) == found


@given(st.text(alphabet=st.sampled_from("ABCD abcd.:()not is answer'\n"), max_size=60))
def test_any_text_is_a_known_letter_or_an_abstention(text):
    assert letter("ABC").key_of(text) in ("A", "B", "C", None)


def test_letters_beyond_the_usual():
    assert letter("ABCDEFGHI").key_of("I think so") is None
    assert letter("ABCDEFGHI").key_of("The answer is I.") == "I"
    assert letter("AI").key_of("The answer is I.") == "I"
    with pytest.raises(StopwiseError, match="letters"):
        letter("A")


@given(
    st.sampled_from(["The answer is {}", "Answer: {}", "{}", "({})", "I choose {}", "Option {}"]),
    st.sampled_from([" or ", ", ", "/", " and ", " & ", ". Wait, ", "? No, ", "\n", " - or "]),
    st.permutations("ABCD"),
)
def test_a_text_that_names_two_letters_agrees_with_neither(form, between, letters):
    one, two = letters[:2]
    text = form.format(one) + between + two
    assert letter().agrees(text, one) is not True
    assert letter().agrees(form.format(one) + between + form.format(two), one) is not True


# ---- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3.5", 3.5),
        ("3,5", None),
        ("1,250", 1250),
        ("1,250.5", 1250.5),
        ("12,34", None),
        ("1.234,5", None),
        ("1,2,3", None),
        (" -7 ", -7),
        ("1e3", 1000.0),
        ("nan", None),
        ("1_000", None),
        ("about 3", None),
        ("9" * 5000, None),
        (float("inf"), None),
        (10**400, 10**400),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (None, None),
        ([1], None),
    ],
)
def test_numbers(text, found):
    assert number().key_of(text) == found


def test_whole_numbers_beyond_floats_are_told_apart():
    assert number().agrees(2**60, 2**60 + 1) is False
    assert number(1).agrees(2**60, 2**60 + 1) is True
    assert number(0.5).agrees(str(2**60), 2**60 + 1) is False
    assert number(relative=1e-3).agrees(10**400, 10**400 + 1) is True


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 10))
def test_a_tolerance_t_is_sound_only_at_2_t(right, given_answer, t):
    """Who agrees with an answer that is right within t is right within 2 t."""
    truth = right + t / 2
    if number(t).agrees(right, given_answer):
        assert abs(given_answer - truth) <= 2 * t * (1 + 1e-9) + 1e-9


# ---- JSON, tools, programs -------------------------------------------------------------------


def test_json_numbers_are_equal_by_value():
    assert json_fields().agrees('{"a": 1}', '{"a": 1.0}') is True
    assert json_fields("a").agrees({"a": [1, {"b": 2.0}]}, '{"a": [1.0, {"b": 2}]}') is True
    assert json_fields().agrees('{"a": 1}', '{"a": true}') is False
    assert json_fields().agrees('{"a": 1}', '{"a": "1"}') is False
    assert json_fields().agrees({"a": 2**60 + 1}, {"a": 2**60}) is False
    assert json_fields().agrees('{"a": NaN}', '{"a": NaN}') is None
    assert json_fields("a").agrees('{"b": 1}', '{"a": 1}') is None
    assert json_fields().agrees("[" * 100_000, {"a": 1}) is None
    assert json_fields().agrees({"a": {1, 2}}, {"a": 1}) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON), st.dictionaries(st.text(max_size=3), JSON))
def test_json_agrees_as_its_values_do(one, two):
    def same(a, b):
        if isinstance(a, bool) != isinstance(b, bool) or type(a) is not type(b):
            return False
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        if isinstance(a, list):
            return len(a) == len(b) and all(map(same, a, b))
        return a == b

    assert json_fields().agrees(json.dumps(one), two) is same(one, two)
    assert json_fields().agrees(one, json.dumps(one, indent=3)) is True
    assert fenced_json().agrees(f"```json\n{json.dumps(one)}\n```", one) is True


@pytest.mark.parametrize(
    ("compare", "one", "two"),
    [
        (json_fields(), '{"a": 1, "a": 2}', '{"a": 2}'),
        (json_fields(), {1: "x"}, {"1": "x"}),
        (json_fields(), '{"a": 0.10000000000000000001}', '{"a": 0.1}'),
        (json_fields(), '{"a": 1e400}', '{"a": 1e400}'),
        (json_fields(), '{"a": 1e-400}', '{"a": 0}'),
        (number(), "0.10000000000000000001", "0.1"),
        (number(), "9007199254740993.0", "9007199254740992"),
        (number(), "1e-400", "0"),
        (tool_call(), {"name": "Ann", "age": 3}, {"name": "Ann"}),
        (tool_call(), {"name": "f", "arguments": {}, "args": {"a": 1}}, {"name": "f", "args": {}}),
        (tool_call(), {"name": "f", "arguments": '{"a": 1, "a": 2}'},
         {"name": "f", "arguments": {"a": 2}}),
        (tool_call(), {"name": "f", "input": {}, "type": "tool_result"},
         {"name": "f", "input": {}}),
        (tool_call(), {"name": "g", "function": {"name": "f", "arguments": {}}},
         {"name": "f", "arguments": {}}),
        (fenced_json(), '```json\n{"a": 1}\n```\nor maybe {"a": 2}', '{"a": 1}'),
        (fenced_json(), '```json\n{"a": 1}\n```\n```json\n{"a": 1,}\n```', '{"a": 1}'),
    ],
)  # fmt: skip
def test_what_may_not_be_equally_right_does_not_agree(compare, one, two):
    assert compare.agrees(one, two) is not True
    assert compare.agrees(two, one) is not True


def test_fenced_json():
    text = 'Sure!\n```json\n{"city": "Rome", "x": 1}\n```\nAnything else?'
    assert fenced_json("city").agrees(text, '{"city": "Rome"}') is True
    assert fenced_json().agrees("```\n[1, 2]\n```", [1.0, 2]) is True
    assert fenced_json("city").agrees(text + "\n" + text, {"city": "Rome"}) is None
    assert fenced_json("city").agrees("no JSON", {"city": "Rome"}) is None
    assert fenced_json("city").agrees("```python\nx = 1\n```\n" + text, {"city": "Rome"}) is True


def test_tool_calls():
    same = tool_call(ignore=["id"])
    plain = {"name": "pay", "arguments": {"sum": 5, "to": "Ann"}}
    forms = [
        json.dumps(plain),
        {"name": "pay", "input": {"to": "Ann", "sum": 5.0, "id": 9}},
        {"type": "function", "function": {"name": "pay", "arguments": '{"to":"Ann","sum":5}'}},
        {"role": "assistant", "tool_calls": [{"id": "x", "function": plain}]},
        [plain],
    ]
    assert all(same.agrees(plain, form) for form in forms)
    assert same.agrees(plain, {"name": "pay", "arguments": {"sum": 6, "to": "Ann"}}) is False
    assert same.agrees(plain, {"name": "buy", "arguments": {"sum": 5, "to": "Ann"}}) is False
    assert same.agrees([plain, forms[1]], [plain]) is False
    assert same.agrees({"name": "f"}, {"name": "f", "arguments": ""}) is True
    oops = {"name": "f", "arguments": "oops"}
    unreadables: tuple[Any, ...] = ("text", {}, [], {"name": 3}, oops, None)
    for unreadable in unreadables:
        assert same.agrees(plain, unreadable) is None


def test_python_source():
    same = python_source()
    assert same.agrees("def f(x):\n    return x+1  # add", "def f(x):\n\n  return (x + 1)") is True
    assert same.agrees("x = 'a'", 'x = "a"') is True
    assert same.agrees("```python\nx = 1\n```", "x=1") is True
    assert same.agrees("x = 1", "y = 1") is False
    for unreadable in ("def f(", "", "```\na\n```\n```\nb\n```", "x = '\0'", "(" * 10_000):
        assert same.agrees("x = 1", unreadable) is None


# ---- a user's own functions ------------------------------------------------------------------


def same_start(one, two):
    return one[0] == two[0]


def same_start_of(length, one, two):
    return one[:length] == two[:length]


def test_lambdas_have_labels_of_their_own():
    def make(width):
        return lambda one, two: one[:width] == two[:width]

    labels = [
        by(lambda one, two: one[0] == two[0]).label,
        by(lambda one, two: one[1] == two[1]).label,
        by(lambda one, two: one[0] >= two[0]).label,
        by(make(1)).label,
        by(make(2)).label,
        by(functools.partial(same_start_of, 1)).label,
        by(functools.partial(same_start_of, 2)).label,
        by_key(lambda text: text[0]).label,
    ]
    assert len(set(labels)) == len(labels)
    assert by(make(1)).label == by(make(1)).label  # and the same one in the next run
    assert by(same_start).label == "by(same_start)"
    assert by(lambda one, two: True, "mine").label == "mine"


def test_snapshots_of_two_lambdas_do_not_mix(tmp_path):
    first = Learner([0, 1], comparator=lambda one, two: one == two)
    first.save(tmp_path / "snapshot")
    second = Learner([0, 1], comparator=lambda one, two: one is not two)
    with pytest.raises(StopwiseError, match="comparator"):
        second.load(tmp_path / "snapshot")


def two_outputs(comparator, one="x", two="y", way="sync", **settings):
    cascade = Cascade(
        [Stage("a", lambda item: one), Stage("b", lambda item: two, 1)],
        "fixed",
        comparator=comparator,
        **settings,
    )
    if way == "sync":
        answer = cascade.answer(0)
    elif way == "async":
        answer = asyncio.run(cascade.answer_async(0))
    elif way == "many":
        answer = next(iter(cascade.answer_many([0])))
    else:
        answer = asyncio.run(cascade.answer_many_async([0]).collect()).singles(0)
    evidence = cascade.learner.evidence()
    return answer, int(evidence.seen[0, 1]), int(evidence.disagreed[0, 1])


WAYS = pytest.mark.parametrize("way", ["sync", "async", "many", "many async"])


@WAYS
def test_async_comparators_are_awaited(way):
    async def same_letter(one, two):
        await asyncio.sleep(0)
        return one.lower() == two.lower()

    async def first_letter(text):
        await asyncio.sleep(0)
        return text[0]

    assert two_outputs(same_letter, "x", "X", way)[1:] == (1, 0)
    assert two_outputs(same_letter, "x", "y", way)[1:] == (1, 1)
    assert two_outputs(lambda one, two: same_letter(one, two), "x", "y", way)[1:] == (1, 1)
    assert two_outputs(by_key(first_letter), "xa", "xb", way)[1:] == (1, 0)
    assert two_outputs(by_key(first_letter), "xa", "yb", way)[1:] == (1, 1)


def test_an_async_comparator_in_a_loop_of_ones_own():
    async def same(one, two):
        return one == two

    learner = Learner([0, 1], "fixed", comparator=same)

    async def run():
        round = learner.begin()
        round.observe("x")
        round.observe("y")
        return await round.end_async()

    assert asyncio.run(run()) == ("y", 1, 1.0)
    assert learner.evidence().disagreed[0, 1] == 1
    with learner.begin() as round:
        round.observe("x")
        round.observe("x")
    assert learner.evidence().seen[0, 1] == 2


@WAYS
def test_a_judge_may_cost_and_may_not_know(way):
    costly = judge(lambda one, two: Reported(one == two, cost=0.25))
    answer, seen, disagreed = two_outputs(costly, way=way)
    assert (answer.cost, seen, disagreed) == (1.25, 1, 1)
    answer, seen, disagreed = two_outputs(costly, way=way)  # it remembers: nothing is paid again
    assert (answer.cost, seen, disagreed) == (1.0, 1, 1)
    answer, seen, disagreed = two_outputs(judge(lambda one, two: None), way=way)
    assert (answer.answer, answer.recorded, seen, disagreed) == ("y", True, 0, 0)


def test_pairs_that_a_judge_cannot_decide_are_not_counted(tmp_path):
    def compare(one, two):
        return None if {one, two} == {"x", "z"} else one == two

    def build():
        return Learner(
            [0, 1, 1], "fixed", comparator=judge(compare, "j"), store=RoundLog(tmp_path / "rounds")
        )

    learner = build()
    with learner.begin() as round:
        for output in ("x", "y", "z"):
            round.observe(output)
    seen = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert learner.evidence().seen.tolist() == seen
    learner.close()
    again = build()  # as read back from the log
    assert again.evidence().seen.tolist() == seen
    assert again.evidence().disagreed.tolist() == seen
    again.close()
    (record,) = read_rounds(tmp_path / "rounds")
    assert record.to_form()["undecided"] == [[0, 2]]


def test_a_policy_that_counts_in_its_own_way_is_not_told_undecided_answers():
    learner = Learner([0, 0.1], "hanawal-2", comparator=judge(lambda one, two: None))
    for _ in range(30):
        with learner.begin() as round:
            for _ in range(round.depth + 1):
                round.observe("x")
    assert learner.evidence().seen[0, 1] == 0


def test_a_judge_is_asked_once_about_a_pair_in_either_order():
    asked = []

    def ask(one, two):
        asked.append((one, two))
        return True

    same = judge(ask, remember=2)
    assert same.agrees("a", "b")
    assert same.agrees("b", "a")
    assert asked == [("a", "b")]
    assert same.agrees(1, True)  # other types are other answers
    assert same.agrees("c", "d")
    assert same.agrees("a", "b")  # forgotten meanwhile
    assert len(asked) == 4
    assert same.agrees(["x"], ["x"])  # cannot be hashed
    with pytest.raises(StopwiseError, match="remember"):
        judge(ask, remember=-1)


def test_what_a_comparator_may_say():
    by_any: Any = by  # what is said here is not always a bool
    assert by_any(lambda one, two: np.bool_(True)).agrees(1, 2) is True
    assert by_any(lambda one, two: 0).agrees(1, 2) is False
    for said in (None, 0.5, "yes", [True], object()):
        with pytest.raises(MisusedComparatorError, match=r"need True or False \(judge"):
            by_any(lambda one, two, said=said: said).agrees(1, 2)
    with pytest.raises(MisusedComparatorError, match="its key is a map"):
        by_key(lambda text: map(str, text)).agrees("a", "b")
    assert by_key(lambda text: None).agrees("a", "b") is None


def test_votes_are_compared_by_async_comparators_too():
    async def same(one, two):
        return one == two

    outputs = iter(["x", "y", "x"])
    stages = [Stage(name, lambda item: next(outputs), 1) for name in "abc"]
    cascade = Cascade(stages, "fixed", comparator=same, combine=majority_vote)
    answer = asyncio.run(cascade.answer_async(0))
    assert answer.answer == "x"
    assert cascade.learner.evidence().disagreed.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_a_comparator_may_use_the_learner_from_another_thread():
    def compare(one, two):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(learner.rounds))
        thread.start()
        thread.join(5)
        return bool(seen)

    learner = Learner([0, 1], "fixed", comparator=compare)
    with learner.begin() as round:
        round.observe("x")
        round.observe("y")
    assert learner.evidence().disagreed[0, 1] == 0


class Near:
    """A comparator with a setting."""

    def __init__(self, most, **more):
        self.most = most
        self.__dict__.update(more)

    def __call__(self, one, two):
        return abs(one - two) <= self.most

    def agrees(self, one, two):
        return abs(one - two) <= self.most

    @classmethod
    def always(cls, one, two):
        return True


class Slotted:
    __slots__ = ("most",)

    def __init__(self, most):
        self.most = most

    def __call__(self, one, two):
        return abs(one - two) <= self.most


def test_objects_and_methods_of_different_state_have_labels_of_their_own():
    def make():
        near, far = Near(1), Near(2)
        return [
            by(near).label,
            by(far).label,
            by(near.agrees).label,
            by(far.agrees).label,
            by(Near(1, words={"a", "b"}, inner=Near(3))).label,
            by(Near(1, words={"a", "b"}, inner=Near(4))).label,
            by(Slotted(1)).label,
            by(Slotted(2)).label,
            by(Near.always).label,
            by(lambda one, two: near(one, two)).label,
            by(lambda one, two: far(one, two)).label,
            by(lambda one, two, *, most=1: abs(one - two) <= most).label,
            by(lambda one, two, *, most=2: abs(one - two) <= most).label,
            by(functools.partial(Near(1).agrees)).label,
            by(functools.partial(Near(2).agrees)).label,
            by_key({"a": 1}.get).label,
            by_key({"a": 2}.get).label,
            by_key(re.compile("a+").match).label,
            by_key(re.compile("b+").match).label,
            by_key(functools.lru_cache(lambda text: text[0])).label,
            by_key(functools.lru_cache(lambda text: text[1])).label,
        ]

    labels = make()
    assert len(set(labels)) == len(labels)
    assert make() == labels  # and the same in the next run


def test_state_that_cannot_be_written_down_needs_a_label():
    near = Near(1, client=object(), lock=threading.Lock())
    for function in (near, near.agrees):
        with pytest.raises(StopwiseError, match="label="):
            by(function)
    assert by(near, label="near").label == "near"
    vars(near)["label"] = "near 1"
    assert by(near).label == "by(near 1)"


@pytest.mark.parametrize("way", ["lambda", "object", "method"])
def test_snapshots_of_two_votes_do_not_mix(tmp_path, way):
    def vote(at):
        if way == "lambda":
            return lambda outputs: outputs[at]
        return Near(at) if way == "object" else Near(at).agrees

    first = Learner([0, 1], combine=vote(0))
    first.save(tmp_path / "snapshot.json")
    Learner([0, 1], combine=vote(0)).load(tmp_path / "snapshot.json")
    with pytest.raises(StopwiseError, match="combine"):
        Learner([0, 1], combine=vote(-1)).load(tmp_path / "snapshot.json")


@pytest.mark.parametrize(
    "text",
    [
        "wrong answer: B",
        "The wrong option is (B)",
        "The least likely answer is B",
        "The worst choice is B",
        "The incorrect answer is B.",
        "An unlikely answer is B",
        "I doubt it is B",
        "I doubt that the answer is B",
        "I rule out option B",
        "I would avoid option B",
        "I disagree with B",
        "Choice B fails",
        "Option B does not fit",
        "Option B contradicts the text",
        "B is the worst",
        "It is hardly B",
        "The only false option is B",
        "The answer that is excluded: B",
    ],
)
def test_a_letter_that_is_spoken_against_was_not_chosen(text):
    assert letter().agrees(text, "B") is None
    assert letter().agrees(f"**{text}**", "B") is None


@pytest.mark.parametrize(
    "text",
    [
        "The answer is B. A is wrong because it is too small.",
        "The most likely answer is B",
        "A fails, so the answer is B",
        "Without doubt, the answer is B",
        "The best choice is (B)",
        "The correct option is B",
        "Answer: B\nThe wrong ones are left out.",
    ],
)
def test_a_letter_that_is_stated_stays_chosen(text):
    assert letter().agrees(text, "B")
