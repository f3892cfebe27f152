from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwise.checks import StopwiseError
from stopwise.situations.binning import (
    ABSTAINED_LABEL,
    MISSING_BIN,
    OTHER_LABEL,
    Binning,
    FeatureBins,
    quantile_edges,
)
from stopwise.situations.keys import decode, encode, partition_code, situations
from stopwise.situations.observations import MOST_STAGES, Observations

VALUES = st.floats(-1e6, 1e6) | st.just(math.nan)


@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(2, 8))
def test_quantile_bins_are_rising_and_none_is_empty(values: list[float], bins: int) -> None:
    column = np.asarray(values)
    edges = quantile_edges(column, bins)
    assert len(edges) < bins
    assert list(edges) == sorted(set(edges))
    given_values = column[~np.isnan(column)]
    found = np.searchsorted(np.asarray(edges), given_values, side="right")
    assert len(given_values) == 0 or found.min() == 0
    assert all((found > at).any() for at in range(len(edges)))


@given(st.lists(st.tuples(VALUES, st.integers(-1, 11)), min_size=1, max_size=40))
@settings(max_examples=60)
def test_one_value_is_binned_as_a_column_is(cells: list[tuple[float, int]]) -> None:
    confidences = np.asarray([[c, c] for c, _ in cells])
    codes = np.asarray([[code, code] for _, code in cells])
    rows = Observations(tuple("abcdefghijkl"), codes, confidences)
    binning = Binning.fit(rows)
    many_confidences, many_labels = binning.confidence_bins(rows), binning.label_bins(rows)
    for at, (confidence, code) in enumerate(cells):
        label = None if code < 0 else rows.labels[code]
        assert binning.confidence_bin(0, confidence) == many_confidences[at, 0]
        assert binning.label_bin(0, label) == many_labels[at, 0]


def test_the_eight_most_frequent_labels_are_told_apart_and_abstaining_is_its_own() -> None:
    codes = np.array([[label, -1] for label in range(10) for _ in range(20 - label)])
    binning = Binning.fit(Observations(tuple("abcdefghij"), codes))
    assert binning.labels[0] == tuple("abcdefgh")
    assert binning.label_bin(0, "i") == binning.label_bin(0, "j") == OTHER_LABEL
    assert binning.label_bin(0, None) == ABSTAINED_LABEL
    assert binning.labels[1] == ()


def test_missing_confidences_have_a_bin_of_their_own() -> None:
    rows = Observations(("a",), np.zeros((4, 2), int), np.array([[0.1, np.nan]] * 3 + [[0.9] * 2]))
    binning = Binning.fit(rows)
    assert binning.confidence_bins(rows)[:, 1].tolist() == [MISSING_BIN] * 3 + [0]
    bare = Observations(("a",), np.zeros((1, 2), int))
    assert (binning.confidence_bins(bare) == MISSING_BIN).all()


def test_a_binning_comes_back_from_json_with_the_same_epoch() -> None:
    rng = np.random.default_rng(1)
    rows = Observations(
        ("no", "yes"), rng.integers(0, 2, (50, 3)), rng.random((50, 3)),
        {"length": rng.integers(1, 99, 50), "country": rng.choice(["de", "fr"], 50)},
    )  # fmt: skip
    binning = Binning.fit(rows)
    again = Binning.from_dict(json.loads(json.dumps(binning.to_dict())))
    assert again == binning
    assert again.epoch == binning.epoch
    assert Binning.fit(rows, confidence_bins=3).epoch != binning.epoch
    assert (again.cells(rows) == binning.cells(rows)).all()
    for at in range(5):
        item = {"length": rows.features["length"][at], "country": rows.features["country"][at]}
        assert binning.cell(item) == binning.cells(rows)[at]
    assert binning.cells(rows).max() < 32


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"version": 2}, "version"),
        ({"edges": [[1.0, 0.5], []]}, "edges[0]"),
        ({"edges": [["x"], []]}, "binning"),
        ({"labels": [["a"]]}, "binning"),
        ({"extra": 1}, "extra"),
        ({"label_count": 0}, "label_count"),
    ],
)
def test_a_damaged_binning_is_refused_by_name(change: dict[str, object], part: str) -> None:
    form = Binning(edges=((0.5,), ()), labels=(("a",), ("a",))).to_dict()
    with pytest.raises(StopwiseError, match=part.replace("[", r"\[").replace("]", r"\]")):
        Binning.from_dict({**form, **change})


def test_a_feature_that_rows_do_not_have_is_refused() -> None:
    binning = Binning(((), ()), ((), ()), (FeatureBins("length", edges=(1.0,)),))
    with pytest.raises(StopwiseError, match="length"):
        binning.cells(Observations(("a",), np.zeros((1, 2), int)))


@given(
    st.lists(st.integers(-1, 9), min_size=1, max_size=MOST_STAGES),
    st.integers(0, 15), st.integers(0, 15), st.integers(0, 15), st.integers(0, 31),
)  # fmt: skip
def test_a_key_holds_all_its_parts_in_64_bits(
    groups: list[int], confidence: int, label: int, previous: int, cell: int
) -> None:
    key = encode(partition_code(tuple(groups)), confidence, label, previous, cell)
    assert 0 <= key < 2**63
    assert decode(key) == (tuple(groups), confidence, label, previous, cell)


def test_situations_of_rows_say_what_was_known_and_nothing_of_later_stages() -> None:
    codes = np.array([[0, 1, 0], [0, 1, 2], [1, -1, 1], [0, -2, -2]])
    confidences = np.array([[0.1, 0.5, 0.9], [0.1, 0.5, 0.1], [0.9, 0.4, 0.2], [0.2, 0, 0]])
    rows = Observations(("a", "b", "c"), codes, confidences)
    keys = situations(rows, Binning.fit(rows, confidence_bins=2))
    assert keys[0, :2].tolist() == keys[1, :2].tolist()  # they differ only in the last stage
    assert decode(int(keys[0, 1])).partition == (0, 1)
    assert decode(int(keys[2, 1])).partition == (0, -1)
    assert decode(int(keys[2, 2])).partition == (0, -1, 0)
    assert keys[3].tolist()[1:] == [-1, -1]


@pytest.mark.parametrize("codes", [[[0, -2, 0]], [[-2, 0]], [[0]], [[5, 0]], [[0] * 11]])
def test_rows_that_cannot_be_are_refused(codes: list[list[int]]) -> None:
    with pytest.raises(StopwiseError, match="codes"):
        Observations(("a", "b"), np.asarray(codes))
