"""The files shipped with the package, each verified against its checksum when it is read."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from stopwise.checks import StopwiseError

CHECKSUMS = "SHA256SUMS"


def data_folder() -> Traversable:
    """Where the shipped files are.

    >>> (data_folder() / "ATTRIBUTION.md").is_file()
    True
    """
    return files("stopwise.paper") / "data"


def parse_checksums(text: str) -> dict[str, str]:
    """Read lines of "digest  file name", as `sha256sum` writes them.

    >>> parse_checksums("ab12  pima.csv")
    {'pima.csv': 'ab12'}
    """
    sums: dict[str, str] = {}
    for line in filter(None, text.splitlines()):
        digest, _, name = line.partition("  ")
        if not name or name in sums:
            raise StopwiseError(f"{CHECKSUMS}: cannot read the line {line!r}")
        sums[name] = digest
    return sums


def verified_text(folder: Traversable, name: str) -> str:
    """The text of a shipped file, or an error if it is not the file that was shipped."""
    expected = parse_checksums((folder / CHECKSUMS).read_text(encoding="utf-8")).get(name)
    if expected is None:
        raise StopwiseError(f"{name}: {CHECKSUMS} does not list this file")
    try:
        content = (folder / name).read_bytes()
    except FileNotFoundError:
        raise StopwiseError(f"{name}: missing from the installation; install it again") from None
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise StopwiseError(
            f"{name}: its SHA-256 is {found[:16]}..., but the shipped file has {expected[:16]}...;"
            " the file was changed or damaged, install it again"
        )
    return content.decode("utf-8")


@cache
def read_data(name: str) -> str:
    """A shipped file, read and verified once.

    >>> read_data("pima.csv").splitlines()[0]
    'pregnancies,glucose,blood_pressure,skin_thickness,insulin,bmi,pedigree,age,diabetes'
    """
    return verified_text(data_folder(), name)


def read_toml(name: str) -> dict[str, Any]:
    """A shipped TOML file as a table.

    >>> sorted(read_toml("instances.toml"))
    ['bsc', 'heart', 'pima']
    """
    return tomllib.loads(read_data(name))
