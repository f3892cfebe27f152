"""Blocks between fences of three backticks, as language models write them."""

from __future__ import annotations

import re
from collections.abc import Collection

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


def fenced(text: str, languages: Collection[str], *, named: bool = False) -> list[str]:
    r"""The blocks of a text that name one of these languages, or (unless `named`) none.

    >>> fenced("So:\n```json\n{}\n```\n```c\nint i;\n```", ["json"])
    ['{}\n']
    """
    found = _FENCE.findall(text)
    return [block for name, block in found if name.lower() in languages or not (name or named)]


def outside_fences(text: str) -> str:
    r"""What is left of a text without its blocks.

    >>> outside_fences("So:\n```json\n{}\n```\n")
    'So:\n\n'
    """
    return _FENCE.sub("", text)
