"""What one round showed, for counting it per item: kept with its record, readable in a log.

While bins may still be cut again, the labels are needed and kept; once the bins are settled, only
the situations are, as numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stopwise.checks import fail, finite_number, known_names
from stopwise.situations.keys import decode
from stopwise.situations.observations import MOST_STAGES

LONGEST_LABEL = 64
"""Longer outputs are no labels: of them only a hash is kept, by which equal ones are known."""

PROMISED = ("open", "look", "found", "cut")
"""What can become of a promise in a round: the rule was allowed to stop it early; a coin sent it to
the end all the same; that showed its early answer to differ; it could not go as far as it should.
"""

Features = Mapping[str, "float | str | tuple[float, ...]"]

_LARGEST = 2**62
_FIELDS = (
    "labels", "groups", "features", "epoch", "keys", "full", "chance", "rule", "cut", "promised",
    "whole",
)  # fmt: skip


@dataclass(slots=True)
class ItemRow:
    """What a round showed.

    Attributes:
        labels: what each stage said, as far as it was called; None where it abstained.
        groups: which of them agree: equal numbers; -1 where a stage abstained.
        confidences: how sure each stage said it was.
        features: what was known of the item before its first call: numbers, texts, and vectors of
            numbers as far as a rule takes them.
        epoch, keys: its situations, and the binning that they are counted by.
        full: whether it was a full run; `chance` is the probability that it became one.
        rule: the stage at which the rule stops; None where it was not asked that far.
        cut: the binning that was made when this round had been counted, as JSON holds it.
        promised: under a promise of agreement, what became of it in this round, of `PROMISED`; None
            where nothing was promised.
        settled: whether the bins are not cut again, so that the situations say all there is.
        whole: of a round whose stages were called alone: `keys` are the two numbers of a whole row.

    >>> row = ItemRow(("yes", "no"), (0, 1), (0.9, None), {"country": "de"}, full=True, chance=0.5)
    >>> ItemRow.from_form(row.to_form(), 2, [0.9]) == row
    True
    """

    labels: tuple[str | None, ...] = ()
    groups: tuple[int, ...] = ()
    confidences: tuple[float | None, ...] = ()
    features: Features = field(default_factory=dict)
    epoch: str | None = None
    keys: tuple[int, ...] = ()
    full: bool = False
    chance: float = 0.0
    rule: int | None = None
    cut: Mapping[str, Any] | None = None
    promised: tuple[str, ...] | None = None
    settled: bool = False
    whole: bool = False

    @property
    def answered(self) -> int:
        """Bits of the stages that answered, as far as they were called.

        >>> ItemRow(("yes", None, "no"), (0, -1, 1)).answered
        5
        """
        groups = self.groups or (decode(self.keys[-1]).partition if self.keys else ())
        return sum(1 << stage for stage, group in enumerate(groups) if group >= 0)

    def to_form(self) -> dict[str, Any]:
        """As JSON holds it; what is usual is left out, and so are labels once bins are settled.

        The confidences stand in the record of the round.
        """
        form: dict[str, Any] = {}
        if self.settled and self.epoch is not None:
            form["epoch"] = self.epoch
            form["keys"] = [f"{key:x}" for key in self.keys]
        else:
            form["labels"] = list(self.labels)
            form["groups"] = list(self.groups)
            if self.features:
                form["features"] = dict(self.features)
        if self.whole:
            form["whole"] = True
        if self.full:
            form["full"] = True
        if self.chance:
            form["chance"] = self.chance
        if self.rule is not None:
            form["rule"] = self.rule
        if self.cut is not None:
            form["cut"] = self.cut
        if self.promised is not None:
            form["promised"] = list(self.promised)
        return form

    @classmethod
    def from_form(
        cls, form: Any, called: int, confidences: Sequence[float | None] | None
    ) -> ItemRow:
        """Read what `to_form` wrote; all of it is checked, for it may come from elsewhere.

        Args:
            form: the row.
            called: how many stages the round called.
            confidences: those of its record.
        """
        if not isinstance(form, Mapping):
            raise fail("item", form, "an object")
        known_names("item", form, _FIELDS)
        sure = tuple(confidences or ())
        row = cls(confidences=sure + (None,) * (called - len(sure)))
        row.whole = form.get("whole", False)
        if not isinstance(row.whole, bool):
            raise fail("whole", row.whole, "true or false")
        if "keys" in form:
            row.epoch = _text("epoch", form.get("epoch"))
            number = 2 if row.whole else called
            row.keys = tuple(_key(key) for key in _list("keys", form["keys"], number))
            row.settled = True
        else:
            row.labels = tuple(_label(one) for one in _list("labels", form.get("labels"), called))
            row.groups = _groups(_list("groups", form.get("groups"), called))
            row.features = checked_features(form.get("features"))
        row.full = form.get("full", False)
        row.chance = finite_number("chance", form.get("chance", 0.0))
        if not isinstance(row.full, bool):
            raise fail("full", row.full, "true or false")
        if not 0 <= row.chance <= 1:
            raise fail("chance", row.chance, "a probability")
        row.rule, row.cut = form.get("rule"), form.get("cut")
        if row.rule is not None and (type(row.rule) is not int or not 0 <= row.rule < MOST_STAGES):
            raise fail("rule", row.rule, "the number of a stage")
        row.promised = _events(form.get("promised"))
        return row


def label_of(text: str) -> str:
    """The label that is kept of an output.

    >>> label_of("refund"), len(label_of("word " * 50))
    ('refund', 22)
    """
    if len(text) <= LONGEST_LABEL:
        return text
    return "text " + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:17]


def checked_features(features: Any) -> dict[str, float | str | tuple[float, ...]]:
    """What is known of an item: numbers, texts and vectors by name. What is blank is left out.

    >>> checked_features({"length": 3, "country": "de", "age": None, "meaning": [0.5, 1]})
    {'length': 3.0, 'country': 'de', 'meaning': (0.5, 1.0)}
    >>> checked_features({"words": ["a"]})
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: feature words: got ['a'], but need a number, a text or a ...
    """
    if features is None:
        return {}
    if not isinstance(features, Mapping):
        raise fail("features", features, "an object of numbers and texts by name")
    found: dict[str, float | str | tuple[float, ...]] = {}
    for name, value in features.items():
        if not isinstance(name, str):
            raise fail("features", name, "names that are text")
        if value is None:
            continue
        if isinstance(value, str):
            found[name] = label_of(value)
        elif isinstance(value, bool):
            found[name] = str(value).lower()
        else:
            given = getattr(value, "tolist", lambda value=value: value)()  # of NumPy and its kin
            if isinstance(given, (list, tuple)):
                found[name] = tuple(_number(name, value, one) for one in given)
            elif not isinstance(given, float) or not math.isnan(given):
                found[name] = _number(name, value, given)
    return found


def _number(name: str, given: Any, value: Any) -> float:
    accepted = "a number, a text or a vector of finite numbers"
    if isinstance(value, (str, bytes)):
        raise fail(f"feature {name}", given, accepted)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise fail(f"feature {name}", given, accepted) from None
    if not math.isfinite(number):
        raise fail(f"feature {name}", given, accepted)
    return number


def _list(field_: str, values: Any, called: int) -> list[Any]:
    if not isinstance(values, list) or len(values) != called:
        raise fail(field_, values, f"a list of {called}, one for each stage that was called")
    return values


def _label(value: Any) -> str | None:
    return None if value is None else _text("labels", value)


def _text(field_: str, value: Any) -> str:
    if not isinstance(value, str):
        raise fail(field_, value, "text")
    return value


def _groups(values: list[Any]) -> tuple[int, ...]:
    most = -1
    for value in values:
        if type(value) is not int or not -1 <= value <= most + 1:
            raise fail("groups", values, "numbers from 0 in the order of appearance, or -1")
        most = max(most, value)
    return tuple(values)


def _events(values: Any) -> tuple[str, ...] | None:
    if values is None:
        return None
    if not isinstance(values, list) or any(one not in PROMISED for one in values):
        raise fail("promised", values, "a list of " + ", ".join(PROMISED))
    return tuple(values)


def _key(text: Any) -> int:
    try:
        key = int(text, 16) if isinstance(text, str) else -1
    except ValueError:
        key = -1
    if not 0 <= key <= _LARGEST:
        raise fail("keys", text, "situations as hexadecimal numbers")
    return key
