"""A row with fewer values than the header has columns is refused, wherever it stands."""

from __future__ import annotations

import csv
import gzip
import io

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stopwise.checks import StopwiseError
from stopwise.logs import analyze
from stopwise.logs.reading import short_rows
from stopwise.logs.reading.short_rows import first_short_row, may_be_short

SETTINGS = {"stages": ["a", "b"], "costs": [1, 2], "mistake_cost": 100}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a,b,c\nx,y,\nx,y\n", 3, "2 values"),
        ("a,b,c\nx,y,\nx\n", 3, "1 value,"),
        ("a,b,c\nx,y,\nx,y", 3, "2 values"),
        ('a,b,c\n"x\n",y,\nx,"y,"\n', 4, "2 values"),
        ("a,b,c\r\nx,y,\r\n\r\nx,y,z\r\n", 3, "is blank"),
    ],
)
def test_short_rows_are_refused_with_their_line(tmp_path, text, line, says):
    for path, content in (
        (tmp_path / "log.csv", text.encode()),
        (tmp_path / "log.csv.gz", gzip.compress(text.encode())),
    ):
        path.write_bytes(content)
        with pytest.raises(StopwiseError, match=f"line {line} .*{says}") as refused:
            analyze(path, **SETTINGS)
        assert "header has 3 columns" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\nx,y,\nx,x,\n",
        "a,b,c\nx,y,\nx,x,",
        "a,b,c\nx,y,\nx,x,\n\n\n",
        "a,b,c\r\nx,y,\r\nx,x,\r\n\r\n",
        'a,b,c\nx,y,"p\n\nq"\nx,x,\n',
    ],
)
def test_blank_values_and_blank_lines_at_the_end_are_no_short_rows(tmp_path, text):
    (tmp_path / "log.csv").write_bytes(text.encode())
    assert analyze(tmp_path / "log.csv", **SETTINGS).to_dict()["rows"] == 2


def test_a_column_may_be_called_rows(tmp_path):
    (tmp_path / "log.csv").write_text("a,b,rows\nx,y,1\nx,x,2\n")
    assert analyze(tmp_path / "log.csv", **SETTINGS).to_dict()["rows"] == 2


cells = st.text(alphabet='ab", \n', max_size=4)
tables = st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(tables, st.integers(1, 7))
def test_the_quick_look_misses_no_short_row(tmp_path_factory, rows, chunk):
    """Written by the standard library, and held against its reader; chunks of a few bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in ([["h"] * 3], rows):
        writer.writerows(row)
    path = tmp_path_factory.mktemp("short") / "log.csv"
    path.write_bytes(text.getvalue().encode())
    short = [row for row in csv.reader(io.StringIO(text.getvalue(), newline="")) if len(row) < 3]
    before, short_rows._CHUNK = short_rows._CHUNK, chunk
    try:
        quick = may_be_short(path, ",", 3)
    finally:
        short_rows._CHUNK = before
    assert quick or not short
    if all(row for row in short):
        assert (first_short_row(path, ",", 3) is not None) == bool(short)
