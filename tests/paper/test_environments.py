"""The 15 instances from both sources against the paper's tables, and where they come from."""

import numpy as np
import pytest
from scipy.stats import chi2

from stopwise import Costs, StopwiseError
from stopwise.paper.classifiers import (
    HEART_MAY_GO,
    PIMA_FEATURES,
    heart_readings,
    predict,
    retrained_heart,
    retrained_pima,
)
from stopwise.paper.environments import make_environment
from stopwise.paper.files import read_toml
from stopwise.paper.instances import get_dataset
from stopwise.paper.tables import instance_rows

# Known, explained in the report, and all there are. The retrained Heart follows a rule that does
# not look at flags; the BSC generator as printed does not give the printed error rates.
EXCEPTIONS = {
    ("bsc", 1, "as-printed"),
    ("bsc", 3, "as-printed"),
    ("heart", 5, "retrained"),
}


def test_optimal_arm_and_weak_dominance_as_printed():
    rows = instance_rows()
    assert len(rows) == 30
    differing = {
        (row.dataset.name, row.instance.number, row.source) for row in rows if not row.match
    }
    assert differing == EXCEPTIONS


def test_printed_flags_follow_from_printed_costs_and_error_rates():
    """The typed-in optimal arms are those of the typed-in costs and error rates."""
    for row in instance_rows():
        totals = np.array(row.dataset.error_rates) + row.instance.costs.cumulative
        assert totals.argmin() + 1 == row.instance.optimal_arm


@pytest.mark.parametrize("name", ["bsc", "pima", "heart"])
def test_calibrated_has_the_printed_error_rates_and_the_fitted_disagreements(name):
    problem = make_environment(name, "calibrated", Costs.from_cumulative((0, 0.1, 0.2))).problem
    assert problem.error_rates == pytest.approx(get_dataset(name).error_rates, abs=1e-9)
    fitted = read_toml("calibration.toml")[name]
    p = problem.disagreements
    assert [p[0, 1], p[0, 2], p[1, 2]] == pytest.approx(
        [fitted["p12"], fitted["p13"], fitted["p23"]], abs=1e-9
    )


def test_retrained_pima():
    assert retrained_pima().errors == (236, 179, 175)
    problem = make_environment("pima", "retrained", Costs.from_cumulative((0, 0.1, 0.2))).problem
    assert len(problem.rows) == 768
    p = problem.disagreements
    assert [p[0, 1], p[0, 2], p[1, 2]] == pytest.approx([153 / 768, 151 / 768, 12 / 768])


def test_retraining_is_deterministic():
    again = predict("pima.csv", PIMA_FEATURES)
    assert (again.outputs == retrained_pima().outputs).all()


def test_heart_reading_is_the_nearest_in_error_rates_alone():
    readings = heart_readings()
    assert set(readings) == set(HEART_MAY_GO)
    printed = np.array(get_dataset("heart").error_rates)
    distances = {
        name: float(((np.array(found.errors) / 297 - printed) ** 2).sum())
        for name, found in readings.items()
    }
    assert retrained_heart().dropped == min(distances, key=distances.get) == "trestbps"
    assert retrained_heart().errors == (85, 70, 46)
    assert "trestbps" not in retrained_heart().features[0]
    assert len(retrained_heart().features[0]) == 6


def test_bsc_as_printed_in_closed_form():
    problem = make_environment("bsc", "as-printed", Costs.from_cumulative((0, 0.1, 0.2))).problem
    assert problem.error_rates == pytest.approx([0.4, 0.18, 0.14])
    p = problem.disagreements
    assert [p[0, 1], p[0, 2], p[1, 2]] == pytest.approx([0.34, 0.38, 0.26])
    assert not problem.strong_dominance


def test_bsc_as_printed_against_its_text_read_step_by_step():
    """Chi-square over the 16 patterns; a false alarm has probability 1e-6 (the seed is fixed)."""
    rng = np.random.default_rng(7)
    n = 200_000
    truth = (rng.random(n) < 0.7).astype(int)
    right = rng.random((n, 3)) < [0.6, 0.7, 0.8]
    first = right[:, 0]
    for arm in (1, 2):
        spoilt = rng.random(n) < 0.1
        right[:, arm] = np.where(first, ~spoilt, right[:, arm])
    outputs = np.where(right, truth[:, None], 1 - truth[:, None])
    codes = truth * 8 + outputs @ [4, 2, 1]
    counted = np.bincount(codes, minlength=16)
    problem = make_environment("bsc", "as-printed", Costs.from_cumulative((0, 0.1, 0.2))).problem
    labels = np.array(problem.labels)
    expected = np.zeros(16)
    for t, y, p in zip(labels[problem.truth], labels[problem.outputs], problem.p, strict=True):
        expected[t * 8 + y @ [4, 2, 1]] = p * n
    statistic = ((counted - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-6, 15)


def test_sources_and_streams():
    costs = Costs.from_cumulative((0, 0.1, 0.2))
    assert make_environment("pima", "retrained", costs).stream == "round-robin"
    assert make_environment("pima", "calibrated", costs).stream == "independent"
    with pytest.raises(StopwiseError, match="source: got 'retrained', but need 'as-printed'"):
        make_environment("bsc", "retrained", costs)
