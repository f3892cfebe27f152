from __future__ import annotations

import numpy as np
import pytest

from made_up_cascades import made_up
from stopwise.arrays import FloatArray, IntArray
from stopwise.situations.binning import Binning
from stopwise.situations.keys import LEVELS, decode, situations
from stopwise.situations.leaning import LEAST_LEAN, MOST_LEAN, ROWS_FOR_LEAN
from stopwise.situations.observations import Observations
from stopwise.situations.references_base import differs_from
from stopwise.situations.risks import carry_back
from stopwise.situations.transitions import Transitions


def loss(groups: IntArray) -> FloatArray:
    return differs_from(groups, groups.shape[1] - 1)


def by_hand(rows: Observations, counts: Transitions) -> dict[int, list[float]]:
    """The same risks by plain loops over rows: an independent transcription for two stages."""
    first = situations(rows, counts.binning)[:, 0].tolist()
    above: dict[int, list[float]] = {}
    for level, shift in enumerate(LEVELS):
        here: dict[int, list[int]] = {}
        for at, key in enumerate(first):
            here.setdefault(key >> shift, []).append(at)
        means, parents = {}, {}
        for key, members in here.items():
            differ = [
                sum(rows.codes[at, j] != rows.codes[at, -1] for at in members) for j in (0, 1)
            ]
            means[key] = [d / len(members) for d in differ]
            up = first[members[0]] >> LEVELS[max(level - 1, 0)]
            parents[key] = above[up] if level else [0.5, 0.5]
        within = sum(len(here[key]) * sum(p * (1 - p) for p in parents[key]) for key in here)
        between = sum(
            len(here[key])
            * sum((m - p) ** 2 for m, p in zip(means[key], parents[key], strict=True))
            - sum(p * (1 - p) for p in parents[key])
            for key in here
        )
        most = min(max(len(first) / ROWS_FOR_LEAN, MOST_LEAN[0]), MOST_LEAN[1])
        lean = most
        if len(here) > 1 and between > 0:
            lean = min(max(within / between, LEAST_LEAN), most)
        lean = lean if level else 1.0
        above = {
            key: [
                (len(here[key]) * m + lean * p) / (len(here[key]) + lean)
                for m, p in zip(means[key], parents[key], strict=True)
            ]
            for key in here
        }
    return above


def test_risks_of_two_stages_are_those_of_plain_loops() -> None:
    rows, _ = made_up(500, (0.2, 1.2), seed=9)
    counts = Transitions.of(rows, Binning.fit(rows))
    found = carry_back(counts, loss)[0]
    expected = by_hand(rows, counts)
    assert len(expected) > 10
    for key, losses in expected.items():
        assert found.look_up(np.array([key]))[0].tolist() == pytest.approx(losses)


def test_full_runs_count_with_what_they_ended_in() -> None:
    """The last stage repeats the first, which the second's situation does not say by label."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, 3, 6000)
    codes = np.stack([first, rng.integers(0, 3, 6000), np.where(first == 0, 0, 1)], axis=1)
    rows = Observations(("a", "b", "c"), codes)
    counts = Transitions.of(rows, Binning.fit(rows))
    found = carry_back(counts, loss)[0].look_up(situations(rows, counts.binning)[:, 0])[:, 0]
    for label, differs in enumerate((0.0, 0.0, 1.0)):
        assert found[first == label] == pytest.approx(differs, abs=0.05)


def test_a_situation_never_met_has_the_risks_of_its_coarser_key() -> None:
    rows, _ = made_up(500, (0.2, 0.8, 1.2), seed=9)
    counts = Transitions.of(rows, Binning.fit(rows))
    risks = carry_back(counts, loss)[1]
    known = int(risks.keys[-1][0])
    other = known | 0b11111  # a cell of features that no item was in
    assert decode(other).partition == decode(known).partition
    above = risks.keys[4].tolist().index(other >> LEVELS[4])
    assert risks.look_up(np.array([other]))[0] == pytest.approx(risks.losses[4][above])


def test_nothing_seen_is_half_a_mistake_everywhere() -> None:
    counts = Transitions(Binning(edges=((), (), ()), labels=((), (), ())))
    for risks in carry_back(counts, loss):
        assert risks.look_up(np.array([5, 7])).tolist() == [[0.5] * 3] * 2


def test_risks_do_not_depend_on_which_items_the_rule_sent_on() -> None:
    """Sure items go on rarely: their coarse mean must not be that of the unsure ones.

    60,000 rows: the standard error of the overall risk is below .006, .03 is five of them.
    """
    rows, _ = made_up(60_000, (0.2, 1.2), seed=1)
    assert rows.confidences is not None
    binning = Binning.fit(rows)
    complete = carry_back(Transitions.of(rows, binning), loss)[0].losses[0][0, 0]
    codes = rows.codes.copy()
    rng = np.random.default_rng(2)
    sure = (rows.confidences[:, 0] > 0.7) & (rng.random(len(rows)) > 0.05)
    codes[sure, 1] = -2
    left = Observations(rows.labels, codes, rows.confidences)
    counts = Transitions.of(left, binning)
    assert abs(carry_back(counts, loss)[0].losses[0][0, 0] - complete) < 0.03
    went_on = codes[:, 1] >= 0
    naive = (codes[went_on, 0] != codes[went_on, 1]).mean()
    assert naive > complete + 0.06


def test_calibration_on_held_out_rows() -> None:
    """Risks against the last stage are an ordinary estimate: checked on rows it has not seen."""
    rows, _ = made_up(10_000, (0.2, 0.8, 1.5), seed=6)
    fitted, held_out = rows.where(np.arange(5000)), rows.where(np.arange(5000, 10_000))
    counts = Transitions.of(fitted, Binning.fit(fitted))
    keys = situations(held_out, counts.binning)
    differs = held_out.codes[:, 0] != held_out.codes[:, 2]
    predicted = carry_back(counts, loss)[0].look_up(keys[:, 0])[:, 0]
    order = np.argsort(predicted)
    gaps = [
        abs(predicted[part].mean() - differs[part].mean()) for part in np.array_split(order, 10)
    ]
    assert np.mean(gaps) < 0.03
