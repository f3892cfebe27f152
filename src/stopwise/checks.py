"""What may be written where: errors that name the field, the value and what would be accepted."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C")
_T = TypeVar("_T", bound=str)


class StopwiseError(ValueError):
    """Something a user gave cannot be used; the message says what would be accepted.

    >>> raise StopwiseError("costs: got [] but need at least two stages")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: costs: got [] but need at least two stages
    """


def fail(field: str, got: object, accepted: str) -> StopwiseError:
    """The one wording of every refusal.

    >>> print(fail("horizon", -3, "a whole number of rounds, 1 or more"))
    horizon: got -3, but need a whole number of rounds, 1 or more
    """
    try:
        text = repr(got)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = "a number of thousands of digits"
    if len(text) > 120:
        text = text[:117] + "..."
    return StopwiseError(f"{field}: got {text}, but need {accepted}")


def take_plain_numbers(settings: Any) -> None:
    """In a frozen dataclass, put Python's own numbers in the place of NumPy's: JSON knows no other.

    >>> import dataclasses
    >>> @dataclasses.dataclass(frozen=True)
    ... class Settings:
    ...     half_life: float
    ...     def __post_init__(self): take_plain_numbers(self)
    >>> Settings(np.int64(100))
    Settings(half_life=100)
    """
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, np.generic):
            object.__setattr__(settings, field.name, value.item())


def finite_number(field: str, value: object, accepted: str = "a finite number") -> float:
    """Return `value` as a float, or refuse booleans, text, NaN and infinities.

    >>> finite_number("alpha", 1)
    1.0
    """
    if value is None or isinstance(value, (bool, str, bytes)):
        raise fail(field, value, accepted)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise fail(field, value, accepted) from None
    if not math.isfinite(number):
        raise fail(field, value, accepted)
    return number


def number_within(
    field: str,
    value: object,
    accepted: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """Return `value` as a float in a range; what is `above` or `below` leaves that end out.

    >>> number_within("level", 0.9, "a number from 0.5 to 1, but not 1", least=0.5, below=1)
    0.9
    >>> number_within("level", 1, "a number from 0.5 to 1, but not 1", least=0.5, below=1)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: level: got 1, but need a number from 0.5 to 1, but not 1
    """
    number = finite_number(field, value, accepted)
    if not (least <= number <= most and above < number < below):
        raise fail(field, value, accepted)
    return number


def positive_number(field: str, value: object, accepted: str = "a number above 0") -> float:
    """Return `value` as a float above 0.

    >>> positive_number("alpha", 2)
    2.0
    """
    return number_within(field, value, accepted, above=0)


def whole_number(field: str, value: object, *, least: int | None) -> int:
    """Return `value` as an int that is at least `least` (None: any).

    >>> whole_number("horizon", 10, least=1)
    10
    """
    accepted = "a whole number" if least is None else f"a whole number, {least} or more"
    number = finite_number(field, value, accepted)
    if number != int(number) or (least is not None and number < least):
        raise fail(field, value, accepted)
    return int(value)  # type: ignore[call-overload, no-any-return]


def whole_numbers(field: str, values: ArrayLike, accepted: str) -> NDArray[np.int64]:
    """Return an array of whole numbers, each as it was: nothing is cut, and none wraps around.

    >>> whole_numbers("codes", [[0, 1.0]], "a table of whole numbers")
    array([[0, 1]])
    >>> whole_numbers("codes", [[0, 1.5]], "a table of whole numbers")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: codes: got [[0, 1.5]], but need a table of whole numbers
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind in "ib":
            return given.astype(np.int64, copy=False)
        if given.dtype.kind in "uf":
            with np.errstate(invalid="ignore"):  # nan and infinity become something else: refused
                whole = given.astype(np.int64)
            if np.array_equal(whole, given) and (whole < 0).sum() == (given < 0).sum():
                return whole
    except ValueError:  # rows of different lengths
        pass
    raise fail(field, values, accepted)


def any_of(words: Iterable[str]) -> str:
    """Words that would be accepted, as every refusal shows them.

    >>> print(any_of(["auto", "fast", "reference"]))
    'auto', 'fast' or 'reference'
    """
    *others, last = map(repr, words)
    return f"{', '.join(others)} or {last}" if others else last


def a_function(field: str, value: object, accepted: str = "a function") -> None:
    """Refuse what cannot be called.

    >>> a_function("combine", max)
    """
    if not callable(value):
        raise fail(field, value, accepted)


def one_among(value: object, words: Sequence[str]) -> str:
    """Words that would be accepted in the place of a value, and which of them is the nearest.

    >>> print(one_among("goon", ["go on", "mistake"]))
    'go on' or 'mistake' (did you mean 'go on'?)
    """
    near = difflib.get_close_matches(str(value), words, 1)
    return any_of(words) + (f" (did you mean {near[0]!r}?)" if near else "")


def one_of(field: str, value: object, choices: Sequence[_T]) -> _T:
    """Return `value` if it is one of a few words.

    >>> one_of("order", "log", ("log", "shuffled"))
    'log'
    >>> one_of("order", "shufled", ("log", "shuffled"))
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: order: got 'shufled', but need 'log' or 'shuffled' (did you ...
    """
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    raise fail(field, value, one_among(value, choices))


def known_version(form: Mapping[str, Any], version: int, *, needed: bool = False) -> None:
    """Refuse a form written by a version that this code does not know.

    >>> known_version({"version": 2}, 1)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: version: got 2, but need version 1
    """
    given = form.get("version", None if needed else version)
    if isinstance(given, bool) or given != version:
        raise fail("version", given, f"version {version}")


def known_kind(file: str, form: Mapping[str, Any], kind: str, version: int, what: str) -> None:
    """Refuse a file that is not what it should be, or of a version that this code does not know.

    >>> known_kind("a.json", {"kind": "x", "version": 1}, "rounds", 1, "a log of rounds")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: a.json: kind: got 'x', but need 'rounds'; is this a log of ...
    """
    if form.get("kind") != kind:
        raise fail(f"{file}: kind", form.get("kind"), f"{kind!r}; is this {what}?")
    given = form.get("version")
    if isinstance(given, bool) or given != version:
        raise fail(
            f"{file}: version", given, f"version {version}, the only one that this release reads"
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """What to say beside an unknown name: the nearest known one, or all of them.

    >>> nearest("halflife", ["half_life", "mode"])
    "did you mean 'half_life'?"
    >>> nearest("zzz", ["mode", "half_life"]), nearest("zzz", [])
    ("known are 'half_life', 'mode'", 'none is known')
    """
    known = sorted(known)
    near = difflib.get_close_matches(str(name), known, 1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known are " + ", ".join(map(repr, known)) if known else "none is known"


def known_names(
    where: str, given: Iterable[str], known: Iterable[str], what: str = "field"
) -> None:
    """Refuse unknown names: a misspelt setting must never be ignored.

    >>> known_names("problem", ["cost"], ["costs", "patterns"])
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: problem: unknown field 'cost'; did you mean 'costs'?
    """
    known = frozenset(known)
    for name in given:
        if name not in known:
            raise StopwiseError(f"{where}: unknown {what} {name!r}; {nearest(name, known)}")


def known_fields(where: str, form: object, known: Iterable[str]) -> None:
    """Refuse a form from a file that has no fields at all, or unknown ones.

    >>> known_fields("binning", [1], ["edges", "labels"])
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: binning: got [1], but need fields, such as 'edges', 'labels'
    """
    if not isinstance(form, Mapping):
        raise fail(where, form, "fields, such as " + ", ".join(map(repr, known)))
    known_names(where, form, known)


def names_settings(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function whose keywords are settings: unknown ones are refused by name.

    Its signature stays as it is for editors and `help`.

    >>> @names_settings
    ... def simulate(problem, *, horizon): ...
    >>> simulate("toy", horizont=10)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: simulate: unknown setting 'horizont'; did you mean 'horizon'?
    """
    return _naming(function, ())


def names_options(options: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """The same for a function that takes the keys of a `TypedDict` beside its own keywords.

    >>> from typing import TypedDict
    >>> @names_options(TypedDict("Options", {"mistake_cost": float}, total=False))
    ... def analyze(log, *, per_item=False, **options): ...
    >>> analyze("toy", per_items=True)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: analyze: unknown setting 'per_items'; did you mean 'per_item'?
    """
    return lambda function: _naming(function, options.__optional_keys__)


def _naming(function: Callable[_P, _R], options: Iterable[str]) -> Callable[_P, _R]:
    what = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = frozenset((*own, *options)) - {"self", "cls"}

    @wraps(function)
    def checked(*args: _P.args, **settings: _P.kwargs) -> _R:
        if not known.issuperset(settings):
            known_names(what, settings, known, "setting")
        return function(*args, **settings)

    return checked


def names_fields(cls: type[_C]) -> type[_C]:
    """Decorate a dataclass whose fields are settings: unknown ones are refused by name.

    >>> import dataclasses
    >>> @names_fields
    ... @dataclasses.dataclass
    ... class Stage:
    ...     cost: float
    >>> Stage(costs=1)
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: Stage: unknown setting 'costs'; did you mean 'cost'?
    """
    cls.__init__ = names_settings(cls.__init__)  # type: ignore[method-assign]
    return cls


def names_settings_of(*methods: str) -> Callable[[type[_C]], type[_C]]:
    """Decorate a class: the keywords of these methods are settings too.

    >>> @names_settings_of("report")
    ... class Learner:
    ...     def report(self, segment=None): ...
    >>> Learner().report(segmnet="night")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: report: unknown setting 'segmnet'; did you mean 'segment'?
    """

    def decorate(cls: type[_C]) -> type[_C]:
        for method in methods:
            setattr(cls, method, names_settings(vars(cls)[method]))
        return cls

    return decorate


def parse_toml(what: str, text: str) -> dict[str, Any]:
    """Parse TOML, or say in one line what is wrong with it.

    >>> parse_toml("grid", "seeds = [1, 2]")["seeds"]
    [1, 2]
    """
    import tomllib  # of use where a file of settings is read, and not to `import stopwise`

    try:
        return tomllib.loads(text)
    except (TypeError, AttributeError):  # releases of Python differ in how they refuse a number
        raise fail(what, text, "TOML as text") from None
    except tomllib.TOMLDecodeError as error:
        raise StopwiseError(f"{what}: this is not TOML ({error})") from None


def parse_json_object(what: str, text: str | bytes) -> Mapping[str, Any]:
    """Parse JSON that must be one object, without duplicate keys.

    >>> parse_json_object("problem", '{"costs": [1, 2]}')["costs"]
    [1, 2]
    """

    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        form: dict[str, Any] = {}
        for key, value in pairs:
            if key in form:
                raise StopwiseError(f"{what}: field {key!r} is given twice")
            form[key] = value
        return form

    try:
        value = json.loads(text, object_pairs_hook=no_duplicates)
    except StopwiseError:
        raise
    except TypeError:
        raise fail(what, text, "JSON as text") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StopwiseError(f"{what}: this is not JSON ({error})") from None
    except ValueError:  # the one that json raises itself: Python reads at most 4,300 digits
        raise StopwiseError(f"{what}: this JSON has a number of too many digits") from None
    except RecursionError:
        raise StopwiseError(f"{what}: this JSON is nested too deeply") from None
    if not isinstance(value, dict):
        raise fail(what, value, "a JSON object")
    return value
