"""The benchmark: its instances, its resumable runs, its scores and its page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stopwise.bench.families import FAMILIES, STAGES, make_family, paper_instances
from stopwise.bench.plan import BenchPlan, growth_instances
from stopwise.bench.report import write_report
from stopwise.bench.runs import BenchResult, Task, load_results, run_all, score
from stopwise.checks import StopwiseError


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_what_they_say(family: str) -> None:
    instances = make_family(family, 40, seed=5)
    assert [i.problem.stage_count for i in instances[:5]] == list(STAGES)
    for instance in instances:
        assert instance.problem.weak_dominance
        assert instance.problem.strong_dominance == (family == "strong")
        margins = instance.problem.margins[~np.isnan(instance.problem.margins)]
        assert 0.003 <= margins.min() <= 0.15
    assert sum(i.for_choosing for i in instances) == 20
    best = {(i.problem.stage_count, i.problem.optimal_stage) for i in instances}
    assert {(2, 0), (2, 1), (3, 0), (3, 2), (5, 3), (8, 3)} <= best
    assert make_family(family, 3, seed=5)[2].problem == instances[2].problem
    assert make_family(family, 3, seed=6)[2].problem != instances[2].problem
    with pytest.raises(StopwiseError, match="family"):
        make_family("other", 1, seed=1)


def test_paper_instances_are_learnable() -> None:
    instances = paper_instances()
    assert len(instances) == 12
    assert all(instance.problem.weak_dominance for instance in instances)
    assert [i.problem.optimal_stage for i in instances] == [0, 1, 0, 2] * 3


def test_the_tiny_margin_is_as_stated() -> None:
    problem = growth_instances()[-1].problem
    assert problem.margin == pytest.approx(1e-4)
    assert problem.gaps[1] == pytest.approx(0.3)


def tasks_of(replications: int = 3) -> list[Task]:
    instances = make_family("strong", 2, seed=1)
    return [Task(i, p, 50, replications, 0) for p in ("uss-ts", "uss-voi") for i in instances]


def test_runs_resume_after_an_interruption(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    whole = run_all(tasks_of(), file)
    lines = file.read_text().splitlines()
    assert len(lines) == 4
    file.write_text("\n".join(lines[:2]) + "\n" + lines[2][:30])  # cut off in the third
    assert len(load_results(file)) == 2
    assert run_all(tasks_of(), file) == whole
    # What was there is not run again: a changed line is kept as it is.
    form = json.loads(lines[0]) | {"mean": 123.0}
    file.write_text(json.dumps(form) + "\n")
    assert run_all(tasks_of(), file)[form["key"]].mean == 123.0


def test_score_by_hand() -> None:
    def run(name: str, mean: float, q99: float) -> BenchResult:
        return BenchResult(name, name, "strong", "p", 10, 1, mean, (mean,) * 95 + (q99,) * 6)

    result = score([run("a", 0, 3), run("b", 7, 1)], [run("b", 3, 0), run("a", 3, 0)])
    assert result.geometric_mean == pytest.approx((1 / 4 * 8 / 4) ** 0.5)
    assert (result.worst, result.worst_instance, result.lost) == (2.0, "b", 0.5)
    assert result.q99 == pytest.approx((4 * 2) ** 0.5)
    assert result.ratios == (0.25, 2.0)


def test_page_and_plots(tmp_path: Path) -> None:
    plan = BenchPlan(instances=10, replications=2, growth_replications=2)
    rng = np.random.default_rng(0)

    def made_up(task: Task) -> BenchResult:
        quantiles = tuple(np.sort(rng.random(101) * 50).tolist())
        return BenchResult(
            task.key(), task.instance.name, task.instance.family, task.policy, task.horizon,
            task.replications, float(np.mean(quantiles)), quantiles,
        )  # fmt: skip

    families = [made_up(task) for task in plan.family_tasks()]
    growth = [made_up(task) for task in plan.growth_tasks()]
    page = write_report(tmp_path, plan, families, growth).read_text()
    assert "2 replications of every policy" in page
    assert page.count("| `uss-voi` |") == 3 + 4
    for name in ("ratios", "growth", "distribution"):
        assert (tmp_path / "policies" / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"instances": 5}, "instances: got 5, but need a whole number, 6 or more"),
        ({"horizon": 1}, "horizon: got 1, but need a whole number, 10 or more"),
        ({"growth_replications": 0}, "growth_replications: got 0"),
        ({"replication": 2}, "unknown setting 'replication'; did you mean 'replications'"),
    ],
)
def test_a_plan_is_checked_before_anything_runs(given, message):
    with pytest.raises(StopwiseError, match=message):
        BenchPlan(**given)
    assert all(len(group) > 0 for group in BenchPlan(instances=6).groups().values())
