"""The books as one form, for a snapshot, and going on from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopwise.checks import StopwiseError, whole_number
from stopwise.live.bookkeeping.bookkeeper import Bookkeeper
from stopwise.live.counters.forms import counters_to_form, restored
from stopwise.live.watching.drift import DriftWatch


def snapshot_of(books: Bookkeeper) -> dict[str, Any]:
    """What a snapshot holds, as JSON would."""
    ledger = books.ledger
    with ledger.lock:
        books.settle()
        state = counters_to_form(books.counters)
        if ledger.watch is not None:
            for name, part in state["segments"].items():
                part["drift"] = ledger.watch.form_of(name)
        form = {"settings": books.settings.to_form(), "seed": ledger.seed, "state": state}
        if books.items is not None:
            form["items"] = books.items.to_form()
        return form


def resume_from(books: Bookkeeper, form: Mapping[str, Any], what: str, *, fork: int | None) -> None:
    """Go on from what `snapshot_of` gave, in the place of all that the books held.

    Args:
        books: whose; they have no store.
        form: the snapshot.
        what: where it comes from, for errors.
        fork: None resumes exactly; a new seed keeps the evidence only. See `Learner.load`.
    """
    for field in ("settings", "seed", "state"):
        if not isinstance(form, Mapping) or field not in form:
            raise StopwiseError(f"{what}: the field {field!r} is missing")
    books.settings.check_same(form["settings"], what, exactly=fork is None)
    seed = whole_number("seed", form["seed"] if fork is None else fork, least=0)
    ledger = books.ledger
    with ledger.lock:
        books.settle()
        counters = restored(books.counters, form["state"])
        watch = ledger.watch and DriftWatch(books.stage_count, ledger.watch.settings)
        if watch is not None:
            for name, part in form["state"]["segments"].items():
                if part.get("drift") is not None:
                    watch.restore(name, part["drift"])
        if books.items is not None:
            books.items.restore(form.get("items"))
        ledger.replace(counters, watch, seed)
