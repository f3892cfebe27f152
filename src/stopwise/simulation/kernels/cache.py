"""Compiled code is kept on disk, and must not outlive its source.

numba renews a cached function when its own file changes, but not when a file it calls, or takes a
constant from, does. So all sources that are compiled are fingerprinted together, and what was
compiled from others is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

_KERNELS = Path(__file__).parent

COMPILED_FOLDERS = (_KERNELS, _KERNELS.parents[1] / "policies")
"""Where compiled sources lie: the kernels, and the rules whose functions and constants they use."""


def forget_stale_code(folders: Sequence[Path] = COMPILED_FOLDERS) -> None:
    """Remove numba's cache files in the folders and below, unless made from the sources there.

    The fingerprint of the sources is kept with what was compiled from the first folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "rules" / "__pycache__").mkdir(parents=True)
    >>> old = folder / "rules" / "__pycache__" / "rule.nbc"
    >>> _ = old.write_text("compiled"), (folder / "rules" / "rule.py").write_text("x = 1")
    >>> forget_stale_code([folder])
    >>> old.exists()
    False
    """
    digest = fingerprint(folders)
    caches = [cache for folder in folders for cache in _caches(folder)]
    kept = caches[0] / "kernels.sha256"
    # A folder that cannot be written keeps no cache, and what lies there is not edited either.
    with contextlib.suppress(OSError):
        if kept.exists() and kept.read_text() == digest:
            return
        for cache in caches:
            for pattern in ("*.nbi", "*.nbc"):
                for compiled in cache.glob(pattern):
                    compiled.unlink(missing_ok=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(digest)


def _caches(folder: Path) -> list[Path]:
    """Where numba keeps what it compiles from a folder and those below: beside it, or as told."""
    places = [folder, *(place for place in sorted(folder.rglob("*")) if place.is_dir())]
    sources = [place.absolute() for place in places if place.name != "__pycache__"]
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    if not elsewhere:
        return [place / "__pycache__" for place in sources]
    # numba's own names: of the folder, and of where it lies.
    digests = [hashlib.sha1(str(place).encode(), usedforsecurity=False) for place in sources]
    return [
        Path(elsewhere) / f"{place.name}_{digest.hexdigest()}"
        for place, digest in zip(sources, digests, strict=True)
    ]


def fingerprint(folders: Sequence[Path]) -> str:
    """A digest of all sources in the folders and below, with their places."""
    digest = hashlib.sha256()
    for folder in folders:
        for source in sorted(folder.rglob("*.py")):
            digest.update(str(source.relative_to(folder)).encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()
