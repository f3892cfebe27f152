"""The options of a log: one definition for the four commands that read one."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import typer

from stopwise.checks import StopwiseError
from stopwise.cli.logs import analyze, audit, fit, replay
from stopwise.cli.shared.log_options import ChosenLog, reads_log

COMMANDS = (analyze, audit, fit, replay)
COMMON = {
    "log", "stages", "costs", "mistake_cost",
    "settings", "item", "layout", "max_labels", "trailing_blanks", "calls", "example",
}  # fmt: skip


@pytest.mark.parametrize("module", COMMANDS, ids=lambda module: module.__name__.split(".")[-1])
def test_every_command_on_a_log_has_its_options_and_keeps_its_own(module) -> None:
    names = list(inspect.signature(module.command).parameters)
    assert set(names) > COMMON
    assert names[:4] == ["log", "stages", "costs", "mistake_cost"]
    assert names[-1] == "example"
    assert module.command.__doc__.count("**stopwise ") >= 2, "its help shows commands to copy"


def test_an_option_says_the_same_in_every_command() -> None:
    for name in COMMON:
        kinds = {
            inspect.signature(module.command).parameters[name].annotation for module in COMMANDS
        }
        assert len(kinds) == 1, name


def test_the_command_gets_the_log_its_settings_and_its_own_options() -> None:
    got: list[tuple[ChosenLog, int]] = []

    @reads_log("truth")
    def command(log: ChosenLog, times: int = 1) -> None:
        got.append((log, times))

    shown = inspect.signature(command).parameters
    assert list(shown)[4:6] == ["truth", "times"]
    given = {name: parameter.default for name, parameter in shown.items()}
    command(**given | {"log": ["a.csv"], "stages": "x,y", "truth": "z", "times": 3})
    ((log, times),) = got
    assert (log.source, log.settings.stages, log.settings.truth) == ("a.csv", ("x", "y"), "z")
    assert (log.example, times) == (False, 3)
    command(**given | {"example": True, "mistake_cost": 7.0})
    assert got[1][0].example
    assert got[1][0].settings.mistake_cost == 7.0
    assert Path(str(got[1][0].source)).exists()


def test_neither_a_log_nor_the_example_or_both_is_refused() -> None:
    @reads_log()
    def command(log: ChosenLog) -> None:
        raise AssertionError(log)

    given = {name: p.default for name, p in inspect.signature(command).parameters.items()}
    with pytest.raises(StopwiseError, match="no log given"):
        command(**given)
    with pytest.raises(StopwiseError, match="not both"):
        command(**given | {"log": ["a.csv"], "example": True})


def test_an_option_that_no_log_has_is_refused_where_it_is_written() -> None:
    with pytest.raises(AssertionError, match="no log has"):
        reads_log("colour")


def test_typer_reads_the_signature() -> None:
    app = typer.Typer(add_completion=False)
    app.command("fit")(fit.command)
    parameters = {p.name: p for p in typer.main.get_command(app).params}
    assert parameters["log"].param_type_name == "argument"
    assert "--mistake-cost" in parameters["mistake_cost"].opts
