"""How a file is read and written whole.

Read: its text, or one line that says what is wrong. Written: either the old one or the new one is
there, never half of it.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from stopwise.checks import StopwiseError, fail


def as_path(what: str, path: object) -> Path:
    """The path that a user gave, as text or as a `Path`.

    >>> as_path("log", 3)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: log: got 3, but need the name of a file
    """
    if isinstance(path, (str, os.PathLike)):
        return Path(path)
    raise fail(what, path, "the name of a file")


def read_whole(path: str | Path, what: str = "") -> str:
    """The text of a file (UTF-8), or an error of one line that says what is wrong with it.

    Args:
        what: what the file is, to stand before its name in the error.

    >>> read_whole("nowhere.json", "rule")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: rule nowhere.json: there is no such file
    """
    source = as_path(what or "path", path)
    named = f"{what} {path}" if what else f"{path}"
    try:
        return source.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StopwiseError(f"{named}: there is no such file") from None
    except IsADirectoryError:
        raise StopwiseError(f"{named}: this is a folder, but need a file") from None
    except UnicodeDecodeError:
        raise StopwiseError(f"{named}: this is not text in UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise StopwiseError(f"{named}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # a name that no file can have
        raise StopwiseError(f"{named}: cannot be read ({error})") from None


def write_whole(path: str | Path, data: str | bytes, *, private: bool = False) -> None:
    """Write beside the target, flush to disk, rename over it, flush the folder.

    A link is followed, so that it stays one; an existing file keeps its mode; a device or a pipe,
    such as /dev/stdout, is written to and never replaced. The name of the temporary file cannot be
    guessed, and it is never opened through a link. Text becomes UTF-8.

    Args:
        private: make a new file readable by its owner alone.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> write_whole(target, "item,label")
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('item,label', 1)
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    given = as_path("path", path)
    target = Path(os.path.realpath(given))
    try:
        if _is_device(given):
            given.write_bytes(content)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content, _mode(target, private))
        flush_folder(target.parent)
    except OSError as error:
        raise StopwiseError(f"{path}: cannot be written ({error.strerror})") from None


def _is_device(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _mode(target: Path, private: bool) -> int | None:
    """The mode to set: that of the file there, owner only, or None for what the system gives."""
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        return 0o600 if private else None


def _replace(target: Path, content: bytes, mode: int | None) -> None:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)  # the umask may have taken some of it
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def flush_folder(folder: Path) -> None:
    """Make a rename or a new file in a folder survive a power cut, where the system can.

    >>> flush_folder(Path())
    """
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
