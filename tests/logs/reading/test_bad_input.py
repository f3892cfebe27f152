"""Whatever is wrong with a log or its settings is one line that says what to do, and status 2."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import polars as pl
import pytest

TWO = "a,b\nx,x\ny,x\nx,x\n"
FLAGS = ("--stages", "a,b", "--costs", "1,2")


def case(name, content, *flags, says):
    return pytest.param(name, content, flags, says, id=says[:40])


CASES = [
    case("log.csv", TWO, "--stages", "a,c", "--costs", "1,2", says="stages: got 'c'"),
    case("log.csv", TWO, "--stages", "a", "--costs", "1", says="at least two different names"),
    case("log.csv", TWO, "--stages", "a,a", "--costs", "1,2", says="at least two different names"),
    case("log.csv", TWO, "--costs", "1,2", says="stages: not given; name the columns"),
    case("log.csv", TWO, "--stages", "a,b", says="costs: not given for a, b"),
    case("log.csv", TWO, "--stages", "a,b", "--costs", "1", says="2 numbers, one for each of a, b"),
    case("log.csv", TWO, "--stages", "a,b", "--costs", "1,-2", says="costs[1]: got -2.0"),
    case("log.csv", TWO, "--stages", "a,b", "--costs", "1,two", says="each stage's own cost"),
    case("log.csv", TWO, "--stages", "a,b", "--costs", "1,nan", says="costs[1]: got nan"),
    case("log.csv", TWO, *FLAGS, "--mistake-cost", "0", says="mistake_cost: got 0.0"),
    case("log.csv", TWO, *FLAGS, "--mistake-cost", "-1", says="mistake_cost: got -1.0"),
    case("log.csv", TWO, *FLAGS, "--truth", "t", says="truth: got 't', but need a column"),
    case("log.csv", TWO, *FLAGS, "--truth", "a", says="not one of the stages"),
    case("log.csv", TWO, *FLAGS, "--segment", "s", says="segment: got 's', but need a column"),
    case("log.csv", TWO, *FLAGS, "--level", "2", says="level: got 2.0"),
    case("log.csv", TWO, *FLAGS, "--layout", "tall", says="layout: got 'tall'"),
    case("log.csv", TWO, *FLAGS, "--layout", "long", says="item: got 'item', but need a column"),
    case("log.csv", "", *FLAGS, says="the file is empty"),
    case("log.csv", "a,b\n", *FLAGS, says="there are no rows"),
    case("log.csv", "a,b\nx,\n,y\n", *FLAGS, "--abstentions", "leave-out",
         says="no item was answered by both"),
    case("log.csv", "a,b\n0,pos\n1,neg\n", *FLAGS, says="never give the same label"),
    case("log.csv", "a,b\nx,x\nx,x,x\n", *FLAGS, says="more values than the header"),
    case("log.csv", b"a,b\nx,x\n\xe9,x\n", *FLAGS, says="save it as UTF-8"),
    case("log.csv", b"PAR1xxxxPAR1", *FLAGS, says="named as CSV, but this is a Parquet file"),
    case("log.csv", '{"a": 1}\n', *FLAGS, says="named as CSV, but this is JSON"),
    case("log.csv", b"a,b\0\1\2", *FLAGS, says="no text at all"),
    case("log.csv", gzip.compress(b"a,b"), *FLAGS, says="packed (gzip or zip) file"),
    case("log.parquet", TWO, *FLAGS, says="named as Parquet, but this is other text"),
    case("log.parquet", b"PAR1" + b"x" * 99, *FLAGS, says="this Parquet file is cut off"),
    case("log.parquet", b"PAR1" + b"x" * 99 + b"PAR1", *FLAGS, says="cannot be read"),
    case("log.jsonl", TWO, *FLAGS, says="named as JSON lines, but this is other text"),
    case("log.jsonl", '\ufeff{"a":"x","b":"y"}\n', *FLAGS, says="begins with a byte order mark"),
    case("log.jsonl", '{"a": 1, "b":\n', *FLAGS, says="cannot be read"),
    case("log.jsonl", '{"a": [1], "b": [2]}\n', *FLAGS, says="not lists or bytes"),
    case("log.xlsx", b"x", *FLAGS, says="a .csv, .csv.gz, .tsv, .parquet or .jsonl file"),
    case("log.json", "[1, 2]", *FLAGS, says="evidence: got [1, 2], but need a JSON object"),
    case("log.csv", "a,a:cost,b,b:cost\nx,1,x,two\nx,1,x,3\n", says="costs of b: not all are"),
    case("log.csv", "a,a:cost,b,b:cost\nx,1,x,-2\nx,1,x,3\n", says="costs of b: got -2.0"),
    case("log.csv", "a,a:cost,b,b:cost\nx,1,x,\nx,1,x,\n", says="costs of b: the log has no two"),
    case("log.csv", "a,a:cost,b\nx,1,x\n", "--stages", "a,b", says="costs: not given for b"),
    case("log.csv", "item,stage,output\n1,a,x\n", "--stages", "a,q", "--costs", "1,2",
         says="stages: got 'q', but need one of those in the log: a"),
    case("log.csv", "item,stage,output\n1,a,x\n", "--costs", "1,2", says="stages: not given"),
    case("log.csv", "item,stage,output\n1,a,x\n1,b,x\n2,a,x\n2,,x\n", *FLAGS,
         says="rows with nothing in column 'stage'"),
    case("log.csv", TWO.encode("utf-16"), *FLAGS, says="this is text in UTF-16; save it as UTF-8"),
    case("log.csv", TWO.encode("utf-16-le"), *FLAGS, says="text in UTF-16"),
    case("log.csv", TWO.encode("utf-16-be"), *FLAGS, says="text in UTF-16"),
    case("log.csv", "a, b\nx, x\ny, x\n", *FLAGS, says="need a column of the log: a, ' b'"),
    case("log.csv", TWO, "--stages", "a,b", "--costs", "1e308,1e308",
         says="costs[1]: got inf, but need a finite number"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "flags", "says"), CASES)
def test_one_line_and_status_two(name, content, flags, says, tmp_path, cli):
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(data)
    answer = cli("analyze", tmp_path / name, *flags)
    assert answer.status == 2, answer
    assert answer.out == ""
    assert says in answer.err
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("stopwise: ")


def refused(answer, says):
    assert answer.status == 2
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_truncated_parquet(log, tmp_path, cli):
    log.write_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for length in (4, len(whole) // 2, len(whole) - 1):
        (tmp_path / "log.parquet").write_bytes(whole[:length])
        answer = cli(
            "analyze", tmp_path / "log.parquet", "--stages", "small,large", "--costs", "1,2"
        )
        refused(answer, "cut off")
    damaged = whole[: len(whole) // 3] + bytes(200) + whole[len(whole) // 3 + 200 :]
    (tmp_path / "log.parquet").write_bytes(damaged)
    answer = cli("analyze", tmp_path / "log.parquet", "--stages", "small,large", "--costs", "1,2")
    assert answer.status in (0, 2)  # damage may hit a column that is not read
    assert answer.err.count("\n") <= 1


def test_ten_thousand_distinct_outputs(tmp_path, cli):
    frame = pl.DataFrame({"a": [f"text {k}" for k in range(10_000)], "b": ["x"] * 10_000})
    frame.write_csv(tmp_path / "log.csv")
    refused(cli("analyze", tmp_path / "log.csv", *FLAGS), "10,000 or more different outputs")
    frame = pl.DataFrame({"a": [k / 7 for k in range(10_000)], "b": [k / 7 for k in range(10_000)]})
    frame.write_parquet(tmp_path / "log.parquet")
    refused(cli("analyze", tmp_path / "log.parquet", *FLAGS), "free text or scores")
    answer = cli("analyze", tmp_path / "log.parquet", *FLAGS, "--max-labels", 20_000)
    assert answer.status == 0


def test_mixed_types_are_read_as_text_where_that_makes_sense(tmp_path, cli):
    (tmp_path / "log.jsonl").write_text('{"a": 1, "b": "1"}\n{"a": "x", "b": "x"}\n{"b": "1"}\n')
    assert cli("analyze", tmp_path / "log.jsonl", *FLAGS).status == 0


def test_places_that_are_no_files(tmp_path, cli):
    refused(cli("analyze", tmp_path / "none.csv", *FLAGS), "there is no such file")
    refused(cli("analyze", tmp_path / "*.csv", *FLAGS), "there is no such file")
    refused(cli("analyze", f"sqlite:///{tmp_path}/log.db", *FLAGS), "with --sql 'SELECT ...'")
    refused(cli("analyze", tmp_path, *FLAGS), "this is a folder")
    refused(cli("analyze"), "no log given")
    refused(cli("analyze", "--example", tmp_path / "log.csv"), "not both")
    (tmp_path / "log.csv").write_text(TWO)
    refused(cli("analyze", tmp_path / "log.csv", *FLAGS, "--report", tmp_path / "log.csv/r.html"),
            "cannot be written")  # fmt: skip
    refused(cli("analyze", tmp_path / "log.csv", *FLAGS, "--settings", tmp_path / "no.toml"),
            "there is no such file")  # fmt: skip
    (tmp_path / "s.toml").write_text("stages = [")
    refused(cli("analyze", tmp_path / "log.csv", "--settings", tmp_path / "s.toml"),
            "this is not TOML")  # fmt: skip


def test_blank_or_foreign_truth(tmp_path, cli):
    (tmp_path / "log.csv").write_text("a,b,t\nx,x,\ny,x,\n")
    refused(cli("analyze", tmp_path / "log.csv", *FLAGS, "--truth", "t"), "blank in every row")
    (tmp_path / "log.csv").write_text("a,b,t\nx,x,1\ny,x,2\n")
    refused(cli("analyze", tmp_path / "log.csv", *FLAGS, "--truth", "t"), "same labels")


def test_the_installed_command_shows_no_traceback(tmp_path):
    (tmp_path / "log.csv").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "stopwise", "analyze", str(tmp_path / "log.csv"), *FLAGS],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_without_polars_it_says_how_to_get_it(tmp_path, cli, monkeypatch):
    (tmp_path / "log.csv").write_text(TWO)
    monkeypatch.setitem(sys.modules, "polars", None)
    refused(cli("analyze", tmp_path / "log.csv", *FLAGS), "pip install 'stopwise[logs]'")
