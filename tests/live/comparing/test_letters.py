"""Which letter a text chooses, and when it chooses none."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stopwise import StopwiseError
from stopwise.live import (
    letter,
)


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


def test_a_long_text_is_read_once():
    """Reading all that stands before each letter again would take an hour, and time out."""
    assert letter().agrees("it is B " * 25_000, "B")
    assert letter().agrees("wrong " + "it is as it is " * 20 + "B is the answer " * 20, "B") is None
