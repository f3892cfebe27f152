"""Programs: Python source that means the same to the parser."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Hashable
from typing import Any

from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator
from stopwise.live.comparing.fences import fenced


def python_source() -> Comparator:
    """Python source agrees when its syntax tree is the same.

    Comments, blank lines, quotes and spaces do not matter; names and docstrings do. If there is one
    fence of three backticks, the source is what stands in it. What does not parse is an abstention.

    >>> python_source().agrees("x = f( 1 )  # one", "x = f(1)")
    True
    """
    return Comparator("python_source", key=_tree, quick=True)


def _tree(output: Any) -> Hashable:
    text = str(output)
    blocks = fenced(text, ("python", "py"))
    if len(blocks) > 1:
        return ABSTAINED
    source = textwrap.dedent(blocks[0] if blocks else text)
    if not source.strip():
        return ABSTAINED
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ABSTAINED
