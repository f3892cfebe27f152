"""Rounds in slices of time: what is in each, checked by hand and against a plain count."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stopwise.service.database.rounds import StoredRound
from stopwise.service.views.over_time import slices_of

NAMES = ("a", "b", "c")
forms = st.fixed_dictionaries(
    {
        "stage": st.sampled_from([None, 0, 1, 2]),
        "cost": st.integers(0, 9).map(float),
        "codes": st.lists(st.integers(-1, 2), max_size=3),
        "depth": st.integers(0, 2),
    }
)


def test_by_hand() -> None:
    form = {"stage": 1, "cost": 2.0, "codes": [0, 1, 0], "depth": 2}
    other = {"stage": None, "cost": 1.0, "codes": [0, -1], "depth": 1}
    found = slices_of(
        [StoredRound("1", "", 12.0, form), StoredRound("2", "", 19.0, other),
         StoredRound("3", "", 31.0, form)],
        NAMES,
    )  # fmt: skip
    assert (found.seconds, found.word) == (10, "10 seconds")
    first, last = found.slices
    assert (first.at, first.requests, first.spent, first.shares) == (10.0, 2, 3.0, (0.0, 1.0, 0.0))
    assert [(p.shallow, p.deep, p.disagreement, p.seen) for p in first.pairs] == [
        ("a", "b", 1.0, 1), ("a", "c", 0.0, 1), ("b", "c", 1.0, 1)
    ]  # fmt: skip
    assert last.at == 30.0


@given(st.lists(st.tuples(st.integers(0, 20_000), forms), min_size=1, max_size=30))
def test_nothing_is_lost_or_doubled(given_rounds: list[tuple[int, dict[str, Any]]]) -> None:
    rounds = [
        StoredRound(str(at), "", float(when), json.loads(json.dumps(form)))
        for at, (when, form) in enumerate(given_rounds)
    ]
    found = slices_of(rounds, NAMES)
    assert sum(one.requests for one in found.slices) == len(rounds)
    assert sum(one.spent for one in found.slices) == sum(form["cost"] for _, form in given_rounds)
    times = [one.at for one in found.slices]
    assert times == sorted(set(times))
    for i in range(3):
        for j in range(i + 1, 3):
            codes = [form["codes"] for _, form in given_rounds if len(form["codes"]) > j]
            both = [(c[i], c[j]) for c in codes if min(c[i], c[j]) >= 0]
            pairs = [
                p
                for s in found.slices
                for p in s.pairs
                if (p.shallow, p.deep) == (NAMES[i], NAMES[j])
            ]
            assert sum(p.seen for p in pairs) == len(both)
            differ = sum(one != two for one, two in both)
            assert round(sum(p.seen * p.disagreement for p in pairs)) == differ
