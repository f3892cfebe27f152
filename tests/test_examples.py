"""The examples run, and show what they claim."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_has_its_test():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert names <= tested


def test_digits():
    figures = load("digits").main()
    assert figures["accuracy"] >= figures["accuracy of the most expensive"] - 0.01
    assert figures["cost of a prediction"] < 0.6 * figures["cost of the most expensive"]
    assert figures["cost of a row while learning"] < 0.6 * figures["cost of the most expensive"]


def test_heart(capsys):
    heart = load("heart")
    costly = heart.main(5000.0)
    assert costly.stage_ > 0
    cheap = heart.main(500.0)
    assert cheap.stage_name_ == "at rest"
    assert cheap.cost_ == pytest.approx(31.97)
    assert "cost of a patient" in capsys.readouterr().out


def test_early_exit():
    learner = load("early_exit").main()
    assert learner.rounds == 899
    assert learner.report().spent < 3 * 899 * 0.9
    assert learner.best_stage() < 2


def test_http_cascade():
    cascade, answers = load("http_cascade").main(300)
    report = cascade.learner.report()
    assert len(answers) == report.rounds == 300
    # each failure was answered by the stage before it
    assert sum(bool(answer.failures) for answer in answers) == report.failures[2]
    assert all(answer.answer in ("good", "bad") for answer in answers)
    assert cascade.learner.stages[cascade.learner.best_stage()] == "medium"
    assert report.spent == pytest.approx(sum(answer.cost for answer in answers))
