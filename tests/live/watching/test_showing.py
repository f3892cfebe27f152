"""What a learner and its files say of themselves: explain, status, repair."""

import json

import matplotlib
import pytest
from typer.testing import CliRunner

from stopwise import Evidence
from stopwise.cli import build_app
from stopwise.decisions import passes
from stopwise.live import (
    Breaker,
    Cascade,
    Drift,
    Learner,
    PostgresStore,
    Retry,
    RoundLog,
    SqliteStore,
    Stage,
    by,
    by_key,
    exact,
    fenced_json,
    folded,
    json_fields,
    letter,
    number,
    python_source,
    read_rounds,
    tool_call,
)
from stopwise.live.watching.explain import rounds_to_turn, wilson

matplotlib.use("agg")


def learner_with(seen, disagreed):
    learner = Learner({"a": 0, "b": 1, "c": 1}, mistake_cost=10)
    learner.add_evidence(Evidence.from_counts(seen, disagreed))
    return learner


def test_an_explanation_says_what_decides():
    learner = learner_with(
        [[0, 100, 100], [0, 0, 100], [0, 0, 0]], [[0, 5, 25], [0, 0, 4], [0, 0, 0]]
    )
    explained = learner.explain()
    assert explained.best_stage == "b"
    assert [pair.worth for pair in explained.pairs] == [False, True, False]
    assert sum(explained.probabilities) == pytest.approx(1)
    form = json.loads(explained.to_json())
    assert form["pairs"][1]["disagreement"] == 0.25
    assert "25.0% of 100 differ" in str(explained)
    assert "<table>" in explained._repr_html_()
    assert len(explained.plot().lines) == 9
    assert explained.to_frame()["disagreement"].to_list() == [0.05, 0.25, 0.04]
    assert repr(explained).startswith("<Explanation: The next round stops at")
    assert repr(learner.report()) == f"<LiveReport: {str(learner.report()).splitlines()[0]}>"


def test_a_pair_that_was_never_seen_is_said_so():
    explained = Learner([0, 1]).explain()
    assert explained.pairs[0].worth is None
    assert "never seen together" in str(explained)


@pytest.mark.parametrize("n", [1, 7, 40, 333])
@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.1, 0.5, 0.9, 1.0, 1.5])
def test_what_would_turn_a_pair_is_the_first_that_does(n, threshold):
    for d in range(0, n + 1, max(1, n // 7)):
        now = passes(threshold, d / n)
        first = None
        for k in range(20_000):
            share = (d + k) / (n + k) if now else d / (n + k)
            if passes(threshold, share) != now:
                first = k
                break
        assert rounds_to_turn(n, d, threshold) == first


def test_wilson_is_the_solution_of_its_equation():
    for n, d in ((10, 1), (100, 50), (5, 0), (5, 5)):
        for end in wilson(n, d):
            if 0 < end < 1:
                assert (d / n - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / n)


def run(*arguments):
    return CliRunner().invoke(build_app(), ["live", *map(str, arguments)])


@pytest.mark.parametrize("kind", ["log", "sqlite", "snapshot"])
def test_status_of_every_kind_of_file(tmp_path, kind):
    path = tmp_path / "file"
    store = {"log": RoundLog, "sqlite": SqliteStore}.get(kind)
    learner = Learner({"a": 0, "b": 1}, "fixed", store=store and store(path))
    for segment in ("", "s", "s"):
        with learner.begin(segment) as round:
            round.observe(1)
            round.observe(2)
    if kind == "snapshot":
        learner.save(path)
    learner.close()
    result = run("status", path)
    assert result.exit_code == 0, result.output
    assert "3 rounds, spent 3; stages a, b" in result.output
    assert "no problem found" in result.output
    form = json.loads(run("status", path, "--json").output)
    assert form["segments"][""] == {"": 1, "s": 2}


def test_repair_takes_out_what_cannot_be_read_and_keeps_it(tmp_path):
    path = tmp_path / "rounds.jsonl"
    learner = Learner({"a": 0, "b": 1}, "fixed", store=RoundLog(path))
    for _ in range(4):
        with learner.begin() as round:
            round.observe(1)
            round.observe(2)
    learner.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"nonsense\n", *lines[2:], b'{"round": 5, "de']))
    result = run("status", path)
    assert result.exit_code == 1
    assert "line 3" in result.output
    assert "cut short" in result.output
    result = run("repair", path)
    assert result.exit_code == 0
    assert len(list(read_rounds(path))) == 4
    aside = tmp_path / "rounds.jsonl.unreadable"
    assert aside.read_bytes() == b'nonsense\n{"round": 5, "de\n'
    assert "no problem found" in run("status", path).output


def test_another_file_is_refused(tmp_path):
    (tmp_path / "x").write_text("hello")
    result = run("repair", tmp_path / "x")
    assert "need a log of rounds" in str(result.exception)
    assert (tmp_path / "x").read_text() == "hello"


def test_everything_shows_what_it_is():
    stages = [Stage("rule", str.islower, 1), Stage("model", str.isalpha, 5)]
    cascade = Cascade(stages, "fixed", mistake_cost=20, comparator=letter())
    cascade.answer("a")
    assert repr(cascade) == "Cascade(rule, model; 'fixed', 1 rounds)"
    assert repr(cascade.answer_many(["a", "b"])) == "<Answers: 2 items, called when asked for>"
    assert repr(cascade.answer_many_async(iter("ab"))) == (
        "<AsyncAnswers: items, called when asked for>"
    )
    assert repr(cascade.learner.reader.comparator) == "Comparator(\"letter('ABCD')\")"
    shown = [
        cascade, cascade.learner, cascade.learner.report(), cascade.learner.explain(),
        cascade.learner.begin(), cascade.learner.store_status, *cascade.stages,
        cascade.answer("a"), cascade.answer_many(["a"]).collect(), exact(), number(), folded(),
        json_fields("a"), fenced_json("a"), tool_call(), python_source(), by_key(len),
        by(lambda one, two: one == two), Retry(2), Breaker(), Drift(), RoundLog("x"),
        SqliteStore("x"), PostgresStore("postgresql://user@host/x"),
    ]  # fmt: skip
    assert not [each for each in map(repr, shown) if " object at 0x" in each]
