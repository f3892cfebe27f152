"""Which conversation a request belongs to, without sessions: what stays the same in every turn."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

_SCALE = 2.0**-53


def conversation_of(body: Mapping[str, Any], named: str | None = None) -> str:
    """A short name of the conversation.

    What the client names it (a header, or `prompt_cache_key`), else what never changes from turn to
    turn: everything up to the first message of the user.

    >>> first = [{"role": "user", "content": "hello"}]
    >>> later = first + [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "x"}]
    >>> conversation_of({"messages": first}) == conversation_of({"messages": later})
    True
    """
    key = named or body.get("prompt_cache_key")
    if isinstance(key, str) and key:
        return hashlib.sha256(b"named\0" + key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    opening = []
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        opening.append(message)
        if isinstance(message, Mapping) and message.get("role") == "user":
            break
    text = json.dumps([body.get("user"), opening], sort_keys=True, default=str)
    return hashlib.sha256(b"opening\0" + text.encode()).hexdigest()[:32]


def uniform_of(secret: bytes, *parts: str) -> float:
    """A number in [0, 1) that only who has the secret can foresee; equal parts give equal numbers.

    >>> uniform_of(b"k", "a", "b") == uniform_of(b"k", "a", "b") != uniform_of(b"k", "ab", "")
    True
    """
    digest = hmac.new(secret, json.dumps(parts).encode(), hashlib.sha256).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) * _SCALE
