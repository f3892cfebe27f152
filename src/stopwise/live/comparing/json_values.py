"""JSON: objects whose fields are equal."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from stopwise.checks import fail
from stopwise.evidence import ABSTAINED
from stopwise.live.comparing.comparator import Comparator


def json_fields(*fields: str) -> Comparator:
    """JSON objects (or their text) agree when these fields are equal; all fields if none is named.

    What is not an object, or lacks a field that is named, is an abstention.

    >>> json_fields("city").agrees('{"city": "Rome", "zip": 1}', {"city": "Rome"})
    True
    """
    for field in fields:
        if not isinstance(field, str) or not field:
            raise fail("fields", field, "names of fields")

    def key(output: Any) -> Hashable:
        if isinstance(output, (str, bytes)):
            try:
                output = json.loads(output)
            except ValueError:
                return ABSTAINED
        if not isinstance(output, dict) or any(field not in output for field in fields):
            return ABSTAINED
        kept = {field: output[field] for field in fields} if fields else output
        try:
            return json.dumps(kept, sort_keys=True)
        except (TypeError, ValueError):
            return ABSTAINED

    return Comparator(f"json_fields{fields!r}", key=key)
