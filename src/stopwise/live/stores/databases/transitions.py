"""Transitions in a database: rows of whole numbers, added to in the transaction of the rounds.

`value` is what has been counted, `ruled` what of it the rule in force is made from. Whoever brings
the rounds to the next mark cuts new bins if that is due and moves `ruled` up, in the same
transaction; so all who share a cascade decide by the same rule, a restart goes on with it, and two
machines count what one would have counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from stopwise.checks import StopwiseError, fail, parse_json_object
from stopwise.live.items.counting import count_rows, cut, is_cut_between, settles_at
from stopwise.live.items.row import ItemRow
from stopwise.live.items.shared import ItemState
from stopwise.live.limits import check_whole
from stopwise.live.stores.connection import Connection
from stopwise.live.stores.databases.schema import ADD_TRANSITIONS
from stopwise.policies.per_item.learning import rounds_until_next
from stopwise.situations.binning import Binning
from stopwise.situations.transitions import Transitions

_KINDS = ("first", "moves", "full", "ends", "labelled")


class _Head(NamedTuple):
    """The one row of a cascade: which bins, how many rounds, when the rule is made again."""

    epoch: str | None
    binning: str | None
    settled: bool
    base: int
    rounds: int
    due: int
    change: int


class SqlTransitions:
    """The transitions of one cascade. All methods are called in the store's thread.

    Args:
        where: how the database is named in errors.
        cascade: its name there.
        stage_count: how many stages.
        first_rounds: after this many rounds bins are cut for the first time.
        take: given what to decide by, whenever that has changed.
        given: the counts of a rule to begin with.
        whole: whether only full runs count, as whole rows.
        promised: whether rules keep a promise, whose price follows the rounds.
    """

    def __init__(
        self,
        where: str,
        cascade: str,
        stage_count: int,
        first_rounds: int,
        take: Callable[[ItemState], None],
        given: Transitions | None,
        *,
        whole: bool = False,
        promised: bool = False,
    ) -> None:
        self._where = where
        self._cascade = cascade
        self._stages = stage_count
        self._first = first_rounds
        self._take = take
        self._given = given
        self._whole = whole
        self._steady = whole or promised
        self._binning: tuple[str, Binning] | None = None
        self._seen = -1  # the last change of the rule that was taken

    # ---- attaching ----------------------------------------------------------------------------

    def attach(self, connection: Connection) -> None:
        """Make the cascade's row; where a rule is given whose bins are not in use, begin with it.

        Counts by other bins stay where they are: they count again if their rule comes back.
        """
        connection.query(
            "INSERT INTO stopwise_situations (cascade, due) VALUES (?, ?)"
            " ON CONFLICT (cascade) DO NOTHING",
            (self._cascade, self._first),
        )
        given = self._given
        if given is None or self._head(connection).epoch == given.binning.epoch:
            return
        epoch = given.binning.epoch
        there = connection.query(
            "SELECT COUNT(*) FROM stopwise_transitions WHERE cascade = ? AND epoch = ?",
            (self._cascade, epoch),
        )[0][0]
        if not there:
            self._add(connection, given)
        rounds = check_whole("rounds", int(self._total(connection, epoch)))
        head = _Head(
            epoch, json.dumps(given.binning.to_dict()), True, given.rounds, rounds, rounds, 0
        )
        self._mark(connection, head, self._next_change(connection))

    def _next_change(self, connection: Connection) -> int:
        return int(
            connection.query(
                "UPDATE stopwise_cascades SET change = change + 1 WHERE cascade = ?"
                " RETURNING change",
                (self._cascade,),
            )[0][0]
        )

    # ---- writing ------------------------------------------------------------------------------

    def append(self, connection: Connection, rows: Sequence[ItemRow], change: int) -> None:
        """Count rounds; bins and rule are made again where a mark is reached."""
        if self._whole:
            rows = [row for row in rows if row.full]
        if not rows:
            return
        head = self._head(connection)
        head, before = head._replace(rounds=head.rounds + len(rows)), head.rounds
        if head.binning is not None:
            self._add(connection, count_rows(rows, self._binning_of(head)))
        if not head.settled:
            self._keep(connection, rows, before)
        if head.rounds < head.due:
            connection.query(
                "UPDATE stopwise_situations SET rounds = ? WHERE cascade = ?",
                (head.rounds, self._cascade),
            )
            return
        if not head.settled and (
            head.binning is None or is_cut_between(before, head.rounds, self._first)
        ):
            head = self._cut(connection, head)
        self._mark(connection, head, change)

    def _keep(self, connection: Connection, rows: Sequence[ItemRow], before: int) -> None:
        """Keep rounds as they are, for as long as bins may be cut again."""
        connection.many(
            "INSERT INTO stopwise_item_rows (cascade, number, item, confidences)"
            " VALUES (?, ?, ?, ?)",
            [
                (
                    self._cascade, before + 1 + at, json.dumps(row.to_form()),
                    json.dumps(row.confidences),
                )
                for at, row in enumerate(rows)
            ],
        )  # fmt: skip

    def _cut(self, connection: Connection, head: _Head) -> _Head:
        """Cut new bins and count all rounds by them: a new epoch."""
        rows = [
            ItemRow.from_form(
                parse_json_object(f"{self._where}: item", item),
                len(json.loads(sure)),
                json.loads(sure),
            )
            for item, sure in connection.query(
                "SELECT item, confidences FROM stopwise_item_rows WHERE cascade = ?"
                " ORDER BY number",
                (self._cascade,),
            )
        ]
        binning = cut(rows, self._stages, whole=self._whole)
        connection.query("DELETE FROM stopwise_transitions WHERE cascade = ?", (self._cascade,))
        self._add(connection, count_rows(rows, binning))
        settled = head.rounds >= settles_at(self._first)
        if settled:
            connection.query("DELETE FROM stopwise_item_rows WHERE cascade = ?", (self._cascade,))
        return head._replace(
            epoch=binning.epoch, binning=json.dumps(binning.to_dict()), settled=settled
        )

    def _mark(self, connection: Connection, head: _Head, change: int) -> None:
        """From here on the rule is that of all counts so far."""
        connection.query(
            "UPDATE stopwise_transitions SET ruled = value"
            " WHERE cascade = ? AND epoch = ? AND ruled <> value",
            (self._cascade, head.epoch),
        )
        due = head.rounds + rounds_until_next(
            head.rounds, self._first, settled=head.settled, steady=self._steady
        )
        connection.query(
            "UPDATE stopwise_situations SET epoch = ?, binning = ?, settled = ?, base = ?,"
            " rounds = ?, due = ?, change = ? WHERE cascade = ?",
            (
                head.epoch, head.binning, int(head.settled), head.base, head.rounds, due, change,
                self._cascade,
            ),
        )  # fmt: skip

    def merge(self, connection: Connection, counts: Transitions, change: int) -> None:
        """Add what another machine counted by the same bins."""
        head = self._head(connection)
        if head.epoch is None and not head.rounds:
            self._add(connection, counts)
            form = json.dumps(counts.binning.to_dict())
            head = _Head(counts.binning.epoch, form, True, 0, head.rounds, 0, 0)
        elif head.epoch != counts.binning.epoch or not head.settled:
            raise StopwiseError(
                f"transitions: got counts of the binning {counts.binning.epoch}, but need those of"
                f" the settled binning of the store ({head.epoch})"
            )
        else:
            self._add(connection, counts)
        more = counts.rounds
        head = head._replace(base=head.base + more, rounds=head.rounds + more)
        self._mark(connection, head, change)

    def _add(self, connection: Connection, counts: Transitions) -> None:
        epoch = counts.binning.epoch
        connection.many(
            ADD_TRANSITIONS,
            [(self._cascade, epoch, *entry, number) for *entry, number in entries_of(counts)],
        )

    # ---- reading ------------------------------------------------------------------------------

    def refresh(self, connection: Connection) -> None:
        """Tell what to decide by, if that has changed."""
        head = self._head(connection)
        if head.change == self._seen:
            return
        ruled = None if head.epoch is None else self._read(connection, head, "ruled")
        self._take(ItemState(ruled, head.settled, head.base))
        self._seen = head.change

    def read(self, connection: Connection) -> Transitions | None:
        """All that has been counted; None before the first bins are cut."""
        head = self._head(connection)
        return None if head.epoch is None else self._read(connection, head, "value")

    def _read(self, connection: Connection, head: _Head, column: str) -> Transitions:
        rows = connection.query(
            f"SELECT kind, stage, before, after, {column} FROM stopwise_transitions"
            f" WHERE cascade = ? AND epoch = ? AND {column} <> 0",
            (self._cascade, head.epoch),
        )
        return from_entries(self._binning_of(head), rows, self._where)

    def _head(self, connection: Connection) -> _Head:
        # Writers have locked the row of the cascade already, so that this one needs no lock.
        row = connection.query(
            "SELECT epoch, binning, settled, base, rounds, due, change FROM stopwise_situations"
            " WHERE cascade = ?",
            (self._cascade,),
        )[0]
        numbers = [check_whole(f"{self._where}: situations", int(value)) for value in row[2:]]
        return _Head(row[0], row[1], bool(numbers[0]), *numbers[1:])

    def _binning_of(self, head: _Head) -> Binning:
        assert head.epoch is not None
        assert head.binning is not None
        if self._binning is None or self._binning[0] != head.epoch:
            form = parse_json_object(f"{self._where}: binning", head.binning)
            self._binning = head.epoch, Binning.from_dict(form)
        return self._binning[1]

    def _total(self, connection: Connection, epoch: str) -> Any:
        return connection.query(
            "SELECT COALESCE(SUM(value), 0) FROM stopwise_transitions"
            " WHERE cascade = ? AND epoch = ? AND kind = 'first'",
            (self._cascade, epoch),
        )[0][0]


def entries_of(counts: Transitions) -> Iterator[tuple[str, int, int, int, int]]:
    """Counts as rows: kind, stage, the situation before, the one after, how often.

    >>> counts = Transitions(Binning(edges=((), ()), labels=((), ())))
    >>> counts.add([5, 7])
    >>> list(entries_of(counts))
    [('first', 0, 5, 0, 1), ('moves', 0, 5, 7, 1)]
    """
    for key, number in counts.first.items():
        yield "first", 0, key, 0, number
    for stage, moves in enumerate(counts.moves):
        for (before, after), number in moves.items():
            yield "moves", stage, before, after, number
    for key, number in counts.full.items():
        yield "full", 0, key, 0, number
    for stage, ends in enumerate(counts.ends):
        for (before, after), number in ends.items():
            yield "ends", stage, before, after, number
    for (key, group), number in counts.labelled.items():
        yield "labelled", 0, key, group, number


def from_entries(
    binning: Binning, rows: Sequence[Sequence[Any]], where: str = "transitions"
) -> Transitions:
    """Counts from such rows; what cannot be one is refused, for a file may come from elsewhere.

    >>> from_entries(Binning(edges=((), ()), labels=((), ())), [("first", 0, 5, 0, 2)]).rounds
    2
    """
    counts = Transitions(binning)
    for kind, stage, before, after, number in rows:
        if kind not in _KINDS or any(type(one) is not int for one in (stage, before, after)):
            raise fail(f"{where}: transitions", (kind, stage, before, after), "a row of counts")
        times = check_whole(f"{where}: transitions", number)
        if kind in ("moves", "ends"):
            steps = getattr(counts, kind)
            if not 0 <= stage < len(steps):
                raise fail(f"{where}: transitions: stage", stage, f"0 to {len(steps) - 1}")
            steps[stage][before, after] = times
        elif kind == "labelled":
            counts.labelled[before, after] = times
        else:
            getattr(counts, kind)[before] = times
    return counts
