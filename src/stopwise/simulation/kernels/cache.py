"""Compiled code is kept on disk, and must not outlive its source.

numba renews a cached function when its own file changes, but not when a file it calls does. So the
kernels' sources are fingerprinted together, and what was compiled from others is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path


def forget_stale_code(folder: Path) -> None:
    """Remove numba's cache files in `folder` unless they were made from the sources that are there.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "__pycache__").mkdir()
    >>> old = folder / "__pycache__" / "rule.nbc"
    >>> _ = old.write_text("compiled"), (folder / "rule.py").write_text("x = 1")
    >>> forget_stale_code(folder)
    >>> old.exists()
    False
    """
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.read_bytes())
    kept = folder / "__pycache__" / "kernels.sha256"
    # A folder that cannot be written has no cache of its own to go stale: numba keeps it elsewhere,
    # under a name that carries the place and the time of the source.
    with contextlib.suppress(OSError):
        if kept.exists() and kept.read_text() == digest.hexdigest():
            return
        for pattern in ("*.nbi", "*.nbc"):
            for compiled in kept.parent.glob(pattern):
                compiled.unlink(missing_ok=True)
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(digest.hexdigest())
