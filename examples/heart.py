"""The heart disease cascade of the paper, with what its tests really cost.

python examples/heart.py

Stage 1 asks, takes blood pressure, blood and a resting ECG; stage 2 adds the exercise test; stage 3
adds fluoroscopy and the thallium scan. Prices are the fees of the single tests in Canadian dollars
(Ontario's fee schedule of 1995, published by P. Turney with the data set), without the discounts
for tests that are done together. The data are described in `stopwise/paper/data`.
"""

from __future__ import annotations

import argparse
from importlib.resources import files

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stopwise.sklearn import CascadeClassifier

FEES = {
    "age": 1.00, "sex": 1.00, "cp": 1.00, "trestbps": 1.00, "chol": 7.27, "fbs": 5.20,
    "restecg": 15.50, "thalach": 102.90, "exang": 87.30, "oldpeak": 87.30, "slope": 87.30,
    "ca": 100.90, "thal": 102.90,
}  # fmt: skip
TESTS = list(FEES)
STAGES = {"at rest": TESTS[:7], "exercise": TESTS[:10], "imaging": TESTS}


def main(mistake_cost: float = 5000.0) -> CascadeClassifier:
    """Train on some patients, learn from others without labels, print what it reached."""
    path = files("stopwise.paper") / "data" / "heart_cleveland.csv"
    with path.open() as file:
        frame = pd.read_csv(file).dropna()
    train, rest = train_test_split(frame, test_size=0.6, random_state=0)
    stream, test = train_test_split(rest, test_size=0.5, random_state=0)

    paid: set[str] = set()
    stages = []
    for name, tests in STAGES.items():
        fee = sum(FEES[test] for test in tests if test not in paid)
        paid.update(tests)
        model = make_pipeline(StandardScaler(), LogisticRegression())
        stages.append((name, model, fee, tests))
    cascade = CascadeClassifier(stages, mistake_cost=mistake_cost, random_state=0)
    cascade.fit(train[TESTS], train["disease"])
    # The clinic sees few patients; going over them again is what the paper does ("round-robin").
    for _ in range(10):
        cascade.partial_fit(stream[TESTS])

    print(f"a mistake costs {mistake_cost:g}; stops at: {cascade.stage_name_}")
    print(f"cost of a patient: {cascade.cost_:.2f} of {sum(FEES.values()):.2f}")
    print(f"accuracy: {cascade.score(test[TESTS], test['disease']):.3f}")
    for (name, *_), estimator, (_, tests) in zip(
        stages, cascade.estimators_, STAGES.items(), strict=True
    ):
        print(f"  accuracy of {name}: {estimator.score(test[tests], test['disease']):.3f}")
    return cascade


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--mistake-cost", type=float, default=5000.0)
    main(parser.parse_args().mistake_cost)
