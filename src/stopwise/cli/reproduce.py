"""`stopwise reproduce`: the paper."""

from __future__ import annotations


def command() -> None:
    """Reproduce the paper."""
