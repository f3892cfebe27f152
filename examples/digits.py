"""Three classifiers on handwritten digits: no label is seen after training.

python examples/digits.py
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from stopwise.sklearn import CascadeClassifier


def main() -> dict[str, float]:
    """Train with labels, learn where to stop without, print what it reached."""
    X, y = load_digits(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
    X_stream, X_test, _, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

    cascade = CascadeClassifier(
        [
            ("bayes", GaussianNB(), 1),
            ("neighbours", KNeighborsClassifier(1), 10),
            ("support vectors", SVC(C=10), 40),
        ],
        mistake_cost=500,  # one wrong digit costs as much as 500 calls of the first stage
        random_state=0,
    ).fit(X_train, y_train)
    cascade.partial_fit(X_stream)  # no labels from here on

    figures = {
        "accuracy": cascade.score(X_test, y_test),
        "accuracy of the most expensive": cascade.estimators_[-1].score(X_test, y_test),
        "cost of a prediction": cascade.cost_,
        "cost of a row while learning": cascade.learning_cost_ / len(X_stream),
        "cost of the most expensive": 40.0,
    }
    print(f"stops at: {cascade.stage_name_}")
    for name, value in figures.items():
        print(f"{name}: {value:.4g}")
    return figures


if __name__ == "__main__":
    main()
