"""Made-up cascades for the tests: hard and easy items, stages that say how sure they are."""

from __future__ import annotations

import numpy as np

from stopwise.arrays import IntArray
from stopwise.live import Reported, Stage
from stopwise.situations.observations import Observations


def made_up(
    rows: int, skills: tuple[float, ...], *, labels: int = 3, seed: int = 0
) -> tuple[Observations, IntArray]:
    """Rows of a cascade and their truth; a stage is right where its skill beats the difficulty."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=rows)
    truth = rng.integers(0, labels, rows)
    codes, confidences = [], []
    for skill in skills:
        strength = skill - difficulty + 0.7 * rng.normal(size=rows)
        wrong = (truth + rng.integers(1, labels, rows)) % labels
        codes.append(np.where(strength > 0, truth, wrong))
        confidences.append(1 / (1 + np.exp(-np.abs(strength) - 0.2 * rng.normal(size=rows))))
    names = tuple("abcdefghij"[:labels])
    return Observations(names, np.stack(codes, 1), np.stack(confidences, 1)), truth


def stages_over(
    rows: Observations, names: tuple[str, ...], costs: tuple[float, ...], fail_at: int = -1
) -> list[Stage]:
    """Stages that say of an item, a row's number, what stands there; one of them may fail."""

    def make(at: int) -> Stage:
        def call(item: int) -> Reported:
            if at == fail_at:
                raise ValueError("no")
            assert rows.confidences is not None
            label = rows.labels[rows.codes[item, at]]
            return Reported(label, confidence=float(rows.confidences[item, at]))

        return Stage(names[at], call, cost=costs[at])

    return [make(at) for at in range(len(names))]
