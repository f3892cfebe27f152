"""When do two answers agree? Outputs are not always equal strings.

| comparator | two answers agree when |
|---|---|
| `exact()` | they are equal (the default) |
| `folded()` | they are equal but for case and white space |
| `number(absolute, relative=)` | they are numbers within a tolerance |
| `letter("ABCD")` | they choose the same letter |
| `json_fields("city")` | these fields of two JSON objects are equal |
| `by_key(function)` | a function of each gives the same |
| `by(function)` | a function of both says so |
"""

from stopwise.live.comparing.comparator import Agree, Comparator, Key
from stopwise.live.comparing.json_values import json_fields
from stopwise.live.comparing.numbers import number
from stopwise.live.comparing.own import by, by_key, make_comparator
from stopwise.live.comparing.texts import exact, folded, letter
from stopwise.live.comparing.votes import majority_vote

__all__ = [
    "Agree",
    "Comparator",
    "Key",
    "by",
    "by_key",
    "exact",
    "folded",
    "json_fields",
    "letter",
    "majority_vote",
    "make_comparator",
    "number",
]
