from __future__ import annotations

import numpy as np
import pytest

from made_up_cascades import made_up
from stopwise.checks import StopwiseError
from stopwise.situations.binning import Binning
from stopwise.situations.observations import Observations
from stopwise.situations.references import DOUBT_OF_THREE, agreed, hold_against
from stopwise.situations.references_base import differs_from
from stopwise.situations.transitions import Transitions


def counts_of(skills: tuple[float, ...], seed: int = 0) -> Transitions:
    rows, _ = made_up(4000, skills, seed=seed)
    return Transitions.of(rows, Binning.fit(rows))


def independent(accuracies: tuple[float, ...]) -> Transitions:
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 3, 4000)
    wrong = (truth[:, None] + rng.integers(1, 3, (4000, len(accuracies)))) % 3
    right = rng.random((4000, len(accuracies))) < accuracies
    rows = Observations(("a", "b", "c"), np.where(right, truth[:, None], wrong))
    return Transitions.of(rows, Binning.fit(rows))


def test_a_good_last_stage_is_not_doubted_and_a_bad_one_is() -> None:
    good, bad = independent((0.6, 0.8, 0.9)), independent((0.7, 0.8, 0.85, 0.5))
    assert hold_against(good).doubt == DOUBT_OF_THREE[0]  # the consensus has its small part
    assert hold_against(bad).doubt == 1
    assert hold_against(bad, "last").doubt == 0
    assert hold_against(good, "consensus").doubt == 1


def test_stages_that_follow_each_other_do_not_outvote_the_last() -> None:
    """Harder items are wrong at all early stages alike: their agreement is worth little."""
    counts = counts_of((0.0, 0.6, 1.0, 2.2))
    found = agreed(counts)
    assert found is not None
    assert max(found.accuracies[:-1]) > found.accuracies[-1]
    assert found.chain > 0.9
    assert hold_against(counts).doubt < 0.1


def test_no_chain_excuses_a_last_stage_that_all_others_contradict() -> None:
    """Each early stage follows the one before it; the last says something else on most items."""
    rng = np.random.default_rng(11)
    first = rng.integers(0, 3, 4000)
    second = np.where(rng.random(4000) < 0.12, (first + 1) % 3, first)
    third = np.where(rng.random(4000) < 0.08, (second + 1) % 3, second)
    last = np.where(rng.random(4000) < 0.6, rng.integers(0, 3, 4000), third)
    rows = Observations(("a", "b", "c"), np.stack([first, second, third, last], axis=1))
    counts = Transitions.of(rows, Binning.fit(rows))
    found = agreed(counts)
    assert found is not None
    assert found.chain > 0.5
    assert hold_against(counts).doubt > 0.9


def test_trust_scales_the_loss_against_a_stage() -> None:
    counts = counts_of((0.0, 1.0, 2.0))
    groups = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 2]])
    assert hold_against(counts, "last").loss(groups) == pytest.approx(0.7 * differs_from(groups, 2))
    assert hold_against(counts, 1).loss(groups) == pytest.approx(differs_from(groups, 1))
    assert hold_against(counts, "last", trust=0.4).loss(groups)[0, 1] == pytest.approx(0.4)


def test_two_stages_have_no_consensus() -> None:
    counts = counts_of((0.0, 1.0))
    assert agreed(counts) is None
    assert hold_against(counts).accuracies is None


def test_too_few_full_runs_have_no_consensus() -> None:
    rows, _ = made_up(20, (0.0, 0.5, 1.0))
    assert agreed(Transitions.of(rows, Binning.fit(rows))) is None


def test_where_the_last_stage_abstains_the_deepest_answer_stands_for_it() -> None:
    assert differs_from(np.array([[0, 1, -1], [-1, -1, -1]]), 2).tolist() == [[1, 0, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("given", "part"),
    [({"reference": "best"}, "reference"), ({"reference": 7}, "reference"),
     ({"reference": True}, "reference"), ({"trust": 0}, "trust"), ({"trust": 1.5}, "trust"),
     ({"trust": "x"}, "trust")],
)  # fmt: skip
def test_what_cannot_be_a_reference_is_refused(given: dict[str, object], part: str) -> None:
    rows = Observations(("a",), np.zeros((3, 2), int))
    with pytest.raises(StopwiseError, match=part):
        hold_against(Transitions.of(rows, Binning.fit(rows)), **given)  # type: ignore[arg-type]
