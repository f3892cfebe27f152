"""Make the example log: three classifiers on scikit-learn's digits, out-of-fold.

    python scripts/make_example_log.py

A cost is the arithmetic operations that one prediction takes, in thousands: comparisons of the
tree, multiplications of the linear model, multiplications of the kernel machine (support vectors
times pixels, averaged over the folds). Written to src/stopwise/logs/data, with the costs beside it.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

FOLDER = Path(__file__).parent.parent / "src" / "stopwise" / "logs" / "data"


def models() -> dict[str, Any]:
    """Cheapest first."""
    return {
        "tree": DecisionTreeClassifier(max_depth=8, random_state=0),
        "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "kernel": SVC(gamma=0.001),
    }


def thousands_of_operations(name: str, model: Any, pixels: int, classes: int) -> float:
    """What one prediction takes."""
    if name == "tree":
        return float(model.get_depth()) / 1000
    if name == "linear":
        return (pixels * classes + pixels) / 1000
    return float(len(model.support_)) * pixels / 1000


def main() -> None:
    """Fit, predict, write."""
    digits = load_digits()
    pixels, classes = digits.data.shape[1], len(digits.target_names)
    outputs: dict[str, Any] = {name: np.empty(len(digits.target), dtype=int) for name in models()}
    costs: dict[str, list[float]] = {name: [] for name in models()}
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    for train, test in folds.split(digits.data, digits.target):
        for name, model in models().items():
            model.fit(digits.data[train], digits.target[train])
            outputs[name][test] = model.predict(digits.data[test])
            costs[name].append(thousands_of_operations(name, model, pixels, classes))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "digits.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["item", *outputs, "truth"])
        for at, truth in enumerate(digits.target):
            writer.writerow([at, *(int(column[at]) for column in outputs.values()), int(truth)])
    own = {name: round(float(np.mean(values)), 3) for name, values in costs.items()}
    text = json.dumps({"stages": list(own), "costs": list(own.values())}, indent=2)
    (FOLDER / "digits.json").write_text(text + "\n", encoding="utf-8")
    for name, column in outputs.items():
        print(f"{name}: cost {own[name]}, error rate {np.mean(column != digits.target):.4f}")


if __name__ == "__main__":
    main()
