from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.replaying.replay import replay
from stopwise.logs.settings import LogSettings


def test_confidences_and_features_of_a_wide_log_are_read(tmp_path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("a,a:confidence,b,length,lang\nx,0.5,x,3,de\ny,,x,4,fr\n,0.1,y,5,de\n")
    settings = LogSettings.of(stages="a,b", costs="1,2", features="length,lang")
    rows = read_rows(str(path), settings)
    assert rows.confidences is not None
    assert rows.confidences[:, 0].tolist()[0] == 0.5
    assert np.isnan(rows.confidences[1, 0])
    assert np.isnan(rows.confidences[:, 1]).all()
    assert rows.features["length"].tolist() == [3, 4, 5]
    assert rows.features["lang"].tolist() == ["de", "fr", "de"]
    assert rows.observations().codes[2, 0] == -1


def test_confidences_of_a_long_log_are_read() -> None:
    frame = pl.DataFrame(
        {"item": [1, 1, 2, 2], "stage": ["a", "b"] * 2, "output": ["x", "y", "x", "x"],
         "confidence": [0.1, 0.2, 0.3, None]}
    )  # fmt: skip
    rows = read_rows(frame, LogSettings.of(stages="a,b", costs="1,2"))
    assert rows.confidences is not None
    assert rows.confidences[0].tolist() == [0.1, 0.2]
    assert np.isnan(rows.confidences[1, 1])


@pytest.mark.parametrize(
    ("csv", "features", "part"),
    [("a,a:confidence,b\nx,high,x\nx,0.2,y\n", None, "a:confidence"), ("a,b\nx,x\n", "len", "len"),
     ("a,b\nx,x\n", "a,a", "features")],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path, csv: str, features: str | None, part: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(csv)
    with pytest.raises(StopwiseError, match=part):
        read_rows(str(path), LogSettings.of(stages="a,b", costs="1,2", features=features))


def test_replay_takes_the_policy_and_its_confidences() -> None:
    rows, truth = made_up(3000, (0.2, 1.0, 2.0), seed=4)
    assert rows.confidences is not None
    columns: dict[str, Any] = {}
    for at, name in enumerate(("s", "m", "l")):
        columns[name] = [rows.labels[code] for code in rows.codes[:, at]]
        columns[f"{name}:confidence"] = rows.confidences[:, at]
    frame = pl.DataFrame({**columns, "truth": [rows.labels[code] for code in truth]})
    given = {"stages": ["s", "m", "l"], "costs": [0.1, 1, 4], "mistake_cost": 6, "truth": "truth"}
    result = replay(frame, "per-item", replications=2, order="shuffled", **given)
    assert result.policy == "per-item"
    assert 0 < result.outcomes[0].stage_share[0] < 1
    plain = replay(frame.select("s", "m", "l", "truth"), "per-item", replications=2, **given)
    assert plain.outcomes[0].cost != result.outcomes[0].cost
