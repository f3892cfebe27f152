# ruff: noqa: E501
"""What stopping per item is worth: `python benchmarks/per_item.py` writes benchmarks/PER_ITEM.md.

Logs are made here from data that comes with scikit-learn and from made-up cascades, so everybody
can repeat the figures. A rule is fitted on one half of a log and scored on the other, at 13 mistake
costs; a score is the total cost (calls, and mistakes by the truth) over that of the best fixed
stage in hindsight. The truth is used for scoring alone, but for the row that says labels.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from stopwise.costs import Costs
from stopwise.decisions import first_passing_stage
from stopwise.evidence import Evidence
from stopwise.logs.items.held_out import calibration_error
from stopwise.logs.replaying.outcomes import two_in_a_row
from stopwise.policies.per_item.learning import run_over
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.binning import Binning
from stopwise.situations.keys import situations
from stopwise.situations.observations import Observations
from stopwise.situations.references_base import differs_from
from stopwise.situations.risks import carry_back
from stopwise.situations.transitions import Transitions

HERE = Path(__file__).parent
FACTORS = np.array([1.05, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128])
"""Mistake costs, as multiples of the cost of all stages together."""

Log = tuple[Observations, np.ndarray, list[float], bool]


def main() -> None:
    start = time.perf_counter()
    logs = dict(made_logs())
    rows = {name: score(*log) for name, log in logs.items()}
    (HERE / "PER_ITEM.md").write_text(page(logs, rows), encoding="utf-8")
    print(f"wrote {HERE / 'PER_ITEM.md'} in {time.perf_counter() - start:.0f} s")


# ---- logs -----------------------------------------------------------------------------------


def made_logs():
    digits, cancer, wine = load_digits(), load_breast_cancer(), load_wine()
    scaled = lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=400))  # noqa: E731
    forest = RandomForestClassifier(60, random_state=0)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    ladder = [(tree, slice(None, None, 4)), (scaled(), slice(None, None, 2)), (forest, slice(None))]
    yield "digits", classified(digits.data, digits.target, ladder, [1, 3, 12])
    yield (
        "digits, no confidences",
        without(classified(digits.data, digits.target, ladder, [1, 3, 12])),
    )
    bad = [ladder[1], ladder[2], ladder[0]]
    yield "digits, a bad last stage", classified(digits.data, digits.target, bad, [1, 3, 12])
    small = [
        (DecisionTreeClassifier(max_depth=2), slice(0, 3)),
        (scaled(), slice(0, 10)),
        (forest, slice(None)),
    ]
    yield "breast cancer", classified(cancer.data, cancer.target, small, [1, 4, 20])
    yield (
        "wine",
        classified(
            wine.data,
            wine.target,
            [(tree, slice(0, 2)), (GaussianNB(), slice(0, 5)), (forest, slice(None))],
            [1, 3, 10],
        ),
    )
    for seed, classes in ((0, 2), (1, 3), (2, 5), (3, 10)):
        x, y = make_classification(
            8000,
            20,
            n_informative=10,
            n_classes=classes,
            class_sep=1.2,
            flip_y=0.05,
            random_state=seed,
        )
        boosted = HistGradientBoostingClassifier(max_iter=60, random_state=0)
        models = [(GaussianNB(), slice(0, 6)), (scaled(), slice(0, 12)), (boosted, slice(None))]
        yield f"made up, {classes} classes", classified(x, y, models, [1, 4, 16])
    yield "early exits", exits(seed=5)
    yield "early exits, no confidences", without(exits(seed=5))
    yield "crowd of workers", crowd(seed=1)
    yield "language models, last one best", models_by_skill((0.0, 0.6, 1.2, 2.2), seed=1)
    yield "language models, last one bad", models_by_skill((0.2, 0.9, 1.6, 0.3), seed=2)


def classified(x, y, models, costs) -> Log:
    """Stages are classifiers; a third of the rows fits them and is left out of the log."""
    order = np.random.default_rng(0).permutation(len(y))
    fit, log = order[: len(y) // 3], order[len(y) // 3 :]
    codes, confidences = [], []
    for model, columns in models:
        model.fit(x[fit][:, columns], y[fit])
        chances = model.predict_proba(x[log][:, columns])
        codes.append(model.classes_[chances.argmax(axis=1)])
        confidences.append(chances.max(axis=1))
    labels = tuple(str(label) for label in range(int(y.max()) + 1))
    rows = Observations(labels, np.stack(codes, 1), np.stack(confidences, 1))
    return rows, y[log], [float(cost) for cost in costs], True


def exits(seed: int) -> Log:
    x, y = make_classification(
        8000, 30, n_informative=14, n_classes=4, flip_y=0.03, random_state=seed
    )
    model = HistGradientBoostingClassifier(max_iter=100, learning_rate=0.08, random_state=0)
    model.fit(x[:3000], y[:3000])
    stages = list(model.staged_predict_proba(x[3000:]))
    chosen = [stages[at] for at in (3, 12, 35, 99)]
    rows = Observations(
        tuple("abcd"),
        np.stack([p.argmax(1) for p in chosen], 1),
        np.stack([p.max(1) for p in chosen], 1),
    )
    return rows, y[3000:], [1.0, 2.0, 5.0, 12.0], True


def crowd(seed: int) -> Log:
    rng = np.random.default_rng(seed)
    truth, hard = rng.integers(0, 3, 6000), rng.beta(2, 4, 6000)
    right = rng.random((6000, 5)) < np.clip(1 - hard[:, None] * rng.uniform(0.6, 1.1, 5), 0.2, 1)
    wrong = (truth[:, None] + rng.integers(1, 3, (6000, 5))) % 3
    rows = Observations(tuple("abc"), np.where(right, truth[:, None], wrong))
    return rows, truth, [1.0] * 5, False


def models_by_skill(skills, seed: int) -> Log:
    rng = np.random.default_rng(seed)
    hard, truth = rng.normal(0, 1.3, 5000), rng.integers(0, 5, 5000)
    codes, confidences = [], []
    for skill in skills:
        strength = skill - hard + rng.normal(0, 0.7, 5000)
        codes.append(np.where(strength > 0, truth, (truth + rng.integers(1, 5, 5000)) % 5))
        confidences.append(0.4 * strength + rng.normal(0, 1, 5000))
    rows = Observations(tuple("abcde"), np.stack(codes, 1), np.stack(confidences, 1))
    return rows, truth, [0.15, 0.4, 1.5, 2.5], True


def without(log: Log) -> Log:
    rows, truth, costs, _ = log
    return Observations(rows.labels, rows.codes), truth, costs, False


# ---- scores ---------------------------------------------------------------------------------

WAYS = ("always last", "the paper's rule", "two in a row agree", "per item", "per item, 30 labels")
LEARNING = "per item, learning as it goes"


def score(rows: Observations, truth: np.ndarray, costs: list[float], _: bool) -> dict[str, float]:
    order = np.random.default_rng(0).permutation(len(rows))
    fit, test = order[: len(rows) // 2], order[len(rows) // 2 :]
    fitted, scored = rows.where(fit), rows.where(test)
    counts = Transitions.of(fitted, Binning.fit(fitted))
    labelled = Transitions.of(fitted, counts.binning)
    differ = np.flatnonzero((fitted.codes != fitted.codes[:, :1]).any(axis=1))
    pick = np.random.default_rng(1).permutation(differ)[:30]
    labelled.add_labels(fitted.where(pick), truth[fit][pick])
    keys = situations(scored, counts.binning)
    wrong = scored.codes != truth[test][:, None]
    cumulative = np.cumsum(costs)
    last = rows.stage_count - 1
    evidence = Evidence.from_codes(fitted.codes)
    names = tuple(f"stage {at}" for at in range(last + 1))
    found: dict[str, list[float]] = {name: [] for name in (*WAYS, LEARNING)}
    for factor in FACTORS:
        price = Costs.from_stages(costs, float(factor * cumulative[-1]))
        best = (cumulative + price.mistake_cost * wrong.mean(axis=0)).min()

        def add(
            name: str,
            depths: np.ndarray,
            missed: np.ndarray,
            over: float,
            price: Costs = price,
            answering: np.ndarray | None = None,
        ) -> None:
            at = np.arange(len(depths))
            given = depths if answering is None else answering
            total = cumulative[depths].mean() + price.mistake_cost * missed[at, given].mean()
            found[name].append(float(total / over))

        same = np.full(len(scored), last)
        add(WAYS[0], same, wrong, best)
        stage = first_passing_stage(price.thresholds, evidence.disagreement)
        add(WAYS[1], np.full(len(scored), stage), wrong, best)
        add(WAYS[2], two_in_a_row(scored.codes), wrong, best)
        add(WAYS[3], Rule(names, counts, price).depths_of(keys), wrong, best)
        add(WAYS[4], Rule(names, labelled, price).depths_of(keys), wrong, best)
        if factor in (1.5, 4, 12, 32):
            repeats = -(-10_000 // len(rows))
            rng = np.random.default_rng(3)
            index = np.concatenate([rng.permutation(len(rows)) for _ in range(repeats)])[:10_000]
            met, missed = rows.where(index), rows.codes[index] != truth[index][:, None]
            over = (cumulative + price.mistake_cost * missed.mean(axis=0)).min()
            run = run_over(PerItem(), names, met, price, rng)
            # After all stages the likeliest answer is given, as `replay` and live rounds do.
            add(LEARNING, run.depths, missed, over, answering=run.answering)
    result = {name: mean(values) for name, values in found.items()}
    stated, seen = np.zeros(len(rows)), np.zeros(len(rows))
    for own, other in ((fit, test), (test, fit)):  # each half by the other: all rows are scored
        part = rows.where(own)
        found_counts = Transitions.of(part, Binning.fit(part))
        risks = carry_back(found_counts, lambda groups: differs_from(groups, last))[0]
        first = situations(rows.where(other), found_counts.binning)[:, 0]
        stated[other] = risks.look_up(first)[:, 0]
        seen[other] = rows.codes[other, 0] != rows.codes[other, last]
    rng = np.random.default_rng(0)
    floor = [calibration_error(stated, (rng.random(len(rows)) < stated) * 1.0) for _ in range(30)]
    accuracy = 1 - wrong.mean(axis=0)
    result |= {
        "calibration": calibration_error(stated, seen),
        "floor": float(np.mean(floor)),
        "good": float(accuracy.argmax() == last),
    }
    return result


def mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def page(logs: dict[str, Log], rows: dict[str, dict[str, float]]) -> str:
    columns = (*WAYS, LEARNING)
    lines = [
        "# What stopping per item is worth",
        "",
        "Written by `python benchmarks/per_item.py`, on logs made from data that comes with",
        "scikit-learn and on made-up cascades. Total cost (calls and mistakes, by the truth) over that",
        "of the best fixed stage in hindsight, geometric mean over 13 mistake costs (4 while learning,",
        "over 10,000 rounds, every look paid for); smaller is better, and 1 is what nobody who fixes",
        "one stage can beat. Fitted on one half, scored on the other. While learning, a round that went",
        "through all stages gives the answer that is likeliest right, as `replay` and live rounds do.",
        "",
        "The leads at which the consensus takes the last stage's place, and how far a situation may",
        "lean on a coarser one, were chosen on these logs, among others: rules are held out here,",
        "that choice is not.",
        "",
        "| log | items | " + " | ".join(columns) + " | calibration error | by chance alone |",
        "|---|---|" + "---|" * (len(columns) + 2),
    ]
    for name, found in rows.items():
        cells = " | ".join(f"{found[column]:.2f}" for column in columns)
        lines.append(
            f"| {name} | {len(logs[name][0]):,} | {cells} | {found['calibration']:.3f} | {found['floor']:.3f} |"
        )
    groups = {
        "all": list(rows),
        "last stage the most accurate": [name for name in rows if rows[name]["good"]],
        "... with confidences": [name for name in rows if rows[name]["good"] and logs[name][3]],
        "last stage not the most accurate": [name for name in rows if not rows[name]["good"]],
    }
    for group, names in groups.items():
        cells = " | ".join(
            f"**{mean([rows[n][column] for n in names]):.2f}**" for column in columns
        )
        lines.append(f"| **{group}** ({len(names)}) | | {cells} | | |")
    lines += [
        "",
        "Where it does not help, plainly: stages whose outputs say nothing of how hard an item is (no",
        "confidences, few labels), a few hundred rows, and a last stage that is worse than an earlier",
        "one without the consensus noticing. 30 labels remove most of the last.",
        "",
        "Calibration error: mean gap between stated risks and differences seen, over tenths of the rows,",
        "each half of a log scored by the rule of the other. *By chance alone* is what risks that are",
        "exactly right would show on as many rows: nothing can be below it on average.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
