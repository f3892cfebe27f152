"""What is of the wrong type, or misspelt, is refused by name: never a raw error, never ignored."""

import asyncio
import inspect
import pickle
import re
from typing import Never, get_type_hints

import pytest

from stopwise import StopwiseError
from stopwise.live import (
    Cascade,
    Comparator,
    Learner,
    PostgresStore,
    Reported,
    RoundLog,
    SqliteStore,
    Stage,
    by,
    by_key,
    judge,
    tool_call,
)
from stopwise.live.keywords import LearnerKeywords
from stopwise.live.observing import TracedCascade
from stopwise.live.running.cascade_keywords import CascadeKeywords
from stopwise.live.stores.log_lines import read_rounds

STAGES = [Stage("a", str, 0), Stage("b", str, 1)]


def cascade(kind=Cascade, **settings):
    return kind(STAGES, "fixed", mistake_cost=4, **settings)


def learner(**settings):
    return Learner([0, 1], "fixed", mistake_cost=4, **settings)


def over_items(**given):
    return cascade().answer_many(["x"], **given).collect()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Cascade(3), "stages: got 3, but need a list of Stage objects"),
        (lambda: cascade(combine="majority"), "combine: got 'majority', but need a function"),
        (lambda: learner(combine=3), "combine: got 3, but need a function"),
        (lambda: learner(look_rate=3), "look_rate: got 3"),
        (lambda: learner(level=0), "level: got 0"),
        (lambda: learner(run_to=0.5), "run_to: got 0.5, but need a stage from 0 to 1"),
        (lambda: cascade().answer_many(3), "items: got 3"),
        (lambda: cascade().answer_many_async(None), "items: got None"),
        (lambda: over_items(features=3), "features: got 3"),
        (lambda: cascade().save(3), "path: got 3, but need the name of a file"),
        (lambda: cascade().load(3), "snapshot: got 3, but need the name of a file"),
        (lambda: learner().restore(3), "snapshot: the field 'settings' is missing"),
        (lambda: learner().restore({}), "snapshot: the field 'settings' is missing"),
        (lambda: learner().add_evidence(3), "evidence: got 3, but need Evidence"),
        (lambda: learner().begin().skip_to(2), "stage: got 2, but need a stage up to 1"),
        (lambda: RoundLog(3), "path: got 3, but need the name of a file"),
        (lambda: SqliteStore(None), "path: got None, but need the name of a file"),
        (lambda: PostgresStore(3), "url: got 3, but need text"),
        (lambda: by(3), "agree: got 3, but need a function of two answers"),
        (lambda: by_key("name"), "key: got 'name', but need a function of an answer"),
        (lambda: judge(None), "agree: got None, but need a function of two answers"),
        (lambda: Comparator(3), "label: got 3, but need text"),
        (lambda: Comparator("mine", key=3), "key: got 3, but need a function of an answer"),
        (lambda: list(read_rounds(3)), "log: got 3, but need the name of a file"),
        (lambda: tool_call(ignore=3), "ignore: got 3, but need names of fields"),
    ],
)
def test_wrong_types_are_refused_by_name(call, message):
    with pytest.raises(StopwiseError, match=re.escape(message)):
        call()


def misspelt():
    yield lambda **given: cascade().answer("x", **given), "segmnt", "segment"
    yield lambda **given: asyncio.run(cascade().answer_async("x", **given)), "dealine", "deadline"
    yield lambda **given: cascade(TracedCascade).answer("x", **given), "segmnt", "segment"
    yield lambda **given: cascade().load("x", **given), "frok", "fork"
    yield lambda **given: Comparator("mine", **given), "kye", "key"
    yield lambda **given: Reported("x", **given), "csot", "cost"
    yield lambda **given: learner().begin_drawn(1, 0.5, **given), "segmnt", "segment"
    yield lambda **given: learner().begin().fail(**given), "eror", "error"
    yield lambda **given: learner().begin().abandon(**given), "wiat", "wait"


@pytest.mark.parametrize(("call", "given", "meant"), list(misspelt()))
def test_a_misspelt_keyword_of_one_item_is_answered_with_the_nearest(call, given, meant):
    with pytest.raises(StopwiseError, match=f"unknown setting '{given}'; did you mean '{meant}'"):
        call(**{given: 1})


def test_what_is_called_in_every_round_names_itself_and_the_keyword():
    """A check would cost these some 2 % of a round each; Python 3.13 adds the nearest by itself."""
    for call, name in (
        (learner().begin, "Learner.begin"),
        (learner().begin().observe, "Round.observe"),
        (learner().begin().end, "Round.end"),
    ):
        with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected .* 'segmnt'"):
            call(**{"segmnt": 1})


def test_checkers_of_types_refuse_a_misspelt_keyword_too():
    for method in (Cascade.answer, Cascade.answer_async):
        assert get_type_hints(method, localns={"Answer": object})["unknown"] is Never


def test_what_a_cascade_takes_stands_in_one_list():
    parameters = inspect.signature(Cascade).parameters.values()
    own = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert CascadeKeywords.__optional_keys__ - LearnerKeywords.__optional_keys__ == own


def test_reported_is_still_a_plain_tuple():
    one = Reported("yes", 2.0, confidence=0.5)
    assert tuple(one) == ("yes", 2.0, 0.5)
    assert Reported("yes") == ("yes", None, None)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one._replace(cost=3.0).cost == 3.0
    assert type(Reported._make(one)) is Reported
    with pytest.raises(TypeError, match="output"):
        Reported(**{})
