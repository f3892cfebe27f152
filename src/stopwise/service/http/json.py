"""JSON that always can be sent."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse


class Json(JSONResponse):
    r"""A JSON response whose texts may hold half a letter, which UTF-8 cannot say.

    A lone surrogate is allowed in JSON as an escape, so a client, a model or a key of an object
    may bring one; it goes back out the way it came in.

    >>> Json({"a": "é"}).body.decode(), Json({"a": "\ud800"}).body
    ('{"a":"é"}', b'{"a": "\\ud800"}')
    """

    def render(self, content: Any) -> bytes:
        """The bytes."""
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content, allow_nan=False).encode()
