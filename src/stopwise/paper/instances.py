"""What the paper prints: its data sets, its 15 instances and the points of its figures."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from stopwise.checks import fail, one_of
from stopwise.costs import Costs
from stopwise.paper.files import read_data, read_toml

DistributionSource = Literal["as-printed", "retrained", "calibrated"]
"""Where a joint distribution comes from.

as-printed: the generator that the paper describes. retrained: classifiers trained from the shipped
data. calibrated: a fit to the figure, see `calibration.toml`.
"""


@dataclass(frozen=True)
class PaperInstance:
    """One row of the paper's tables; arms are 1-based as printed.

    >>> instance = get_dataset("pima").instance(3)
    >>> instance.costs.cumulative, instance.optimal_arm, instance.weak_dominance
    ((0.05, 0.309, 0.45), 1, True)
    """

    number: int
    costs: Costs
    optimal_arm: int
    weak_dominance: bool


Instance = PaperInstance
"""The name of `PaperInstance` before version 0.3."""


@dataclass(frozen=True)
class Dataset:
    """A data set of the paper with its printed error rates and instances.

    >>> dataset = get_dataset("pima")
    >>> dataset.title, dataset.error_rates, len(dataset.instances)
    ('PIMA Indians Diabetes', (0.3098, 0.233, 0.2278), 5)
    """

    name: str
    title: str
    table: str
    error_rates: tuple[float, ...]
    sources: tuple[DistributionSource, ...]
    instances: tuple[PaperInstance, ...]

    def instance(self, number: int) -> PaperInstance:
        """The instance with this number."""
        for instance in self.instances:
            if instance.number == number:
                return instance
        raise fail("instance", number, f"1 to {len(self.instances)}")


@cache
def load_datasets() -> dict[str, Dataset]:
    """The three data sets, by name.

    >>> load_datasets()["pima"].instance(3).costs.cumulative
    (0.05, 0.309, 0.45)
    """
    datasets = {}
    for name, form in read_toml("instances.toml").items():
        for source in form["sources"]:
            if source not in get_args(DistributionSource):
                raise fail(
                    f"{name}.sources", source, "one of " + ", ".join(get_args(DistributionSource))
                )
        datasets[name] = Dataset(
            name=name,
            title=form["title"],
            table=form["table"],
            error_rates=tuple(form["error_rates"]),
            sources=tuple(form["sources"]),
            instances=tuple(
                PaperInstance(int(number), Costs.from_cumulative(tuple(row.pop("costs"))), **row)
                for number, row in form["instances"].items()
            ),
        )
    return datasets


def get_dataset(name: str) -> Dataset:
    """The data set of that name.

    >>> get_dataset("heart").error_rates
    (0.2929, 0.2025, 0.1483)
    """
    datasets = load_datasets()
    return datasets[one_of("dataset", name, tuple(datasets))]


@dataclass(frozen=True)
class PublishedKey:
    """Which curve of which figure; `instance` is empty where the paper does not name it."""

    figure: str
    instance: str
    policy: str


@cache
def load_published() -> dict[PublishedKey, dict[float, float]]:
    """The points read off the paper's plots: for every curve, regret by x (rounds or xi).

    >>> load_published()[PublishedKey("1b", "3", "uss-ts")][10000.0]
    124.1
    """
    curves: dict[PublishedKey, dict[float, float]] = {}
    for row in csv.DictReader(io.StringIO(read_data("published_figures.csv"))):
        key = PublishedKey(row["figure"], row["instance"], row["policy"])
        curves.setdefault(key, {})[float(row["x"])] = float(row["regret"])
    return curves
