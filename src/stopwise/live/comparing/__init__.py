"""When do two answers agree? Outputs are not always equal strings.

| comparator | two answers agree when |
|---|---|
| `exact()` | they are equal (the default) |
| `folded()` | they are equal but for case and white space |
| `number(absolute, relative=)` | they are numbers within a tolerance |
| `letter("ABCD")` | they choose the same letter |
| `json_fields("city")` | these fields of two JSON objects are equal |
| `fenced_json("city")` | the same, of JSON in a text |
| `tool_call()` | they call the same tool with equal arguments |
| `python_source()` | they are the same program to the parser |
| `by_key(function)` | a function of each gives the same |
| `by(function)` | a function of both says so |
| `judge(function)` | a judge says so, who may be async, may cost, and may not know |
"""

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names
from stopwise.live.comparing.choices import letter
from stopwise.live.comparing.comparator import (
    Agree,
    Comparator,
    KeyFunction,
    MisusedComparatorError,
)
from stopwise.live.comparing.json_values import fenced_json, json_fields, tool_call
from stopwise.live.comparing.numbers import number
from stopwise.live.comparing.own import by, by_key, judge, make_comparator
from stopwise.live.comparing.source import python_source
from stopwise.live.comparing.texts import exact, folded
from stopwise.live.comparing.votes import majority_vote

__all__ = [
    "Agree",
    "Comparator",
    "KeyFunction",
    "MisusedComparatorError",
    "by",
    "by_key",
    "exact",
    "fenced_json",
    "folded",
    "json_fields",
    "judge",
    "letter",
    "majority_vote",
    "make_comparator",
    "number",
    "python_source",
    "tool_call",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, {})
