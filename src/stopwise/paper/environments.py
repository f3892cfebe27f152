"""From a data set, a source and costs to a problem that can be simulated."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

from stopwise.checks import fail, names_settings, one_among
from stopwise.costs import Costs
from stopwise.paper.classifiers import retrained_heart, retrained_pima
from stopwise.paper.files import read_toml
from stopwise.paper.instances import DistributionSource, get_dataset
from stopwise.problem import Problem
from stopwise.simulation.streams import Stream

ARMS = ("arm 1", "arm 2", "arm 3")

# The costs of a joint distribution are set by each instance; until then any will do.
_NO_COSTS = Costs.from_cumulative((0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Environment:
    """A problem, and the order in which a simulation meets its patterns."""

    problem: Problem
    stream: Stream


def make_environment(dataset: str, source: DistributionSource, costs: Costs) -> Environment:
    """The environment of a data set under these costs.

    Retrained classifiers are met in the order of the data set, over and over, as in the paper
    (round-robin); the others are independent draws.

    >>> make_environment("bsc", "as-printed", Costs.from_cumulative((0.05, 0.285, 0.45))).stream
    'independent'
    """
    stream: Stream = "round-robin" if source == "retrained" else "independent"
    return Environment(_joint(dataset, source).with_costs(costs), stream)


@names_settings
def problem(dataset: str, instance: int, source: DistributionSource = "calibrated") -> Problem:
    """One of the paper's 15 instances as a problem.

    Args:
        dataset: bsc, pima or heart.
        instance: 1 to 5, as in the paper's tables.
        source: where the joint distribution of outputs comes from. "calibrated" is fitted to the
            published figures, "as-printed" is the generator that the paper describes (bsc only),
            "retrained" are classifiers trained from the shipped data (pima and heart).

    >>> problem("pima", 3).optimal_stage, problem("pima", 3).weak_dominance
    (0, True)
    """
    costs = get_dataset(dataset).instance(instance).costs
    return make_environment(dataset, source, costs).problem


@cache
def _joint(dataset: str, source: DistributionSource) -> Problem:
    sources = get_dataset(dataset).sources
    if source not in sources:
        raise fail("source", source, f"{one_among(source, sources)} for {dataset}")
    if source == "calibrated":
        return _calibrated(dataset)
    if source == "as-printed":
        return _bsc_as_printed()
    found = retrained_pima() if dataset == "pima" else retrained_heart()
    return Problem.from_predictions(found.outputs, found.truth, _NO_COSTS, stages=ARMS)


def _calibrated(dataset: str) -> Problem:
    """The printed error rates, and disagreement rates fitted to the published curves."""
    rates = read_toml("calibration.toml")[dataset]
    p12, p13, p23 = rates["p12"], rates["p13"], rates["p23"]
    table = [[0.0, p12, p13], [p12, 0.0, p23], [p13, p23, 0.0]]
    return Problem.from_rates(get_dataset(dataset).error_rates, table, _NO_COSTS, stages=ARMS)


def _bsc_as_printed() -> Problem:
    """The generator as the paper's text describes it.

    The truth is 1 with probability 0.7. Each arm is right with probability 0.6, 0.7, 0.8. Where
    arm 1 is right, arms 2 and 3 are made right too, and then each is wrong with probability 0.1
    ("error up to 10 %", taken at its upper end, independently). This gives error rates of .40, .18
    and .14, not the printed .3937, .2899, .1358: the second cannot come from this text.
    """
    patterns = []
    for truth, *right in itertools.product((0, 1), repeat=4):
        p = 0.7 if truth else 0.3
        chances = (0.6, 0.9, 0.9) if right[0] else (0.6, 0.7, 0.8)
        for is_right, chance in zip(right, chances, strict=True):
            p *= chance if is_right else 1 - chance
        outputs = [truth if is_right else 1 - truth for is_right in right]
        patterns.append((truth, outputs, p))
    return Problem.from_patterns(patterns, _NO_COSTS, stages=ARMS)
