"""Comparators from a user's own functions, plain or async."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from stopwise.checks import a_function, fail, names_settings, whole_number
from stopwise.live.calling.locks import ForkSafeLock
from stopwise.live.comparing.comparator import OF_TWO, Agree, Comparator, KeyFunction
from stopwise.live.comparing.naming import name_of
from stopwise.live.comparing.texts import exact, folded


@names_settings
def by_key(key: KeyFunction, label: str | None = None, *, quick: bool = False) -> Comparator:
    """Answers agree when a function of each gives the same; None from it is an abstention.

    Args:
        key: a function of an answer, plain or async.
        label: stands in snapshots; without one, functions are told apart as by `name_of`.
        quick: whether it may be called on an event loop (else async cascades use a thread).

    >>> by_key(len).agrees("abc", "xyz")
    True
    """
    return Comparator(label or f"by_key({name_of(key)})", key=key, quick=quick)


@names_settings
def by(agree: Agree, label: str | None = None, *, quick: bool = False) -> Comparator:
    """Answers agree when a function of two says True; it need not be transitive.

    Args:
        agree: a function of two answers, plain or async, that returns True or False.
        label: stands in snapshots; without one, functions are told apart as by `name_of`.
        quick: whether it may be called on an event loop (else async cascades use a thread).

    >>> by(lambda one, two: one[0] == two[0]).agrees("abc", "axe")
    True
    """
    return Comparator(label or f"by({name_of(agree)})", agree=agree, quick=quick)


@names_settings
def judge(agree: Agree, label: str | None = None, *, remember: int = 10_000) -> Comparator:
    """A judge of two answers, such as a language model: may be async, may cost, may not know.

    Args:
        agree: a function of two answers that returns True, False or None (it cannot say: then the
            pair is not counted), or `Reported(verdict, cost=...)`. What it costs is part of what
            the round costs.
        label: stands in snapshots.
        remember: how many verdicts are kept, so that a pair of answers (in either order) that comes
            again is neither asked nor paid for again; 0 asks every time.

    >>> same_length = judge(lambda one, two: len(one) == len(two) if one and two else None)
    >>> same_length.agrees("abc", "xyz"), same_length.agrees("abc", "")
    (True, None)
    """
    a_function("agree", agree, OF_TWO)
    most = whole_number("remember", remember, least=0)
    given = label or f"judge({name_of(agree)})"
    asked = _remembering(agree, most) if most else agree
    return Comparator(given, agree=asked, may_abstain=True)


def _remembering(agree: Agree, most: int) -> Agree:
    """The same function of two, which keeps its latest verdicts."""
    verdicts: OrderedDict[Hashable, bool | None] = OrderedDict()
    lock = ForkSafeLock()

    def recall(one: Any, two: Any) -> tuple[Hashable, Any]:
        try:
            pair = frozenset(((type(one), one), (type(two), two)))
            with lock.lock:
                return pair, verdicts.get(pair, _UNKNOWN)
        except TypeError:  # answers that cannot be hashed are judged every time
            return None, _UNKNOWN

    def keep(pair: Hashable, verdict: Any) -> Any:
        if pair is not None:
            bare = getattr(verdict, "output", verdict)
            with lock.lock:
                verdicts[pair] = bare
                if len(verdicts) > most:
                    verdicts.popitem(last=False)
        return verdict

    if inspect.iscoroutinefunction(agree):

        async def ask_async(one: Any, two: Any) -> Any:
            pair, verdict = recall(one, two)
            return keep(pair, await agree(one, two)) if verdict is _UNKNOWN else verdict

        return ask_async

    def ask(one: Any, two: Any) -> Any:
        pair, verdict = recall(one, two)
        if verdict is not _UNKNOWN:
            return verdict
        found = agree(one, two)
        if inspect.isawaitable(found):

            async def later() -> Any:
                return keep(pair, await found)

            return later()
        return keep(pair, found)

    return ask


def make_comparator(comparator: Comparator | Agree | str) -> Comparator:
    """A comparator from what a user may write: one of these, "exact", "folded", or a function.

    >>> make_comparator("folded").label
    'folded'
    """
    if isinstance(comparator, Comparator):
        return comparator
    if comparator == "exact":
        return exact()
    if comparator == "folded":
        return folded()
    if callable(comparator):
        return by(comparator)
    raise fail("comparator", comparator, "a Comparator, a function of two, 'exact' or 'folded'")


_UNKNOWN = object()
