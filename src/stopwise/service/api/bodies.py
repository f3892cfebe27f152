"""What is sent to the API: JSON objects whose every field is checked."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request

from stopwise.checks import nearest
from stopwise.openai.bodies import read_object
from stopwise.openai.errors import ProtocolError
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.config.tables import NAME, NAME_ACCEPTED, storable
from stopwise.service.core import Service
from stopwise.service.database.keys import Key
from stopwise.service.http.access import refuse_other_sites, who


async def enter(request: Request, scope: str) -> tuple[Service, RunningCascade, Key]:
    """The service, the cascade that the path names, and the key."""
    refuse_other_sites(request)
    key = await who(request, scope)
    service: Service = request.app.state.service
    name = request.path_params["cascade"]
    if name not in service.cascades:
        raise ProtocolError(404, f"there is no cascade {name[:100]!r}", code="no_such_cascade")
    return service, service.cascades[name], key


def bad(field: str, accepted: str) -> ProtocolError:
    """The one wording of a refusal here."""
    return ProtocolError(422, f"{field}: need {accepted}", param=field, code="invalid_value")


class Body:
    """A JSON object; `done` refuses what was not asked for.

    >>> body = Body({"segment": "en"})
    >>> body.name("segment", ""), body.done()
    ('en', None)
    """

    def __init__(self, form: dict[str, Any]) -> None:
        self._form = form
        self._known: list[str] = []

    @classmethod
    async def of(cls, request: Request) -> Body:
        """The body of a request; an empty one is an empty object."""
        data = await request.body()
        return cls(read_object(data) if data.strip() else {})

    def has(self, field: str) -> bool:
        """Whether a field is given."""
        self._known.append(field)
        return field in self._form

    def value(self, field: str, default: Any = None) -> Any:
        """A field as it stands."""
        self._known.append(field)
        return self._form.get(field, default)

    def name(self, field: str, default: str | None = None) -> str:
        """A name that may stand in a URL and on a page."""
        value = self.value(field, default)
        if value == default and default is not None:
            return default
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise bad(field, NAME_ACCEPTED)
        return value

    def text(self, field: str, default: str = "", most: int = 2000) -> str:
        """A text."""
        value = self.value(field, default)
        if not isinstance(value, str) or len(value) > most or not storable(value):
            raise bad(field, f"a text of at most {most} letters, without NUL or half a letter")
        return value

    def number(self, field: str, default: float | None = None) -> float | None:
        """A number, 0 or more."""
        value = self.value(field, default)
        if value is None:
            return default
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not 0 <= value < 1e15 or not math.isfinite(value):
            raise bad(field, "a number, 0 or more")
        return float(value)

    def real(self, field: str) -> float | None:
        """Any number; None where it is not given."""
        value = self.value(field)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not -1e15 < value < 1e15:
            raise bad(field, "a number")
        return float(value)

    def stage(self, field: str, cascade: RunningCascade) -> int:
        """A stage, by name or by number."""
        value = self.value(field)
        names = cascade.config.stage_names
        if isinstance(value, str) and value in names:
            return names.index(value)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and 0 <= value < len(names):
            return int(value)
        raise bad(field, f"one of {', '.join(names)}, or its number from 0")

    def done(self) -> None:
        """Refuse what was not asked for."""
        for field in self._form:
            if field not in self._known:
                name = field[:100]
                message = f"unknown field {name!r}; {nearest(name, self._known)}"
                raise ProtocolError(422, message, param=name, code="unknown_field")


def query_name(request: Request, field: str) -> str | None:
    """A name in the query; None where it is not given."""
    value = request.query_params.get(field)
    if value is not None and value != "" and not NAME.fullmatch(value):
        raise bad(field, NAME_ACCEPTED)
    return value


def query_number(request: Request, field: str, default: int, least: int, most: int) -> int:
    """A whole number in the query."""
    value = request.query_params.get(field)
    if value is None:
        return default
    if not (
        value.isascii() and value.isdigit() and len(value) < 10 and least <= int(value) <= most
    ):
        raise bad(field, f"a whole number from {least} to {most}")
    return int(value)
