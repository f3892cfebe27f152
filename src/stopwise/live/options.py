"""The keywords of a learner: typed for editors, and none unknown."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TypedDict

from stopwise.checks import StopwiseError
from stopwise.live.answering import Combine
from stopwise.live.comparing import Agree, Comparator
from stopwise.live.settings import Mode
from stopwise.live.stores.base import Store
from stopwise.live.watching.drift import Drift, DriftAlarm


class LearnerOptions(TypedDict, total=False):
    """The keywords that `Learner` takes, and `Cascade` hands on; `Learner` says what they do."""

    mistake_cost: float
    seed: int
    comparator: Comparator | Agree | str
    combine: Combine | None
    measured: bool
    half_life: float | None
    full_run_rate: float
    drift: Drift | None
    on_drift: Callable[[DriftAlarm], None] | None
    mode: Mode
    run_to: int | str
    item_budget: float | None
    run_budget: float | None
    segment_strength: float
    store: Store | None


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a keyword that is none of the settings, and name the nearest that is.

    >>> refuse_unknown(["halflife"], ["half_life", "mode"], "Learner")
    Traceback (most recent call last):
    ...
    stopwise.checks.StopwiseError: halflife: Learner has no such setting; did you mean half_life?
    """
    names = list(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else "it takes " + ", ".join(names)
            raise StopwiseError(f"{name}: {what} has no such setting; {hint}")
