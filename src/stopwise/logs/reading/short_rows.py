"""Rows of a CSV file with fewer values than the header has columns.

The reader fills such a row up with blanks, which look like stages that were not called: a value
lost in the middle moves all that follow one column to the left. Blanks and missing values look
alike once they are read, so the file itself is looked at; only where the last column has blanks
at all, since a short row leaves one there. A quick count of separators says whether a row may be
short; then the slow, exact reader of the standard library says which.
"""

from __future__ import annotations

import csv
import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from stopwise.checks import StopwiseError
from stopwise.logs.formatting import counted

_CHUNK = 1 << 24
_TAIL = 1 << 20
"""Where blank lines at the end are looked for, unless the file is packed."""

_NEWLINE, _QUOTE = ord("\n"), ord('"')


def refuse_short_rows(file: str, separator: str, columns: int, name: str | None = None) -> None:
    """Refuse the first row with too few values, with its line number.

    Lines without anything in them are no rows; they are refused too, except at the end.

    Args:
        name: what to call the file.
    """
    path = Path(file)
    if not may_be_short(path, separator, columns):
        return
    found = first_short_row(path, separator, columns)
    if found is not None:
        line, values = found
        has = f"has {counted(values, 'value')}" if values else "is blank"
        raise StopwiseError(
            f"{name or file}: line {line} {has}, but the header has {columns} columns; a row needs"
            " a value (or nothing between two separators) for each of them"
        )


def first_short_row(path: Path, separator: str, columns: int) -> tuple[int, int] | None:
    r"""The line and the number of values of the first short row; None if there is none.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_bytes(b'a,b,c\n1,"x\n,y",\n1,2\n')
    >>> first_short_row(path, ",", 3)
    (4, 2)
    """
    before = csv.field_size_limit(sys.maxsize)
    try:
        with _opened(path) as file:
            reader = csv.reader(map(_line, file), delimiter=separator)
            start, blank = 1, None
            for row in reader:
                if row and blank is not None:
                    return blank, 0
                if not row:
                    blank = blank or start
                elif len(row) < columns:
                    return start, len(row)
                start = reader.line_num + 1
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise StopwiseError(f"{path}: cannot be read ({error})") from None
    finally:
        csv.field_size_limit(before)
    return None


def may_be_short(path: Path, separator: str, columns: int) -> bool:
    """Whether some row has too few separators outside of quotes: never False if one is short."""
    open_quote = separators = 0
    last = _NEWLINE
    edges = np.array([_NEWLINE, _QUOTE, ord(separator)], dtype=np.uint8)
    for chunk in _chunks(path):
        signs = np.frombuffer(chunk, dtype=np.uint8)
        quotes = signs == _QUOTE
        if quotes.any():
            inside = (np.cumsum(quotes, dtype=np.int64) + open_quote) % 2
            # A quote that opens stands at the start of a value. Elsewhere it is plain text, and
            # only the exact reader can tell what it does to the rows.
            opening = np.flatnonzero(quotes & (inside == 1))
            before = np.where(opening > 0, signs[opening - 1], last)
            if not np.isin(before, edges).all():
                return True
            open_quote = int(inside[-1])
            last = int(signs[-1])
            signs = np.where(inside == 0, signs, 0)
        else:
            last = int(signs[-1])
            if open_quote:
                continue
        ends = np.flatnonzero(signs == _NEWLINE)
        places = np.flatnonzero(signs == ord(separator))
        per_row = np.diff(np.searchsorted(places, ends), prepend=0, append=len(places))
        per_row[0] += separators
        if (per_row[:-1] < columns - 1).any():
            return True
        separators = int(per_row[-1])
    return last != _NEWLINE and separators < columns - 1


def blank_lines_at_end(path: Path) -> int:
    r"""How many lines without anything in them a file ends with.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_bytes(b"a,b\n1,2\n,\n\r\n\n")
    >>> blank_lines_at_end(path)
    2
    """
    line_ends = 0
    for chunk in _chunks(path, None if _is_packed(path) else _TAIL):
        rest = chunk.rstrip(b"\r\n")
        line_ends = chunk.count(b"\n", len(rest)) + (0 if rest else line_ends)
    return max(line_ends - 1, 0)


def _line(line: bytes) -> str:
    """A line for the exact reader, which takes no carriage return within it."""
    return line.decode("utf-8", errors="replace").rstrip("\r\n").replace("\r", " ") + "\n"


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb") if _is_packed(path) else path.open("rb"))


def _chunks(path: Path, last: int | None = None) -> Iterator[bytes]:
    """The bytes of a file, or only its last ones."""
    try:
        with _opened(path) as file:
            if last is not None:
                file.seek(max(file.seek(0, 2) - last, 0))
            while chunk := file.read(_CHUNK):
                yield chunk
    except (OSError, EOFError, zlib.error) as error:
        raise StopwiseError(f"{path}: cannot be read ({error})") from None
