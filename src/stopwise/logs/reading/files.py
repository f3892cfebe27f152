"""Opening log files and frames: what a file is, not what its name says; errors in one line."""

from __future__ import annotations

import atexit
import codecs
import glob
import gzip
import shutil
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from stopwise.checks import StopwiseError, fail
from stopwise.lazy import load
from stopwise.logs.reading.short_rows import blank_lines_at_end

if TYPE_CHECKING:
    import polars as pl

KINDS = {
    ".csv": "CSV", ".tsv": "CSV", ".txt": "CSV",
    ".parquet": "Parquet", ".pq": "Parquet",
    ".jsonl": "JSON lines", ".ndjson": "JSON lines",
}  # fmt: skip
_AUDIT_FILES = (".to-label.csv", ".to-label.html", ".audit.json")
ACCEPTED = (
    "a .csv, .csv.gz, .tsv, .parquet or .jsonl file (or several: 'logs/*.parquet', or a list), '-'"
    " for standard input, a pandas or polars frame, or what a live learner keeps (a RoundLog, a"
    " SQLite or PostgreSQL store, a snapshot)"
)


def need_polars() -> Any:
    """The polars module, or how to get it."""
    return load("reading logs", "polars")


@dataclass(frozen=True)
class TextFiles:
    """The CSV files of a log, which are looked at again where a value may be missing."""

    paths: tuple[str, ...]
    separator: str


def scan(log: object) -> tuple[pl.LazyFrame, str, TextFiles | None]:
    """A lazy frame over a log, the name to call it by in messages, and its files if it is CSV.

    >>> import polars
    >>> frame, name, _ = scan(polars.DataFrame({"a": [1]}))
    >>> name, frame.collect().height
    ('log', 1)
    """
    polars = need_polars()
    if isinstance(log, polars.LazyFrame):
        return log, "log", None
    if isinstance(log, polars.DataFrame):
        return log.lazy(), "log", None
    if type(log).__module__.partition(".")[0] == "pandas":
        return _from_pandas(log), "log", None
    several = log if isinstance(log, list | tuple) else [log]
    if not several or not all(isinstance(one, str | Path) for one in several):
        raise fail("log", log, ACCEPTED)
    if list(map(str, several)) == ["-"]:
        files, path = [_spooled(sys.stdin.buffer)], "standard input"
    else:
        files, path = files_of(log), ", ".join(map(str, several))
        _refuse_twice(files)
    kinds = {_kind(Path(file), path if path == "standard input" else file) for file in files}
    if len(kinds) > 1:
        raise fail("log", path, "files of one kind")
    kind = kinds.pop()
    if kind == "CSV":
        _refuse_other_headers(files)
    if kind == "Parquet":
        return polars.scan_parquet(files, glob=False), path, None
    if kind == "JSON lines":
        return polars.scan_ndjson(files, infer_schema_length=None), path, None
    separator = _separator(Path(files[0]))
    return _text_rows(files, separator, path), path, TextFiles(tuple(files), separator)


def files_of(log: object) -> list[str]:
    """The files that a log is read from; none where it is a frame or comes from elsewhere.

    >>> files_of(["a.csv", "b.csv", "a.to-label.csv"])
    ['a.csv', 'b.csv']
    """
    several = log if isinstance(log, list | tuple) else [log]
    if not all(isinstance(one, str | Path) for one in several):
        return []
    found = [file for one in several for file in _files(str(one))]
    # What an audit writes beside a log is no part of it.
    return [file for file in found if not file.endswith(_AUDIT_FILES)] or found


def _files(path: str) -> list[str]:
    """The files that a name or a pattern stands for."""
    if not any(sign in path for sign in "*?["):
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]  # noqa: PTH207


def without_files(log: object, *written: Path | None) -> object:
    """The same log, without files among its own that a command writes; nothing may be left of it.

    >>> without_files(["a.csv", "labels.csv"], Path("labels.csv"))
    ['a.csv']
    """
    files = files_of(log)
    places = {path.resolve(): path for path in written if path is not None}
    kept = [file for file in files if Path(file).resolve() not in places]
    if files and not kept:
        raise _is_the_log(places[Path(files[0]).resolve()])
    return log if len(kept) == len(files) else kept


def refuse_log_file(log: object, written: Path) -> None:
    """A command must not write its result over the log.

    >>> refuse_log_file("log.csv", Path("./log.csv"))
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: log.csv: this is the log, which would be written over; ...
    """
    if written.resolve() in {Path(file).resolve() for file in files_of(log)}:
        raise _is_the_log(written)


def _is_the_log(path: Path) -> StopwiseError:
    return StopwiseError(f"{path}: this is the log, which would be written over; name another file")


def _refuse_twice(files: list[str]) -> None:
    """A file that is read twice would make things certain that are not."""
    seen = set()
    for file in files:
        real = Path(file).resolve()
        if real in seen:
            raise StopwiseError(f"{file}: this file is given twice; each of its rows counts once")
        seen.add(real)


def _spooled(stream: BinaryIO) -> str:
    """Standard input as a file, so that it can be read more than once; it goes with the process."""
    start = stream.read(65536)
    if not start:
        raise StopwiseError("standard input: it is empty; need a header and one row for each item")
    found = _content(gunzip(start) if start[:2] == b"\x1f\x8b" else start)
    ending = {"Parquet": ".parquet", "JSON lines": ".jsonl"}.get(found, ".csv")
    with tempfile.NamedTemporaryFile(
        prefix="stopwise-", suffix=ending + (".gz" if start[:2] == b"\x1f\x8b" else ""),
        delete=False,
    ) as file:  # fmt: skip
        atexit.register(Path(file.name).unlink, missing_ok=True)
        file.write(start)
        shutil.copyfileobj(stream, file)
    return file.name


def gunzip(start: bytes) -> bytes:
    """As much as can be read of the beginning of a packed file.

    >>> import gzip
    >>> gunzip(gzip.compress(b"a,b")[:-4])
    b'a,b'
    """
    try:
        return zlib.decompressobj(wbits=31).decompress(start)
    except zlib.error:
        return b""


def _refuse_other_headers(files: list[str]) -> None:
    """Files that are read as one must have the same columns in the same order."""
    headers: dict[str, str] = {}
    for file in files:
        headers.setdefault(_header(Path(file)), file)
    if len(headers) > 1:
        one, other = list(headers.values())[:2]
        raise StopwiseError(f"{other}: its header is not that of {one}; files read as one need one")


def collect(query: pl.LazyFrame, name: str) -> pl.DataFrame:
    """Run a query in the streaming engine; what is wrong with the file is one line."""
    polars = need_polars()
    try:
        frame = query.collect(engine="streaming")
    except (polars.exceptions.PolarsError, OSError) as error:
        raise StopwiseError(_explain(name, error)) from None
    except BaseException as error:
        # A panic inside polars derives from BaseException and is no bug of the user's session.
        if type(error).__name__ != "PanicException":
            raise
        raise StopwiseError(_explain(name, error)) from None
    collected: pl.DataFrame = frame
    return collected


def column_types(frame: pl.LazyFrame, name: str) -> dict[str, Any]:
    """Names and types of the columns."""
    polars = need_polars()
    try:
        types: dict[str, Any] = dict(frame.collect_schema())
    except (polars.exceptions.PolarsError, OSError) as error:
        raise StopwiseError(_explain(name, error)) from None
    return types


def _explain(name: str, error: BaseException) -> str:
    text = " ".join(str(error).split("\n\n")[0].split()) or type(error).__name__
    hint = ""
    if "utf-8" in text.lower():
        hint = "; save it as UTF-8"
    elif "fields" in text:
        hint = "; a row has more values than the header has columns (quote texts with commas)"
    elif "parquet" in text.lower() or "thrift" in text.lower():
        hint = "; the Parquet file is damaged or cut off: write or copy it again"
    return f"{name}: cannot be read ({text[:160]}){hint}"


def _kind(path: Path, name: str) -> str:
    """The kind that the name promises, checked against the first bytes."""
    if path.is_dir():
        raise StopwiseError(f"{name}: this is a folder; give its files, such as '{name}/*.parquet'")
    if not path.exists():
        if name.startswith(("sqlite://", "duckdb://")):
            raise StopwiseError(f"{name}: a database; say what to read with --sql 'SELECT ...'")
        raise StopwiseError(f"{name}: there is no such file")
    packed = path.suffix.lower() == ".gz"
    kind = KINDS.get((Path(path.stem) if packed else path).suffix.lower())
    if packed and kind != "CSV":
        kind = None
    if kind is None:
        raise fail("log", name, ACCEPTED)
    try:
        with path.open("rb") as file:
            start = file.read(65536)
            size = file.seek(0, 2)
            file.seek(max(size - 4, 0))
            end = file.read(4)
    except OSError as error:
        raise StopwiseError(f"{name}: cannot be read ({error.strerror})") from None
    if size == 0:
        raise StopwiseError(f"{name}: the file is empty; need a header and one row for each item")
    if packed:
        if start[:2] != b"\x1f\x8b":
            raise StopwiseError(f"{name}: named .gz, but not packed; give it its right ending")
        start = gunzip(start)
    found = _content(start)
    if found == "UTF-16":
        raise StopwiseError(f"{name}: this is text in UTF-16; save it as UTF-8")
    if found != kind and not (kind == "CSV" and found == "text"):
        raise StopwiseError(
            f"{name}: named as {kind}, but this is {_ARTICLE[found]}; give it its right ending"
            " or save it again"
        )
    if kind == "JSON lines" and start.startswith(codecs.BOM_UTF8):
        raise StopwiseError(f"{name}: begins with a byte order mark; save it as UTF-8 without one")
    if kind == "Parquet" and end not in (b"PAR1", b"PARE"):
        raise StopwiseError(f"{name}: this Parquet file is cut off; write or copy it again")
    return kind


_ARTICLE = {
    "Parquet": "a Parquet file",
    "JSON lines": "JSON",
    "text": "other text",
    "a packed file": "a packed (gzip or zip) file",
    "binary": "no text at all",
}


def _content(start: bytes) -> str:
    if start[:4] in (b"PAR1", b"PARE"):
        return "Parquet"
    if start[:2] in (b"\x1f\x8b", b"PK"):
        return "a packed file"
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or _every_second_is_none(start):
        return "UTF-16"
    if b"\0" in start:
        return "binary"
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "JSON lines"
    return "text"


def _every_second_is_none(start: bytes) -> bool:
    """Whether this looks like Latin text in UTF-16 without its mark: "a", nothing, ",", nothing."""
    line = start[:64]
    return len(line) >= 4 and any(not any(line[at::2]) and all(line[1 - at :: 2]) for at in (0, 1))


def _header(path: Path) -> str:
    """The first line of a text file, packed or not."""
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.readline(1_000_000).decode("utf-8", errors="replace").strip("\r\n")
    except (OSError, EOFError, zlib.error) as error:
        raise StopwiseError(f"{path}: cannot be read ({error})") from None


def _text_rows(files: list[str], separator: str, name: str) -> pl.LazyFrame:
    """The rows of text files. Blank lines at the end of one are none; a row of blanks is one."""
    polars = need_polars()

    def rows_of(these: list[str]) -> pl.LazyFrame:
        frame: pl.LazyFrame = polars.scan_csv(
            these, infer_schema=False, separator=separator, glob=False
        )
        return frame

    blank = [blank_lines_at_end(Path(file)) for file in files]
    if not any(blank):
        return rows_of(files)
    parts = []
    for file, lines in zip(files, blank, strict=True):
        part = rows_of([file])
        if lines:
            part = part.head(collect(part.select(polars.len()), name).item() - lines)
        parts.append(part)
    together: pl.LazyFrame = polars.concat(parts)
    return together


def _separator(path: Path) -> str:
    """The sign that splits the header line most often, outside of quotes."""
    bare = "".join(_header(path).split('"')[::2])
    return max(",;\t|", key=bare.count)


def _from_pandas(frame: Any) -> pl.LazyFrame:
    """Through plain Python lists, so that pyarrow need not be installed."""
    polars = need_polars()
    columns: dict[str, pl.Series] = {}
    for name in frame.columns:
        if list(map(str, frame.columns)).count(str(name)) > 1:
            raise fail("log: columns", str(name), "each name once; rename or drop the others")
        column = frame[name]
        values = [
            None if gap else value
            for value, gap in zip(column.tolist(), column.isna().tolist(), strict=True)
        ]
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            values = [None if value is None else str(value) for value in values]
        columns[str(name)] = polars.Series(str(name), values, strict=False)
    lazy: pl.LazyFrame = polars.DataFrame(columns).lazy()
    return lazy
