"""What the benchmark runs: which policies, on which instances, for how long."""

from __future__ import annotations

from dataclasses import dataclass, fields

from stopwise.bench.families import FAMILIES, BenchInstance, make_family, paper_instances
from stopwise.bench.runs import Task
from stopwise.checks import names_fields, whole_number
from stopwise.costs import Costs
from stopwise.problem import Problem

BASE = "uss-ts"
POLICIES = (
    BASE, "uss-voi", "uss-voi-anytime", "uss-ts-jump", "uss-ts-tempered", "imed",
)  # fmt: skip
GROWTH_HORIZONS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
TINY_MARGIN_HORIZONS = (10_000, 100_000, 1_000_000)


@names_fields
@dataclass(frozen=True)
class BenchPlan:
    """Sizes and seeds; everything that the published page states.

    Attributes:
        instances: of each family; half of them are for choosing parameters and are not run here.
        replications: of every run over the families.
        wrong_horizon_replications: of those in which USS-VOI was given a wrong horizon, at most.
        growth_replications: of every run over horizons.
    """

    instances: int = 200
    replications: int = 2_000
    wrong_horizon_replications: int = 500
    growth_replications: int = 1_000
    horizon: int = 10_000
    family_seed: int = 2026
    seed: int = 6

    def __post_init__(self) -> None:
        # With five instances of a family none is left to report; a tenth of the horizon is one too.
        least = {"instances": 6, "horizon": 10, "family_seed": 0, "seed": 0}
        for field in fields(self):
            number = whole_number(
                field.name, getattr(self, field.name), least=least.get(field.name, 1)
            )
            object.__setattr__(self, field.name, number)

    def wrong_horizons(self) -> tuple[str, str]:
        """USS-VOI given a tenth, and ten times, of the horizon."""
        return f"uss-voi:horizon={self.horizon // 10}", f"uss-voi:horizon={self.horizon * 10}"

    def groups(self) -> dict[str, list[BenchInstance]]:
        """The paper's instances and the reporting half of each family."""
        groups = {"paper": paper_instances()}
        for family in FAMILIES:
            made = make_family(family, self.instances, self.family_seed)
            groups[family] = [instance for instance in made if not instance.for_choosing]
        return groups

    def family_tasks(self) -> list[Task]:
        """Every policy on every instance that is reported; the policies in turn, all instances."""
        instances = [instance for group in self.groups().values() for instance in group]
        sizes = dict.fromkeys(POLICIES, self.replications)
        fewer = min(self.replications, self.wrong_horizon_replications)
        sizes |= dict.fromkeys(self.wrong_horizons(), fewer)
        return [
            Task(instance, policy, self.horizon, size, self.seed)
            for policy, size in sizes.items()
            for instance in instances
        ]

    def growth_tasks(self) -> list[Task]:
        """Regret against the horizon, on a few instances."""
        tasks = []
        for instance in growth_instances():
            tiny = instance.family == "tiny margin"
            for horizon in TINY_MARGIN_HORIZONS if tiny else GROWTH_HORIZONS:
                for policy in POLICIES:
                    size = self.growth_replications
                    tasks.append(Task(instance, policy, horizon, size, self.seed))
        return tasks


def growth_instances() -> list[BenchInstance]:
    """PIMA 3 (starved pairs), BSC 2 (a deeper optimal stage), Heart 1, and a tiny margin.

    >>> [instance.name for instance in growth_instances()]
    ['pima 3', 'bsc 2', 'heart 1', 'margin 0.0001']
    """
    paper = {instance.name: instance for instance in paper_instances()}
    tiny = Problem.from_rates(
        [0.2, 0.2], [[0, 0.2999], [0.2999, 0]], Costs.from_cumulative((0.0, 0.3)), stages=None
    )
    return [
        paper["pima 3"], paper["bsc 2"], paper["heart 1"],
        BenchInstance("margin 0.0001", "tiny margin", tiny, for_choosing=False),
    ]  # fmt: skip
