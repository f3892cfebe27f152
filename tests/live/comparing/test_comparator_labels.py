"""Names of a user's own comparators and votes, so that counts of two do not mix."""

import functools
import re
import threading

import pytest

from stopwise import StopwiseError
from stopwise.live import (
    Learner,
    by,
    by_key,
)

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
