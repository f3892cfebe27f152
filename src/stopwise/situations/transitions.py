"""Transition counts: from the situation after a stage to the situation after the next.

A rule that looks at outputs sends only hard items deeper, so of the items on which two stages were
seen together far more differ than of all items: pair counters fed by such a rule are biased. But
the decision after a stage looks only at the situation after that stage. So the items that went on
*from a situation* are a fair sample of *that situation*, and their transitions can be counted
whatever the rule was. The counts add up over machines and days, and their number is bounded by
that of the keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stopwise.arrays import IntArray
from stopwise.checks import StopwiseError, fail, known_fields, known_version, whole_number
from stopwise.situations.binning import Binning
from stopwise.situations.flow import check_flow
from stopwise.situations.keys import decode, situations
from stopwise.situations.observations import Observations
from stopwise.situations.whole_rows import WholeRows

VERSION = 1
_COUNTERS = ("first", "moves", "full", "ends", "labelled")

Change = tuple[dict[Any, int], Any, int]
"""Counts, a key of theirs, and the number that will stand there."""


class Transitions:
    """Counts of one cascade under one binning.

    Attributes:
        first: how many items were in each situation after the first stage.
        moves: for each stage but the last, how many items went from which situation after it to
            which one after the next stage.
        full: of the full runs alone (rounds sent to the end with a known probability, whatever
            their outputs), how many ended in each situation: an unbiased sample of all items.
        ends: of the full runs again, for each stage but the last, how many went from which
            situation after it to which at the end, without a stop in between to forget by; none
            for two stages, where the moves say the same.
        labelled: of the items that somebody labelled, how often which group of stages was right
            (-1: none), by the situation at the end.

    >>> rows = Observations(("a", "b"), np.array([[0, 0], [0, 1], [1, -2]]))
    >>> counts = Transitions.of(rows, Binning.fit(rows))
    >>> counts.rounds, counts.reached.tolist()
    (3, [3, 2])
    """

    def __init__(self, binning: Binning) -> None:
        self.binning = binning
        self.first: dict[int, int] = {}
        self.moves: list[dict[tuple[int, int], int]] = [{} for _ in range(binning.stage_count - 1)]
        self.full: dict[int, int] = {}
        steps = binning.stage_count - 1
        self.ends: list[dict[tuple[int, int], int]] = [{} for _ in range(steps if steps > 1 else 0)]
        self.labelled: dict[tuple[int, int], int] = {}

    @classmethod
    def of(
        cls, rows: Observations, binning: Binning, *, full: NDArray[np.bool_] | None = None
    ) -> Transitions:
        """Count rows; `full` says which were full runs, by default all rows if all are complete.

        Under a binning for whole rows, only full runs are counted.
        """
        counts = cls(binning)
        if not binning.whole:
            counts.add_keys(situations(rows, binning), full)
            return counts
        kept = rows.where(rows.complete if full is None else full)
        counts.add_whole(WholeRows.of(kept, binning).keys())
        return counts

    # ---- counting -----------------------------------------------------------------------------

    def add(self, path: Sequence[int], *, full: bool = False) -> None:
        """Count one round, given by its situations after each stage called."""
        for counts, key, number in self.changes(path, full=full):
            counts[key] = number

    def changes(self, path: Sequence[int], *, full: bool = False) -> list[Change]:
        """What `add` changes, as the numbers that will stand there: made twice, it is the same."""
        stage_count = self.binning.stage_count
        if not 1 <= len(path) <= stage_count:
            raise fail("path", len(path), f"1 to {stage_count} situations")
        if full and len(path) < stage_count:
            raise fail("full", full, "a path through every stage, where the round was a full run")
        last = path[-1]
        found: list[Change] = [(self.first, path[0], self.first.get(path[0], 0) + 1)]
        for moves, move in zip(self.moves, pairwise(path), strict=False):
            found.append((moves, move, moves.get(move, 0) + 1))
        if full:
            found.append((self.full, last, self.full.get(last, 0) + 1))
            for ends, before in zip(self.ends, path, strict=False):
                found.append((ends, (before, last), ends.get((before, last), 0) + 1))
        return found

    def add_keys(self, keys: IntArray, full: NDArray[np.bool_] | None = None) -> None:
        """Count many rounds: a row of situations each, -1 for stages not called."""
        complete = keys[:, -1] >= 0
        if full is None:
            full = complete if complete.all() else np.zeros(len(keys), dtype=np.bool_)
        if (full & ~complete).any():
            raise fail("full", "a row that stopped early", "full runs that called every stage")
        found = [np.unique(column, return_inverse=True) for column in keys.T]
        _add_counts(self.first, found[0])
        for stage, moves in enumerate(self.moves):
            _add_counts(moves, found[stage], found[stage + 1], keys[:, stage + 1] >= 0)
        _add_counts(self.full, found[-1], where=full)
        for stage, ends in enumerate(self.ends):
            _add_counts(ends, found[stage], found[-1], full)

    def add_whole(self, keys: IntArray) -> None:
        """Count whole rows, each given by its two numbers."""
        found, number = np.unique(keys, axis=0, return_counts=True)
        for (one, two), times in zip(found.tolist(), number.tolist(), strict=True):
            self.first[one] = self.first.get(one, 0) + times
            self.moves[0][one, two] = self.moves[0].get((one, two), 0) + times

    def add_labels(self, rows: Observations, truth: IntArray) -> None:
        """Count labels of complete rows; `truth` has the code of each right answer, -1 unknown.

        Only rows whose outputs differ tell whom to believe; the others are passed over.

        >>> rows = Observations(("a", "b"), np.array([[0, 1], [0, 0]]))
        >>> counts = Transitions(Binning.fit(rows))
        >>> counts.add_labels(rows, np.array([1, 0]))
        >>> list(counts.labelled.values())
        [1]
        """
        keys = situations(rows, self.binning)[:, -1]
        for row, codes, right in zip(keys.tolist(), rows.codes, truth.tolist(), strict=True):
            groups = decode(row).partition if row >= 0 else ()
            if right < 0 or not groups or (max(groups) <= 0 and min(groups) >= 0):
                continue
            at = np.flatnonzero(codes == right)
            key = (row, groups[at[0]] if len(at) else -1)
            self.labelled[key] = self.labelled.get(key, 0) + 1

    def merge(self, other: Transitions) -> None:
        """Add what another machine counted: rounds of its own, which these counts do not hold yet.

        Counts do not say whose they are, so that nothing notices rounds that are added twice. Of
        machines that began with one fitted rule, add `since(rule.counts)`.

        >>> binning = Binning(edges=((), ()), labels=((), ()))
        >>> one, two = Transitions(binning), Transitions(binning)
        >>> one.add([5]), two.add([5, 7]), one.merge(two)
        (None, None, None)
        >>> one.first, one.moves
        ({5: 2}, [{(5, 7): 1}])
        """
        if other is self:
            raise fail("merge", "these counts themselves", "those of another machine")
        self._check_bins(other)
        _add_all(self.first, other.first)
        for own, theirs in zip(self.moves, other.moves, strict=True):
            _add_all(own, theirs)
        _add_all(self.full, other.full)
        for own, theirs in zip(self.ends, other.ends, strict=True):
            _add_all(own, theirs)
        _add_all(self.labelled, other.labelled)

    def since(self, base: Transitions) -> Transitions:
        """What was counted beyond the counts that it all began with: those of a fitted rule.

        Machines that began with the same rule hold its counts each: this is what to add up, so that
        the rule's own rows are counted once.

        >>> binning = Binning(edges=((), ()), labels=((), ()))
        >>> rule, machine = Transitions(binning), Transitions(binning)
        >>> rule.add([5, 7]), machine.merge(rule), machine.add([5])
        (None, None, None)
        >>> machine.since(rule).first, machine.since(rule).moves
        ({5: 1}, [{}])
        """
        self._check_bins(base)
        left = Transitions(self.binning)
        left.first = _less(self.first, base.first)
        left.moves = [_less(own, less) for own, less in zip(self.moves, base.moves, strict=True)]
        left.full = _less(self.full, base.full)
        left.ends = [_less(own, less) for own, less in zip(self.ends, base.ends, strict=True)]
        left.labelled = _less(self.labelled, base.labelled)
        return left

    def _check_bins(self, other: Transitions) -> None:
        if other.binning != self.binning:
            raise StopwiseError(
                f"transitions: got counts of the binning {other.binning.epoch}, but need those of"
                f" {self.binning.epoch}: counts by other bins are other counts"
            )

    # ---- reading ------------------------------------------------------------------------------

    @property
    def stage_count(self) -> int:
        """How many stages the cascade has."""
        return self.binning.stage_count

    @property
    def rounds(self) -> int:
        """Rounds counted."""
        return sum(self.first.values())

    @property
    def reached(self) -> IntArray:
        """How many rounds called each stage."""
        counts = [self.rounds, *(sum(moves.values()) for moves in self.moves)]
        return np.asarray(counts, dtype=np.int64)

    def visits(self, stage: int) -> dict[int, int]:
        """How many rounds were in each situation after a stage, those that stopped there too."""
        if stage == 0:
            return dict(self.first)
        found: dict[int, int] = {}
        for (_, after), number in self.moves[stage - 1].items():
            found[after] = found.get(after, 0) + number
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transitions):
            return NotImplemented
        return self.binning == other.binning and all(
            getattr(self, name) == getattr(other, name) for name in _COUNTERS
        )

    __hash__ = None  # type: ignore[assignment]  # it changes as it counts

    # ---- keeping ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it: moves by where they start, so that no key is written twice."""
        return {
            "version": VERSION,
            "binning": self.binning.to_dict(),
            "first": {f"{key:x}": number for key, number in sorted(self.first.items())},
            "moves": [_write_pairs(moves) for moves in self.moves],
            "full": {f"{key:x}": number for key, number in sorted(self.full.items())},
            "ends": [_write_pairs(ends) for ends in self.ends],
            "labelled": [[f"{key:x}", group, n] for (key, group), n in self.labelled.items()],
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Transitions:
        """Read what `to_dict` wrote.

        >>> counts = Transitions(Binning(edges=((), ()), labels=((), ())))
        >>> counts.add([5, 7], full=True)
        >>> Transitions.from_dict(counts.to_dict()) == counts
        True
        """
        known_fields("transitions", form, ("version", "binning", *_COUNTERS))
        known_version(form, VERSION, needed=True)
        try:
            counts = cls(Binning.from_dict(form["binning"]))
            counts.first, counts.full = _read(form["first"]), _read(form["full"])
            for key, group, number in form.get("labelled", ()):
                right = whole_number("labelled", group, least=-1)
                counts.labelled[_key(key), right] = whole_number("labelled", number, least=1)
            for name in ("moves", "ends"):
                own = getattr(counts, name)
                # Older files lack the ends after the last stage but one.
                fewest = len(own) - (name == "ends" and len(own) > 0)
                if not fewest <= len(form[name]) <= len(own):
                    raise fail(name, len(form[name]), f"{len(own)} steps")
                for pairs, step in zip(own, form[name], strict=False):
                    for before, targets in step.items():
                        pairs.update({(_key(before), a): n for a, n in _read(targets).items()})
        except StopwiseError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise fail("transitions", str(error), "counts as to_dict writes them") from None
        check_flow(counts, whole=counts.binning.whole)
        return counts


Different = tuple[IntArray, IntArray]
"""The different keys of a column, and the place of each row's key among them."""


def _add_counts(
    counts: dict[Any, int],
    before: Different,
    after: Different | None = None,
    where: NDArray[np.bool_] | None = None,
) -> None:
    """Add each different key, or pair of keys, as often as it occurs among these rows."""
    keys, at = before
    code = at if after is None else at * len(after[0]) + after[1]
    if where is not None:
        code = code[where]
    found, number = np.unique(code, return_counts=True)
    if after is None:
        names: list[Any] = keys[found].tolist()
    else:
        first, second = np.divmod(found, len(after[0]))
        names = list(zip(keys[first].tolist(), after[0][second].tolist(), strict=True))
    for name, times in zip(names, number.tolist(), strict=True):
        counts[name] = counts.get(name, 0) + times


def _write_pairs(pairs: Mapping[tuple[int, int], int]) -> dict[str, dict[str, int]]:
    step: dict[str, dict[str, int]] = {}
    for (before, after), number in sorted(pairs.items()):
        step.setdefault(f"{before:x}", {})[f"{after:x}"] = number
    return step


def _add_all(own: dict[Any, int], theirs: Mapping[Any, int]) -> None:
    for key, number in theirs.items():
        own[key] = own.get(key, 0) + number


def _less(own: Mapping[Any, int], base: Mapping[Any, int]) -> dict[Any, int]:
    if any(own.get(key, 0) < number for key, number in base.items()):
        raise StopwiseError("transitions: got a base that these counts did not begin with")
    left = {key: number - base.get(key, 0) for key, number in own.items()}
    return {key: number for key, number in left.items() if number}


def _read(form: Mapping[str, Any]) -> dict[int, int]:
    return {_key(key): whole_number("count", number, least=1) for key, number in form.items()}


def _key(text: object) -> int:
    try:
        return int(str(text), 16)
    except ValueError:
        raise fail("key", text, "a situation as a hexadecimal number") from None
