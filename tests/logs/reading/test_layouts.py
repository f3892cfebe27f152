from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from stopwise.checks import StopwiseError
from stopwise.logs import Settings, analyze
from stopwise.logs.analysis import analyze_counts
from stopwise.logs.reading.counting import count
from stopwise.logs.reading.labels import plain_label
from stopwise.logs.reading.layouts.opening import open_log

GIVEN = {"stages": ["small", "medium", "large"], "costs": [0.01, 0.1, 0.3], "mistake_cost": 1}


def counted(frame, **given):
    return count(open_log(frame, Settings.of(**given)))


def test_every_kind_of_file_and_frame_gives_the_same_analysis(log, tmp_path):
    wanted = analyze(log, **GIVEN).to_dict()
    log.write_csv(tmp_path / "log.csv")
    log.write_csv(tmp_path / "log.tsv", separator="\t")
    log.write_csv(tmp_path / "semicolon.csv", separator=";")
    log.write_parquet(tmp_path / "log.parquet")
    log.write_ndjson(tmp_path / "log.jsonl")
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "log.csv").read_bytes())
    (tmp_path / "crlf.csv").write_bytes((tmp_path / "log.csv").read_bytes().replace(b"\n", b"\r\n"))
    log.write_csv(tmp_path / "log[1] *.csv")
    log[:700].write_parquet(tmp_path / "part-0.parquet")
    log[700:].write_parquet(tmp_path / "part-1.parquet")
    pandas_frame = log.to_pandas()
    for source in (
        *(tmp_path / name for name in ("log.csv", "log.tsv", "semicolon.csv", "bom.csv")),
        *(tmp_path / name for name in ("crlf.csv", "log.parquet", "log.jsonl")),
        str(tmp_path / "part-*.parquet"),
        tmp_path / "log[1] *.csv",
        log.lazy(),
        pandas_frame,
    ):
        found = analyze(source, **GIVEN).to_dict()
        assert found | {"log": ""} == wanted | {"log": ""}


def test_long_layout_equals_wide(log, tmp_path):
    long = log.unpivot(
        on=["small", "medium", "large"], index=["item", "truth", "lang"],
        variable_name="stage", value_name="output",
    ).sort("item", maintain_order=True)  # fmt: skip
    given = GIVEN | {"truth": "truth", "segment": "lang"}
    wide = analyze(log, **given).to_dict()
    assert analyze(long, **given).to_dict() | {"log": ""} == wide | {"log": ""}
    long.write_csv(tmp_path / "long.csv")
    found = analyze(tmp_path / "long.csv", **given).to_dict()
    assert found | {"log": ""} == wide | {"log": ""}


def test_long_log_measures_costs_and_tells_abstained_from_not_called():
    frame = pl.DataFrame(
        {
            "item": [1, 1, 2, 2, 3],
            "stage": ["a", "b", "a", "b", "a"],
            "output": ["x", "x", "y", None, "x"],
            "cost": [1.0, 4.0, 3.0, 6.0, 2.0],
        }
    )
    counts = counted(frame, stages=["a", "b"])
    rows = map(tuple, counts.codes.tolist())
    by_pattern = dict(zip(rows, counts.number.tolist(), strict=True))
    assert by_pattern == {(0, 0): 1, (1, -1): 1, (0, -2): 1}
    assert counts.billed is not None
    assert counts.billed.total.sum(axis=0).tolist() == [6.0, 10.0]
    assert [spread[None].number.sum() for spread in counts.billed.spreads] == [3, 2]


def test_a_repeated_stage_in_a_long_log_is_refused():
    frame = pl.DataFrame({"item": [1, 1], "stage": ["a", "a"], "output": ["x", "y"]})
    with pytest.raises(StopwiseError, match="stages: got 'b'"):
        counted(frame, stages=["a", "b"], costs=[1, 2])
    frame = pl.DataFrame({"item": [1, 1, 1], "stage": ["a", "a", "b"], "output": ["x", "y", "x"]})
    with pytest.raises(StopwiseError, match="item 1 has stage 'a' more than once"):
        counted(frame, stages=["a", "b"], costs=[1, 2])


def test_blanks_are_abstentions_before_an_answer_and_early_stops_at_the_end():
    frame = pl.DataFrame(
        {"a": [None, "x", "x", ""], "b": ["x", None, "y", ""], "c": ["x", None, "", "x"]}
    )
    counts = counted(frame, stages=["a", "b", "c"], costs=[1, 2, 3])
    found = sorted(map(tuple, counts.codes.tolist()))
    assert found == [(-1, -1, 0), (-1, 0, 0), (0, -2, -2), (0, 1, -2)]
    counts = counted(frame, stages=["a", "b", "c"], costs=[1, 2, 3], trailing_blanks="abstained")
    assert (counts.codes >= -1).all()


def test_billed_blanks_are_abstentions_and_unbilled_ones_are_not_calls():
    frame = pl.DataFrame(
        {
            "a": ["x", "x", "y"], "a:cost": [1.0, 1.0, 1.0],
            "b": ["x", None, None], "b:cost": [5.0, 3.0, 0.0],
        }
    )  # fmt: skip
    counts = counted(frame)
    assert sorted(map(tuple, counts.codes.tolist())) == [(0, -1), (0, 0), (1, -2)]
    assert counts.billed is not None
    assert counts.billed.number.sum(axis=0).tolist() == [3, 2]
    assert counts.billed.total.sum(axis=0).tolist() == [3.0, 8.0]


def test_one_answer_written_in_two_ways_is_one_label():
    frame = pl.DataFrame({"a": [1, 0, 1], "b": ["1.0", "0.0", " 1 "]})
    assert counted(frame, stages=["a", "b"], costs=[1, 2]).evidence().disagreed[0, 1] == 0
    frame = pl.DataFrame({"a": [True, False], "b": ["TRUE", "false"]})
    assert counted(frame, stages=["a", "b"], costs=[1, 2]).evidence().disagreed[0, 1] == 0
    assert plain_label("-0.0") == "0"
    assert plain_label(2.5) == "2.5"


def test_settings_file_and_flags(log, tmp_path, cli):
    log.write_csv(tmp_path / "log.csv")
    (tmp_path / "s.toml").write_text(
        'stages = ["small", "medium", "large"]\ncosts = [0.01, 0.1, 0.3]\nmistake_cost = 1\n'
    )
    answer = cli("analyze", tmp_path / "log.csv", "--settings", tmp_path / "s.toml", "--json",
                 "--mistake-cost", 0.5)  # fmt: skip
    form = json.loads(answer.out)
    assert form["mistake_cost"] == 0.5
    assert form["costs"] == pytest.approx([0.01, 0.1, 0.3])
    (tmp_path / "s.toml").write_text("stage = 3\n")
    answer = cli("analyze", tmp_path / "log.csv", "--settings", tmp_path / "s.toml")
    assert answer.status == 2
    assert "unknown field 'stage'" in answer.err


def test_segments_are_judged_apart_and_at_a_joint_level(log):
    analysis = analyze(log, **GIVEN, segment="lang")
    assert sorted(s.name for s in analysis.segments) == ["de", "en"]
    for segment in analysis.segments:
        part = log.filter(pl.col("lang") == segment.name)
        alone = analyze(part, **GIVEN)
        assert segment.rows == alone.rows
        assert segment.verdict is not None
        for pair, other in zip(segment.verdict.pairs, alone.verdict.pairs, strict=True):
            assert (pair.seen, pair.disagreed) == (other.seen, other.disagreed)
            assert pair.high > other.high


def test_analysis_of_counts_is_what_analyze_does(log):
    settings = Settings.of(**GIVEN)
    counts = count(open_log(log, settings))
    assert analyze_counts("log", counts, settings).to_dict() == analyze(log, settings).to_dict()


def test_same_log_same_result_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "a": rng.integers(0, 3, 500), "a:cost": rng.random(500),
            "b": rng.integers(0, 3, 500), "b:cost": rng.random(500),
        }
    )  # fmt: skip
    frame.write_csv(tmp_path / "log.csv")
    found = {json.dumps(analyze(tmp_path / "log.csv", mistake_cost=9).to_dict()) for _ in range(5)}
    assert len(found) == 1
