"""What a chat request says, and what is sent to a stage in its place.

The body is passed on as it came: only `model`, `stream` and `stream_options` are touched, so that
tools, structured output and whatever a model server adds work without being known here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stopwise.openai.errors import ProtocolError

_TOO_MANY = 10**15


@dataclass(frozen=True)
class ChatRequest:
    """A request for a chat completion.

    Attributes:
        model: the name that the client sent; `stage` is what it pinned ("cascade/stage").
        streamed: whether it wants a stream; `usage_wanted`, the usage at the stream's end.
        choices: how many answers it wants (`n`).
        body: all of it.
        size: its bytes, as they came; 0 where they did not.
        most_tokens: how long all answers together may be; None if it does not say, or asks about
            what has more tokens than letters: pictures, sounds, files.
    """

    model: str
    stage: str | None
    streamed: bool
    usage_wanted: bool
    choices: int
    body: dict[str, Any]
    size: int = 0
    most_tokens: int | None = None

    def for_stage(
        self, model: str, *, streamed: bool, more: Mapping[str, Any] | None = None
    ) -> bytes:
        """The body for one stage; usage is always asked for, since costs rest on it.

        Args:
            model: the name that the stage knows.
            streamed: whether a stream is wanted.
            more: fields that are asked for besides; what the client asked for stays.

        >>> request = read_chat(b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}')
        >>> request.for_stage("small", streamed=True)[-48:]
        b'true, "stream_options": {"include_usage": true}}'
        """
        body = {**(more or {}), **self.body, "model": model}
        body.pop("stream", None)
        options = body.pop("stream_options", None)
        if streamed:
            body["stream"] = True
            known = options if isinstance(options, dict) else {}
            body["stream_options"] = {**known, "include_usage": True}
        return json.dumps(body).encode()


def read_object(data: bytes) -> dict[str, Any]:
    """A JSON object, or the protocol's error.

    >>> read_object(b'{"a": 1}')
    {'a': 1}
    """
    try:
        body = strict_json(data)
    except RecursionError:
        raise ProtocolError(400, "the body is nested too deeply", code="invalid_json") from None
    except ValueError:
        raise ProtocolError(400, "the body is not JSON", code="invalid_json") from None
    if not isinstance(body, dict):
        raise ProtocolError(400, "the body must be a JSON object", code="invalid_json")
    return body


def strict_json(data: bytes | str) -> Any:
    """JSON without the numbers that JSON has no word for: NaN and infinities, 1e999 among them.

    >>> strict_json('[1.5, 2]')
    [1.5, 2]
    """
    return json.loads(data, parse_constant=_no_constant, parse_float=_finite)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0.0:
        raise ValueError("a number that is too large")
    return value


def read_chat(data: bytes) -> ChatRequest:
    """Read a request; only what is touched or decided upon is checked.

    >>> read_chat(b'{"model": "support/large", "messages": [{}], "n": 2}').stage
    'large'
    """
    body = read_object(data)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise ProtocolError(
            400, "model: need the name of a cascade", param="model", code="missing_model"
        )
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ProtocolError(400, "messages: need a list of messages", param="messages")
    if not all(isinstance(message, dict) for message in messages):
        raise ProtocolError(400, "messages: every message is an object", param="messages")
    streamed = body.get("stream")
    if streamed is not None and not isinstance(streamed, bool):
        raise ProtocolError(400, "stream: need true or false", param="stream")
    choices = body.get("n")
    if choices is None:
        choices = 1
    if isinstance(choices, bool) or not isinstance(choices, int) or choices < 1:
        raise ProtocolError(400, "n: need a whole number, 1 or more", param="n")
    options = body.get("stream_options")
    usage = isinstance(options, dict) and options.get("include_usage") is True
    name, _, stage = model.partition("/")
    most = _most_tokens(body, choices)
    return ChatRequest(name, stage or None, bool(streamed), usage, choices, body, len(data), most)


def _most_tokens(body: Mapping[str, Any], choices: int) -> int | None:
    limits = [body.get(name) for name in ("max_completion_tokens", "max_tokens")]
    said = [
        limit for limit in limits
        if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0
    ]  # fmt: skip
    if not said or not all(_is_text(message.get("content")) for message in body["messages"]):
        return None
    # Servers heed one of the two. No price makes a number beyond this affordable.
    return min(max(said) * choices, _TOO_MANY)


def _is_text(content: Any) -> bool:
    """Whether the content of a message is text alone."""
    if not isinstance(content, list):
        return True
    return all(isinstance(part, dict) and part.get("type") in ("text", "refusal")
               for part in content)  # fmt: skip
