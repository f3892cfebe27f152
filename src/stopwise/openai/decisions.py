"""Questions with finite answers: put to a model as structured output, read back exactly."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from stopwise.openai.bodies import ChatRequest, read_object
from stopwise.openai.completions import Completion, Decided
from stopwise.openai.errors import ProtocolError

_LARGEST_SET = 200


@dataclass(frozen=True)
class Question:
    """A question and all that may be answered.

    Attributes:
        kind: "predicate" (true or false), "choice" (one of a list) or "score" (a whole number).
        allowed: every answer that is accepted.
    """

    model: str
    stage: str | None
    kind: str
    allowed: tuple[str | int | bool, ...]
    body: dict[str, Any]

    def chat(self) -> ChatRequest:
        """The chat request that puts the question to a model."""
        return ChatRequest(self.model, self.stage, False, False, 1, self.body)

    def read(self, answer: Completion) -> Decided | None:
        """What was decided; None is an abstention: refused, cut off, or not one of the answers.

        >>> question = read_question(b'{"model": "m", "input": "2 > 1?", "kind": "predicate"}')
        >>> question.read(Completion('{"decision": true}')), question.read(Completion("maybe"))
        (Decided(value=True), None)
        """
        if answer.abstained:
            return None
        try:
            value = json.loads(answer.content)
        except (ValueError, RecursionError):
            value = answer.content.strip()
        if isinstance(value, dict):
            value = value.get("decision")
        for allowed in self.allowed:
            same_kind = isinstance(value, bool) == isinstance(allowed, bool)
            if value == allowed and same_kind:
                return Decided(allowed)
        return self._plain_text(str(value))

    def _plain_text(self, text: str) -> Decided | None:
        """A model without structured output writes a word: it counts if it is an answer."""
        word = re.sub(r"^\W+|\W+$", "", text).casefold()
        if self.kind == "predicate":
            word = {"yes": "true", "no": "false"}.get(word, word)
        found = [allowed for allowed in self.allowed if str(allowed).casefold() == word]
        return Decided(found[0]) if len(found) == 1 else None


def read_question(data: bytes) -> Question:
    """Read the body of `POST /v1/decisions`.

    >>> read_question(b'{"model": "m", "input": "?", "kind": "score", "low": 1, "high": 3}').allowed
    (1, 2, 3)
    """
    body = read_object(data)
    known = {"model", "input", "messages", "kind", "choices", "low", "high", "temperature", "user"}
    for name in body:
        if name not in known:
            raise ProtocolError(400, f"{name}: unknown field", param=name)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise ProtocolError(400, "model: need the name of a cascade", param="model")
    name, _, stage = model.partition("/")
    kind = body.get("kind")
    allowed = _allowed(kind, body)
    assert isinstance(kind, str)
    values: list[Any] = list(allowed)
    type_name = {"predicate": "boolean", "choice": "string", "score": "integer"}[kind]
    schema = {
        "type": "object",
        "properties": {"decision": {"type": type_name, "enum": values}},
        "required": ["decision"],
        "additionalProperties": False,
    }
    listed = ", ".join(json.dumps(value) for value in values)
    chat: dict[str, Any] = {
        "messages": [
            {
                "role": "system",
                "content": 'Answer with a JSON object {"decision": ...}; the decision is one of: '
                + listed,
            },
            *_messages(body),
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "decision", "strict": True, "schema": schema},
        },
    }
    for field in ("temperature", "user"):
        if field in body:
            chat[field] = body[field]
    return Question(name, stage or None, kind, allowed, chat)


def _messages(body: dict[str, Any]) -> list[Any]:
    text, messages = body.get("input"), body.get("messages")
    if isinstance(text, str) and text and messages is None:
        return [{"role": "user", "content": text}]
    if (
        isinstance(messages, list)
        and messages
        and text is None
        and all(isinstance(message, dict) for message in messages)
    ):
        return messages
    raise ProtocolError(400, "input: need a text, or messages in its place", param="input")


def _allowed(kind: Any, body: dict[str, Any]) -> tuple[str | int | bool, ...]:
    if kind == "predicate":
        return (True, False)
    if kind == "choice":
        choices = body.get("choices")
        good = (
            isinstance(choices, list)
            and 2 <= len(choices) <= _LARGEST_SET
            and all(isinstance(choice, str) and choice for choice in choices)
            and len({choice.casefold() for choice in choices}) == len(choices)
        )
        if not good:
            message = f"choices: need 2 to {_LARGEST_SET} different texts"
            raise ProtocolError(400, message, param="choices")
        assert isinstance(choices, list)
        return tuple(choices)
    if kind == "score":
        low, high = body.get("low", 1), body.get("high", 5)
        good = all(isinstance(end, int) and not isinstance(end, bool) for end in (low, high))
        if not good or not 0 < high - low < _LARGEST_SET:
            message = f"low, high: need whole numbers, high above low by less than {_LARGEST_SET}"
            raise ProtocolError(400, message, param="low")
        return tuple(range(low, high + 1))
    raise ProtocolError(400, "kind: need predicate, choice or score", param="kind")
