"""Compiled code is kept on disk, and must not outlive its source.

numba renews a cached function when its own file changes, but not when a file it calls, or takes a
constant from, does. So all sources that are compiled are fingerprinted together, and what was
compiled from others is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

_KERNELS = Path(__file__).parent

COMPILED_FOLDERS = (_KERNELS, _KERNELS.parents[1] / "policies")
"""Where compiled sources lie: the kernels, and the rules whose functions and constants they use."""


def forget_stale_code(folders: Sequence[Path] = COMPILED_FOLDERS) -> None:
    """Remove numba's cache files in the folders and below, unless made from the sources there.

    The fingerprint of the sources is kept in the first folder.

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
    kept = folders[0] / "__pycache__" / "kernels.sha256"
    # A folder that cannot be written has no cache of its own to go stale: numba keeps it elsewhere,
    # under a name that carries the place and the time of the source.
    with contextlib.suppress(OSError):
        if kept.exists() and kept.read_text() == digest:
            return
        for folder in folders:
            for pattern in ("*.nbi", "*.nbc"):
                for compiled in folder.rglob(f"__pycache__/{pattern}"):
                    compiled.unlink(missing_ok=True)
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(digest)


def fingerprint(folders: Sequence[Path]) -> str:
    """A digest of all sources in the folders and below, with their places."""
    digest = hashlib.sha256()
    for folder in folders:
        for source in sorted(folder.rglob("*.py")):
            digest.update(str(source.relative_to(folder)).encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()
