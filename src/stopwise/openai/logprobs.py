"""How sure a language model is of its answer, from the log-probabilities of its tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from stopwise.checks import StopwiseError, fail, one_of

How = Literal["mean", "product", "first", "least", "gap"]
_ACCEPTED = (
    "log-probabilities of tokens, or a reply or a choice that has them (ask for logprobs=True)"
)


def confidence_of_logprobs(given: Any, how: How = "mean") -> float:
    """How sure a model is of its answer, between 0 and 1.

    Args:
        given: what the OpenAI interface returns with `logprobs=True`: a reply, a choice of it, or
            its `logprobs`, as objects or as JSON; or the log-probabilities themselves, one for each
            token of the answer.
        how: "mean", the geometric mean of the chances of all tokens; "product", the chance of the
            whole answer; "first", of its first token (labels of one token); "least", of its least
            likely token; "gap", by how much the first token is likelier than the next best (needs
            `top_logprobs=2` or more).

    >>> round(confidence_of_logprobs([-0.01, -0.2]), 3)
    0.9
    >>> reply = {"choices": [{"logprobs": {"content": [{"token": "yes", "logprob": -0.05}]}}]}
    >>> round(confidence_of_logprobs(reply, "first"), 3)
    0.951
    >>> confidence_of_logprobs([0.3])
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: logprobs: got 0.3, but need log-probabilities, 0 or less
    """
    one_of("how", how, get_args(How))
    tokens = _tokens(given)
    if how == "gap":
        return _gap(tokens[0])
    chances = [_number(_of(token, "logprob", token)) for token in tokens]
    if how == "first":
        return math.exp(chances[0])
    if how == "least":
        return math.exp(min(chances))
    total = math.fsum(chances)
    return math.exp(total if how == "product" else total / len(chances))


def fields_for(how: How) -> dict[str, Any]:
    """What a request has to ask for, so that its reply says how sure the model is.

    >>> fields_for("mean"), fields_for("gap")
    ({'logprobs': True}, {'logprobs': True, 'top_logprobs': 2})
    """
    return {"logprobs": True, "top_logprobs": 2} if how == "gap" else {"logprobs": True}


def take_confidence(reply: dict[str, Any], how: How, *, wanted: bool) -> float | None:
    """The confidence of a plain reply; None where it says nothing of it.

    Args:
        reply: as JSON; what nobody asked for is taken out of it.
        how: see `confidence_of_logprobs`.
        wanted: whether the client asked for log-probabilities itself.

    >>> reply = {"choices": [{"logprobs": {"content": [{"token": "yes", "logprob": 0.0}]}}]}
    >>> take_confidence(reply, "mean", wanted=False), reply
    (1.0, {'choices': [{}]})
    """
    try:
        found = confidence_of_logprobs(reply, how)
    except StopwiseError:
        found = None
    if not wanted:
        for choice in reply["choices"]:
            if isinstance(choice, dict):
                choice.pop("logprobs", None)
    return found


def _tokens(given: Any) -> Sequence[Any]:
    """The tokens of an answer, wherever they stand."""
    choices = _of(given, "choices")
    if choices is not None:
        if not isinstance(choices, Sequence) or not len(choices):
            raise fail("choices", choices, "one choice or more")
        given = choices[0]
    logprobs = _of(given, "logprobs", _Missing)
    if logprobs is None:
        raise StopwiseError("logprobs: the reply has none; ask for them with logprobs=True")
    if logprobs is not _Missing:
        given = logprobs
    content = _of(given, "content")
    if content is None:  # as the interface of completions has them
        content = _of(given, "token_logprobs")
    tokens = given if content is None else content
    if hasattr(tokens, "tolist"):
        tokens = tokens.tolist()
    if isinstance(tokens, str | bytes | Mapping) or not isinstance(tokens, Sequence):
        raise fail("logprobs", tokens, _ACCEPTED)
    if not len(tokens):
        raise fail("logprobs", tokens, _ACCEPTED)
    return tokens


def _gap(token: Any) -> float:
    others = _of(token, "top_logprobs")
    if not isinstance(others, Sequence) or len(others) < 2:
        raise fail("top_logprobs", others, "two or more for the first token (top_logprobs=2)")
    best, second, *_ = sorted((_number(_of(one, "logprob", one)) for one in others), reverse=True)
    return math.exp(best) - math.exp(second)


class _Missing:
    """Stands for a field that is not there."""


def _of(given: Any, name: str, missing: Any = None) -> Any:
    """A field of JSON or of an object."""
    if isinstance(given, Mapping):
        return given.get(name, missing)
    return getattr(given, name, missing)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise fail("logprobs", value, "log-probabilities, 0 or less")
    if value > 1e-6:
        raise fail("logprobs", value, "log-probabilities, 0 or less")
    return min(float(value), 0.0)
