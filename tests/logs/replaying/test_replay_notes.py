"""Right answers that stages write otherwise, or never give, are said wherever a truth is read."""

from __future__ import annotations

import polars as pl
import pytest

import stopwise as sw
from stopwise.logs.items.fitting import fit

FRAME = pl.DataFrame(
    {
        "a": ["yes", "no"] * 50,
        "b": ["yes", "yes"] * 50,
        "truth": ["YES", "no", "perhaps", "no"] * 25,
    }
)
GIVEN = {"stages": ["a", "b"], "costs": [1, 5], "mistake_cost": 20, "truth": "truth"}


def test_replay_says_it(tmp_path, cli):
    result = sw.replay(FRAME, replications=2, **GIVEN)
    notes = " ".join(result.notes)
    assert "read 'YES' as 'yes'" in notes
    assert "no stage ever gives 'perhaps'" in notes
    assert result.to_dict()["notes"] == list(result.notes)
    FRAME.write_csv(tmp_path / "log.csv")
    said = cli("replay", tmp_path / "log.csv", "--stages", "a,b", "--costs", "1,5",
               "--mistake-cost", "20", "--truth", "truth", "--replications", "2").out  # fmt: skip
    assert "no stage ever gives 'perhaps'" in " ".join(said.split())


def test_simulated_audits_say_it(tmp_path, cli):
    FRAME.write_csv(tmp_path / "log.csv")
    said = cli("audit", tmp_path / "log.csv", "--stages", "a,b", "--costs", "1,5",
               "--mistake-cost", "20", "--simulate-with", "truth",
               "--replications", "2").out  # fmt: skip
    assert "no stage ever gives 'perhaps'" in " ".join(said.split())


def test_fit_says_it(tmp_path, cli):
    with pytest.warns(UserWarning, match="no stage ever gives 'perhaps'|read 'YES' as 'yes'"):
        fit(FRAME, labels=10, **GIVEN)
    FRAME.write_csv(tmp_path / "log.csv")
    answer = cli("fit", tmp_path / "log.csv", "--stages", "a,b", "--costs", "1,5",
                         "--mistake-cost", "20", "--truth", "truth", "--labels", "10",
                         "--out", tmp_path / "rule.json")  # fmt: skip
    assert "no stage ever gives 'perhaps'" in answer.out + answer.err
