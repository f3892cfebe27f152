"""An early-exit network, exported as predictions: at which layer should an image leave?

python examples/early_exit.py

A network with three hidden layers is trained on digits, and a small head on each layer. What every
exit predicts is written to a CSV file, as one would export it from any framework; a learner then
reads the file row by row and decides how many layers a row is worth.
"""

from __future__ import annotations

import csv
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from stopwise.live import Learner

LAYERS = (32, 32, 32)


def export(path: Path) -> None:
    """Train the network and its exits; write the predictions and the truth of the test rows."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # good enough for an example
        network = MLPClassifier(LAYERS, max_iter=60, random_state=0).fit(X_train, y_train)
    columns = []
    train, test = X_train, X_test
    for weights, bias in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        train = np.maximum(train @ weights + bias, 0)
        test = np.maximum(test @ weights + bias, 0)
        head = LogisticRegression(max_iter=2000).fit(train, y_train)
        columns.append(head.predict(test))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["exit 1", "exit 2", "exit 3", "truth"])
        writer.writerows(zip(*columns, y_test, strict=True))


def learn(path: Path) -> Learner:
    """Read the exported rows as a stream; the truth is not looked at."""
    learner = Learner({"exit 1": 1, "exit 2": 1, "exit 3": 1}, mistake_cost=20, seed=0)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            with learner.begin() as round:
                for stage in range(round.depth + 1):
                    round.observe(row[learner.stages[stage]])
    return learner


def main() -> Learner:
    """Export, learn, print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exits.csv"
        export(path)
        learner = learn(path)
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    report = learner.report()
    best = learner.best_stage()
    print(f"best exit: {learner.stages[best]}")
    print(f"layers computed: {report.spent:g} of {3 * report.rounds}")
    for name in learner.stages:
        right = sum(row[name] == row["truth"] for row in rows) / len(rows)
        print(f"  accuracy of {name} (never shown to the learner): {right:.3f}")
    return learner


if __name__ == "__main__":
    main()
