from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from stopwise.cli import main


@dataclass
class Answer:
    status: int
    out: str
    err: str


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """The command, in this process: its status and what it printed."""

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["stopwise", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = int(stop.code or 0)
        printed = capsys.readouterr()
        return Answer(status, printed.out, printed.err)

    return run


@pytest.fixture
def log() -> pl.DataFrame:
    """2,000 items, three stages of falling error, with truth; order carries no information."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, 2000)
    columns = {"item": np.arange(2000)}
    for name, error in (("small", 0.25), ("medium", 0.08), ("large", 0.05)):
        columns[name] = np.where(rng.random(2000) < error, 1 - truth, truth)
    return pl.DataFrame({**columns, "truth": truth, "lang": np.where(truth == 1, "de", "en")})
