"""A rule by regressions in words: what makes it stop and what makes it go on, largest first."""

from __future__ import annotations

from dataclasses import dataclass

from stopwise.policies.per_item.logistic.rule import LogisticRule

LEAST_WEIGHT = 0.05
"""Weights that change odds by less than 5 % are not named."""


@dataclass(frozen=True)
class Weight:
    """One number that a decision rests on.

    Attributes:
        stage: after which stage.
        about: what the number is.
        weight: what it adds to the log-odds that the stage's answer loses; for numbers that are
            not yes or no, by one standard deviation.
        words: the line.
    """

    stage: int
    about: str
    weight: float
    words: str


def weights_in_words(rule: LogisticRule, most: int = 12) -> list[Weight]:
    """The largest weights, each as a sentence.

    >>> import numpy as np
    >>> from stopwise import Costs
    >>> from stopwise.situations.observations import Observations
    >>> codes = np.array([[0, 0]] * 300 + [[1, 0]] * 150 + [[1, 1]] * 150)
    >>> rows = Observations(("keep", "refund"), codes)
    >>> costs = Costs.from_stages([1, 5], mistake_cost=20)
    >>> for line in weights_in_words(LogisticRule.fit(("small", "large"), rows, costs)):
    ...     print(line.words)
    after small, rather go on when small says refund (+2.1...)
    after small, rather stop when small says keep (-2.1...)
    """
    found = []
    for stage, name in enumerate(rule.stages[:-1]):
        weights = rule.models[stage][stage].weights
        entries = rule.columns.entries(stage, rule.stages)
        for entry, weight in zip(entries, weights, strict=False):
            if abs(weight) < LEAST_WEIGHT:
                continue
            doing = "go on" if weight > 0 else "stop"
            condition = f"the larger {entry.text}" if entry.number else f"when {entry.text}"
            link = "rather" if not entry.number else "the rather"
            words = f"after {name}, {link} {doing} {condition} ({weight:+.2f})"
            found.append(Weight(stage, entry.text, weight, words))
    found.sort(key=lambda line: (-round(abs(line.weight), 12), line.stage, -line.weight))
    return found[:most]
