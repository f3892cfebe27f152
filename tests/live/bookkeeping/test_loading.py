"""Loading: all or nothing, whatever is raised, and whatever is under way."""

import json
from typing import Any

import pytest

from stopwise import StopwiseError
from stopwise.live import Learner


def play(learner, number, segment=""):
    for at in range(number):
        with learner.begin(segment) as round:
            for stage in range(round.depth + 1):
                round.observe(at * stage % 2)


def save(tmp_path, change=lambda form: None):
    learner = Learner([0, 0.1, 0.1], seed=1)
    play(learner, 30)
    play(learner, 30, "s")
    learner.save(tmp_path / "s.json")
    form = json.loads((tmp_path / "s.json").read_text())
    change(form)
    (tmp_path / "s.json").write_text(json.dumps(form))
    return tmp_path / "s.json"


@pytest.mark.parametrize(
    "change",
    [
        lambda form: form["state"]["segments"]["s"].update(counters=3),
        lambda form: form["state"]["segments"]["s"]["counters"].update({"seen 0-1": "x"}),
        lambda form: form["state"]["segments"].update(s=None),
        lambda form: form["state"].update(begun=float("inf")),
        lambda form: form["state"].update(begun=None),
        lambda form: form.update(seed="one"),
        lambda form: form.update(settings=[]),
        lambda form: form.update(state=[]),
        lambda form: form["state"]["segments"]["s"]["counters"].update({"spent": 1e999}),
    ],
)
def test_a_bad_snapshot_changes_nothing(tmp_path, change):
    path = save(tmp_path, change)
    learner = Learner([0, 0.1, 0.1], seed=1)
    play(learner, 20, "t")
    before = learner.to_form()
    with pytest.raises(StopwiseError):
        learner.load(path)
    assert learner.to_form() == before
    play(learner, 5, "t")


def test_a_sum_over_segments_that_is_no_sum_is_made_from_them(tmp_path):
    path = save(tmp_path, lambda form: form["state"]["pool"].update(spent=10**400))
    learner = Learner([0, 0.1, 0.1], seed=1)
    learner.load(path)
    assert learner.rounds == 60


def test_what_cannot_be_decided_by_changes_nothing(tmp_path, monkeypatch):
    learner = Learner([0, 0.1, 0.1], "per-item", seed=1)
    play(learner, 40)
    learner.save(tmp_path / "s.json")
    play(learner, 40)
    before = learner.to_form()
    form = json.loads((tmp_path / "s.json").read_text())
    wrong: tuple[Any, ...] = (True, 3, [])
    for items in wrong:
        with pytest.raises(StopwiseError, match="items"):
            learner.restore({**form, "items": items})
    monkeypatch.setattr("stopwise.live.choosing.item_decider.Deciding.by", None)
    with pytest.raises(TypeError):
        learner.restore(form)
    assert learner.to_form() == before


def test_anything_that_is_raised_while_loading_changes_nothing(tmp_path, monkeypatch):
    path = save(tmp_path)
    learner = Learner([0, 0.1, 0.1], seed=1)
    play(learner, 20)
    before = learner.to_form()

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("stopwise.live.counters.forms.checked_counters", interrupt)
    with pytest.raises(KeyboardInterrupt):
        learner.load(path)
    assert learner.to_form() == before


@pytest.mark.parametrize("segment", ["", "new"])
def test_a_round_that_is_open_while_loading_ends_and_counts(tmp_path, segment):
    path = save(tmp_path)
    learner = Learner([0, 0.1, 0.1], seed=1)
    round = learner.begin(segment)
    learner.load(path)
    for _ in range(round.depth + 1):
        round.observe("x")
    round.end()
    assert learner.rounds == 61
