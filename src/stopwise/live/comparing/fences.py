"""Blocks between fences of three backticks, as language models write them."""

from __future__ import annotations

import re
from collections.abc import Collection

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


def fenced(text: str, languages: Collection[str]) -> list[str]:
    r"""The blocks of a text that name one of these languages, or none.

    >>> fenced("So:\n```json\n{}\n```\n```c\nint i;\n```", ["json"])
    ['{}\n']
    """
    found = _FENCE.findall(text)
    return [block for name, block in found if not name or name.lower() in languages]
