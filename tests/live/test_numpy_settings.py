"""Settings that are NumPy's numbers are kept as any others."""

import json

import numpy as np
import pytest

import stopwise as sw
from stopwise.live import Learner, RoundLog, SqliteStore

SETTINGS = {
    "half_life": np.int64(100),
    "full_run_rate": np.float32(0.5),
    "segment_strength": np.float32(2),
}


@pytest.mark.parametrize("store", [None, RoundLog, SqliteStore])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_learner_is_kept(setting, store, tmp_path):
    given = {setting: SETTINGS[setting]}
    kept = None if store is None else store(tmp_path / "rounds")
    learner = Learner([0, 1], mistake_cost=np.float64(9), store=kept, **given)
    with learner.begin() as round:
        round.observe("a")
        if round.depth:
            round.observe("a")
    learner.save(tmp_path / "snapshot.json")
    learner.close()
    assert json.loads((tmp_path / "snapshot.json").read_text())


def test_an_analysis_is_written():
    log = {"a": ["x", "y"] * 20, "b": ["x", "x"] * 20}
    import polars as pl

    found = sw.analyze(
        pl.DataFrame(log), stages=["a", "b"], costs=[1, 2], mistake_cost=np.int64(9),
        level=np.float32(0.99),
    )  # fmt: skip
    assert json.dumps(found.to_dict())


def test_a_tie_at_a_threshold_of_one_goes_deeper_live_as_in_an_analysis():
    learner = Learner([0, 5], "fixed", mistake_cost=5)
    for _ in range(10):
        with learner.begin() as round:
            round.observe("a")
            round.observe("b")
    assert learner.best_stage(reading="weak-dominance") == 1
