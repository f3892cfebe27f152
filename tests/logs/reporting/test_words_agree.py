"""What one page says in two places is the same, and names the stage that the headline names."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from stopwise.logs import LogSettings, analyze
from stopwise.logs.items.alone import analyze_items_alone
from stopwise.logs.reading.rows import read_rows
from stopwise.logs.reporting.headline import disagreement_sentence, shallower_sentence
from stopwise.logs.reporting.words import WHAT_IF_TITLE, key_pairs

STAGES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def bad_last():
    """Four stages; the last, where the paper's rule goes, is wrong on half of the items."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 10, 1500)
    return pl.DataFrame(
        {
            name: np.where(rng.random(1500) < rate, rng.integers(0, 10, 1500), truth).astype(str)
            for name, rate in zip(STAGES, (0.35, 0.15, 0.1, 0.6), strict=True)
        }
    )


def test_the_pairs_in_words_are_those_of_the_headline(bad_last):
    analysis = analyze(bad_last, stages=STAGES, costs=[1, 4, 30, 50], mistake_cost=200)
    at = analysis.readings.headline_stage
    assert at != analysis.verdict.recommended == 3
    pairs = key_pairs(analysis.verdict, analysis.readings)
    assert len(pairs) == 3
    assert all(at in (pair.shallow, pair.deep) for pair in pairs)
    assert "the paper's rule" in WHAT_IF_TITLE  # not the headline's stage


def test_the_number_of_labels_is_the_same_wherever_it_is_said(bad_last):
    analysis = analyze(bad_last, stages=STAGES, costs=[1, 4, 30, 50], mistake_cost=200)
    said = [
        re.search(r"([\d,]+) labels?", sentence(analysis.verdict, analysis.readings) or "")
        for sentence in (disagreement_sentence, shallower_sentence)
    ]
    expected = f"{analysis.readings.labels_to_settle:,}"
    assert [found and found[1] for found in said] == [expected, expected]


def test_stages_called_alone_say_what_answers_are_held_against(bad_last):
    settings = LogSettings.of(stages=STAGES, costs=[1, 4, 30, 50], mistake_cost=200, calls="alone")
    found = analyze_items_alone(read_rows(bad_last, settings))
    assert any(sentence.startswith("Held against") for sentence in found.sentences())
    assert found.to_dict()["doubt_of_baseline"] == found.doubt > 0.5
