"""Reading one table of a TOML file: every value checked, every unknown name refused."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from stopwise.checks import StopwiseError, fail, known_names, number_within, one_of
from stopwise.service.config.forms import Secret

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
NAME_ACCEPTED = "1 to 100 of the letters A-Z a-z 0-9 _ . : -"
STORABLE_ACCEPTED = "a text without NUL or half a letter"
LONGEST = 86400.0
"""Seconds in a day: nothing here is to be waited for longer."""
_SHORTEST = 0.001
_MISSING: Any = object()


def storable(text: str) -> bool:
    r"""Whether every database can keep a text.

    NUL cannot stand in PostgreSQL, half a letter (a lone surrogate, which JSON can say) in none.

    >>> storable("é"), storable("a\0"), storable("\ud800")
    (True, False, False)
    """
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


class Table:
    """One table; `done` refuses whatever was not asked for.

    >>> table = Table("server", {"lissten": "127.0.0.1:1"})
    >>> table.text("listen", "127.0.0.1:8600")
    '127.0.0.1:8600'
    >>> table.done()
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: server: unknown field 'lissten'; did you mean 'listen'?
    """

    def __init__(self, where: str, form: Any) -> None:
        if not isinstance(form, Mapping):
            raise fail(where, form, "a table")
        self.where = where
        self._form = form
        self._known: list[str] = []

    def has(self, name: str) -> bool:
        """Whether the field is given."""
        return name in self._form

    def value(self, name: str, default: Any = _MISSING, accepted: str = "a value") -> Any:
        """The field as it stands."""
        self._known.append(name)
        if name in self._form:
            return self._form[name]
        if default is _MISSING:
            raise StopwiseError(f"{self.where}.{name}: missing; need {accepted}")
        return default

    def text(self, name: str, default: Any = _MISSING, accepted: str = "a text") -> Any:
        """A text that is not empty."""
        value = self.value(name, default, accepted)
        if value is not default and not (isinstance(value, str) and value.strip()):
            raise fail(f"{self.where}.{name}", value, accepted)
        if value is not default and not storable(value):
            raise fail(f"{self.where}.{name}", value, STORABLE_ACCEPTED)
        return value

    def choice(self, name: str, default: str, choices: Sequence[str]) -> Any:
        """One of a few words."""
        return one_of(f"{self.where}.{name}", self.value(name, default), choices)

    def number(
        self,
        name: str,
        default: Any = _MISSING,
        *,
        least: float = 0.0,
        most: float | None = None,
        above: bool = False,
    ) -> Any:
        """A number in a range; `above` leaves the lower end out."""
        accepted = f"a number {'above' if above else 'of at least'} {least:g}"
        if most is not None:
            accepted += f" and at most {most:g}"
        value = self.value(name, default, accepted)
        if value is default:
            return value
        field, lowest = f"{self.where}.{name}", "above" if above else "least"
        highest = math.inf if most is None else most
        return number_within(field, value, accepted, most=highest, **{lowest: least})

    def seconds(self, name: str, default: float) -> Any:
        """A time that something may take: a millisecond to a day."""
        return self.number(name, default, least=_SHORTEST, most=LONGEST)

    def whole(self, name: str, default: Any = _MISSING, *, least: int = 0) -> Any:
        """A whole number."""
        value = self.number(name, default, least=least)
        if value is default:
            return value
        if value != int(value):
            raise fail(f"{self.where}.{name}", value, f"a whole number, {least} or more")
        return int(value)

    def name(self, name: str) -> str:
        """A name that may stand in a URL, a header and a page."""
        value = self.text(name, accepted=NAME_ACCEPTED)
        if not NAME.fullmatch(value):
            raise fail(f"{self.where}.{name}", value, NAME_ACCEPTED)
        return str(value)

    def url(self, name: str) -> str:
        """An http or https URL without user, query or fragment; no slash at the end."""
        accepted = "a URL such as http://127.0.0.1:8000/v1"
        value = self.text(name, accepted=accepted)
        try:
            parts = urlsplit(value)
            _ = parts.port
        except ValueError:
            raise fail(f"{self.where}.{name}", value, accepted) from None
        plain = not (parts.query or parts.fragment or parts.username or parts.password)
        if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
            raise fail(f"{self.where}.{name}", value, accepted)
        return str(value).rstrip("/")

    def secret(self, name: str) -> Secret | None:
        """A secret, which is only ever named: `env:NAME` or `file:/path`."""
        accepted = "env:NAME or file:/path, so that no secret stands in this file"
        value = self.text(name, None, accepted)
        if value is None:
            return None
        kind, _, where = value.partition(":")
        if kind == "env" and where:
            if not os.environ.get(where):
                raise StopwiseError(
                    f"{self.where}.{name}: the environment variable {where} is not set"
                )
            return Secret(os.environ[where])
        if kind == "file" and where:
            try:
                with open(where, encoding="utf-8") as file:  # noqa: PTH123  # as the user wrote it
                    return Secret(file.read().strip())
            except (OSError, UnicodeDecodeError):
                raise StopwiseError(f"{self.where}.{name}: {where} cannot be read") from None
        raise StopwiseError(f"{self.where}.{name}: need {accepted}")

    def done(self) -> None:
        """Refuse what was not asked for, with the nearest known name."""
        known_names(self.where, self._form, self._known)
