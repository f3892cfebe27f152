"""Rounds that end the short way leave behind what all others do."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stopwise.live import BudgetError, Drift, Learner
from thread_switching import at_once

SETTINGS: list[dict[str, Any]] = [
    {"run_budget": 260.0},
    {"run_budget": 260.0, "half_life": 50},
    {"run_budget": 900.0, "mode": "shadow"},
    {"run_budget": 260.0, "item_budget": 2.0, "full_run_rate": 0.3},
    {"run_budget": 260.0, "abstentions": "go on"},
    {"run_budget": 260.0, "drift": Drift(window=5)},
]


def play(learner: Learner) -> list[object]:
    """Many rounds, some of them open at the same time, until the budget is spent; what came."""
    numbers, still = random.Random(3), []
    came: list[object] = []
    for at in range(900):
        try:
            round = learner.begin(f"segment {at % 2}")
        except BudgetError as error:
            came.append(str(error))
            continue
        answers = [0, *(int(numbers.random() < 0.15) for _ in range(2))]
        for answer in answers[: round.depth + 1]:
            round.observe(answer)
        came.append((round.depth, round.probability))
        still.append(round)
        while len(still) > at % 7:
            came.append(still.pop(numbers.randrange(len(still))).end())
    came += [round.end() for round in still]
    return came


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_budget_is_spent_the_same_way(settings: dict[str, Any]) -> None:
    quick, plain = (Learner([0, 1, 1], mistake_cost=4, seed=2, **settings) for _ in range(2))
    plain._books.short = False
    assert play(quick) == play(plain)
    assert quick.report() == plain.report()
    assert quick.to_form() == plain.to_form()
    budgets = quick._books.ledger.budgets
    assert budgets.held == pytest.approx(0.0, abs=1e-9)
    assert quick._books.ledger.spent <= settings["run_budget"]


def test_what_is_held_back_is_given_free_by_rounds_of_many_threads() -> None:
    learner = Learner([1, 1, 1], "fixed", mistake_cost=4, run_budget=1e6)

    def work() -> None:
        for at in range(400):
            with learner.begin() as round:
                for _ in range(3):
                    round.observe("x", 0.5 if at % 3 == 0 else None)  # reported: the long way

    at_once([work] * 6)
    ledger = learner._books.ledger
    assert ledger.budgets.held == pytest.approx(0.0, abs=1e-9)
    assert learner.report().spent == ledger.spent == 6 * (134 * 1.5 + 266 * 3)
