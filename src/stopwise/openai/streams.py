"""Streams: cut into events, sent on under another name, put together to one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stopwise.openai.bodies import strict_json
from stopwise.openai.completions import Completion, ToolCall, Usage, text_of, usage_of

DONE = "[DONE]"
_LONGEST = 10_000_000


class Events:
    r"""Server-sent events out of bytes that may be cut anywhere.

    >>> events = Events()
    >>> list(events.feed(b'data: {"a"')), list(events.feed(b': 1}\r\n\r\ndata: [DONE]\n\n'))
    ([], ['{"a": 1}', '[DONE]'])
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []
        self._held = 0  # bytes of the lines of an event that has not ended

    def feed(self, data: bytes) -> Iterator[str]:
        """The events that these bytes complete."""
        self._rest += data
        if len(self._rest) + self._held > _LONGEST:
            raise ValueError("an event of this stream is too long")
        *lines, self._rest = self._rest.split(b"\n")
        for raw in lines:
            line = raw.rstrip(b"\r")
            if not line:
                if self._data:
                    yield "\n".join(self._data)
                    self._data, self._held = [], 0
            elif line.startswith(b"data:"):
                text = line[5:].decode("utf-8", "replace")
                self._data.append(text.removeprefix(" "))
                self._held += len(line)
                if self._held > _LONGEST:
                    raise ValueError("an event of this stream is too long")

    def close(self) -> Iterator[str]:
        """What a stream without a last blank line still holds."""
        yield from self.feed(b"\n\n")


class StreamedAnswer:
    """Puts the chunks of one stream together.

    >>> answer = StreamedAnswer()
    >>> for text in ("Ro", "me"):
    ...     answer.add({"choices": [{"delta": {"content": text}}]})
    >>> answer.completion.content
    'Rome'
    """

    def __init__(self) -> None:
        self._content: list[str] = []
        self._calls: dict[int, list[str]] = {}
        self._refused = False
        self._finish: str | None = None
        self.usage: Usage | None = None

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take one chunk."""
        if (usage := usage_of(chunk.get("usage"))) is not None:
            self.usage = usage
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, Mapping) or choice.get("index", 0) != 0:
                continue
            if isinstance(choice.get("finish_reason"), str):
                self._finish = choice["finish_reason"]
            delta = choice.get("delta")
            if isinstance(delta, Mapping):
                self._add_delta(delta)

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        if text := text_of(delta.get("content")):
            self._content.append(text)
        if delta.get("refusal"):
            self._refused = True
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping):
                continue
            index = call.get("index", 0)
            known = self._calls.setdefault(index if isinstance(index, int) else 0, ["", ""])
            known[0] += str(function.get("name") or "")
            known[1] += str(function.get("arguments") or "")

    @property
    def finished(self) -> bool:
        """Whether the model said why it ended: a stream without that was cut."""
        return self._finish is not None

    @property
    def completion(self) -> Completion:
        """The answer so far."""
        calls = tuple(ToolCall(*self._calls[at]) for at in sorted(self._calls))
        return Completion("".join(self._content), calls, self._finish, self._refused, self.usage)


def parse_chunk(event: str) -> dict[str, Any] | None:
    """A chunk, or None if the event is not a JSON object."""
    try:
        chunk = strict_json(event)
    except (ValueError, RecursionError):
        return None
    return chunk if isinstance(chunk, dict) else None


def event_bytes(form: Mapping[str, Any] | str) -> bytes:
    r"""One event as it goes to the client.

    >>> event_bytes({"a": 1})
    b'data: {"a": 1}\n\n'
    """
    text = form if isinstance(form, str) else json.dumps(form)
    return b"data: " + text.encode() + b"\n\n"
