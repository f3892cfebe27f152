"""What a stage answered, in a form that can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; `cached` are those of the input that the server had seen before."""

    input: int = 0
    output: int = 0
    cached: int = 0


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model wants called; arguments as the model wrote them."""

    name: str
    arguments: str

    @property
    def key(self) -> str:
        """Name and arguments, the same however the JSON was spaced or ordered.

        >>> ToolCall("f", '{"b": 1, "a": 2}').key == ToolCall("f", '{"a":2,"b":1}').key
        True
        """
        try:
            arguments = json.dumps(json.loads(self.arguments or "{}"), sort_keys=True)
        except (ValueError, RecursionError):
            arguments = self.arguments
        return json.dumps([self.name, arguments])


@dataclass(frozen=True)
class Completion:
    """One answer.

    Attributes:
        finish: why it ended: "stop", "tool_calls", "length", "content_filter".
        refused: whether the model said so in the field for it.
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    refused: bool = False
    usage: Usage | None = field(default=None, compare=False)

    @property
    def abstained(self) -> bool:
        """Whether it counts as no answer: cut off, filtered, refused, or empty.

        >>> Completion("forty", finish="length").abstained
        True
        """
        return (
            self.finish in ("length", "content_filter")
            or self.refused
            or not (self.content.strip() or self.tool_calls)
        )

    def to_form(self) -> dict[str, Any]:
        """As it is kept for people to look at."""
        form: dict[str, Any] = {"content": self.content}
        if self.tool_calls:
            form["tool_calls"] = [
                {"name": call.name, "arguments": call.arguments} for call in self.tool_calls
            ]
        if self.finish not in (None, "stop"):
            form["finish"] = self.finish
        if self.refused:
            form["refused"] = True
        return form


@dataclass(frozen=True)
class Decided:
    """An answer out of a finite set; compared exactly."""

    value: str | int | bool

    def to_form(self) -> dict[str, Any]:
        """As it is kept."""
        return {"decision": self.value}


def usage_of(form: Any) -> Usage | None:
    """Read the field `usage`; None where it does not say how many tokens there were.

    A call whose usage is empty, in other words or all zero was not free.

    >>> usage_of({"prompt_tokens": 12, "completion_tokens": 3})
    Usage(input=12, output=3, cached=0)
    >>> usage_of({"input_tokens": 12}), usage_of({"prompt_tokens": 0, "completion_tokens": 0})
    (None, None)
    """
    if not isinstance(form, Mapping):
        return None
    counts = _count(form.get("prompt_tokens")), _count(form.get("completion_tokens", 0))
    if None in counts or not any(counts):
        return None
    details = form.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    return Usage(counts[0] or 0, counts[1] or 0, _count(cached) or 0)


def _count(value: Any) -> int | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 1e15 else None


def text_of(content: Any) -> str:
    """The text of a message's content, which may be a list of parts.

    >>> text_of([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    'ab'
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def read_completion(body: Any) -> Completion | None:
    """The first choice of a plain response; None if this is not a completion.

    >>> read_completion({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})
    Completion(content='hi', tool_calls=(), finish='stop', refused=False, usage=None)
    """
    choices = body.get("choices") if isinstance(body, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return None
    message = choices[0].get("message")
    if not isinstance(message, Mapping):
        return None
    calls = message.get("tool_calls")
    found = [_tool_call(call) for call in calls] if isinstance(calls, list) else []
    finish = choices[0].get("finish_reason")
    return Completion(
        content=text_of(message.get("content")),
        tool_calls=tuple(call for call in found if call is not None),
        finish=finish if isinstance(finish, str) else None,
        refused=bool(message.get("refusal")),
        usage=usage_of(body.get("usage")),
    )


def _tool_call(call: Any) -> ToolCall | None:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return None
    return ToolCall(str(function.get("name") or ""), str(function.get("arguments") or ""))
