"""For the site: show the examples in docstrings as code.

The docstrings hold doctests without a heading; Markdown would read `>>>` as a quotation.
"""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class DoctestFences(griffe.Extension):
    """Put every doctest between fences, and leave out what nobody is to give."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite a docstring once it has been read."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            obj.docstring.value = _EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value
            )

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Leave out `**unknown: Never`, which only stands there to refuse what is misspelt."""
        if "unknown" in func.parameters and "Never" in str(func.parameters["unknown"].annotation):
            del func.parameters["unknown"]
