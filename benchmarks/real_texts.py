"""Logs made from texts: tools and people on sentiment, languages and spelling (`real_logs.py`)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Log = tuple[str, str, list[np.ndarray], list[np.ndarray] | None, np.ndarray, list[float] | None]
"""Name, kind, outputs and confidences of every stage, truth, own costs (None: drawn by name)."""

MOST_ROWS = 5000


def rng_of(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def rated(source: Path, name: str) -> tuple[list[str], list[list[int]]]:
    """Texts and what each person thought of them."""
    folder = next(source.rglob(f"{name}_GroundTruth.txt")).parent

    def read(kind: str) -> list[list[str]]:
        text = (folder / f"{name}_{kind}.txt").read_text("utf-8-sig", errors="ignore")
        return [line.split("\t") for line in text.splitlines()]

    texts = {row[0]: row[2] for row in read("GroundTruth") if len(row) > 2}
    ratings = {row[0]: json.loads(row[3]) for row in read("anonDataRatings") if len(row) > 3}
    both = [key for key in texts if key in ratings and len(ratings[key]) >= 14]
    order = rng_of(name).permutation(len(both))[:MOST_ROWS]
    return [texts[both[at]] for at in order], [ratings[both[at]] for at in order]


def _sign(values: Any, dead: float) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    return np.where(array > dead, 2, np.where(array < -dead, 0, 1))


def sentiment(source: Path, name: str, tools: list[str], binary: bool) -> Log:
    from afinn import Afinn
    from textblob import TextBlob
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    texts, ratings = rated(source, name)
    vader, afinn, emoticons = SentimentIntensityAnalyzer(), Afinn(), Afinn(emoticons=True)
    lexicon = {word: score for word, score in vader.lexicon.items() if abs(score) >= 1}
    scores = {
        "afinn": lambda t: afinn.score(t) / 5,
        "emoticons": lambda t: emoticons.score(t) / 5,
        "blob": lambda t: TextBlob(t).sentiment.polarity,
        "vader": lambda t: vader.polarity_scores(t)["compound"],
        "words": lambda t: sum(np.sign(lexicon.get(word, 0)) for word in t.lower().split()) / 3,
    }
    mean = np.array([np.mean(rating) for rating in ratings])
    kept = np.abs(mean) > 0.3 if binary else np.ones(len(mean), dtype=bool)
    truth = (mean > 0) * 2 if binary else _sign(mean, 0.3)
    codes, sure = [], []
    for tool in tools:
        value = np.array([scores[tool](text) for text in texts])
        codes.append(((value >= 0) * 2 if binary else _sign(value, 0.05))[kept])
        sure.append(np.abs(value)[kept])
    if "person" in tools_with_person(name):
        person = np.array([rating[-1] for rating in ratings])
        codes.append(((person >= 0) * 2 if binary else _sign(person, 0))[kept])
        sure.append(np.abs(person)[kept].astype(float))
    ending = "binary" if binary else "three"
    return f"sentiment {name} {ending}", "services", codes, sure, truth[kept], None


def tools_with_person(name: str) -> tuple[str, ...]:
    """Where a person stands behind the tools."""
    return ("person",) if name in ("amazonReviewSnippets", "nytEditorialSnippets") else ()


def crowd(source: Path, name: str, way: str) -> Log:
    _, ratings = rated(source, name)
    rng = rng_of(f"crowd {name} {way}")
    people = np.array([rng.permutation(rating)[:14] for rating in ratings])
    truth = _sign([np.mean(rating) for rating in ratings], 0.3)
    votes = _sign(people, 0)
    if way == "people":
        codes, costs = [votes[:, at] for at in range(5)], [1.0] * 5
    elif way == "growing":
        codes, costs = [_plurality(votes[:, :size]) for size in (1, 3, 5, 9)], [1.0, 2, 2, 4]
    else:  # three people, then an expert: the mean of the others
        codes = [votes[:, at] for at in range(3)] + [_sign(people[:, 6:].mean(axis=1), 0.3)]
        costs = [1.0, 1, 1, 6]
    return f"crowd {name} {way}", "crowds", codes, None, truth, costs


def _plurality(votes: np.ndarray) -> np.ndarray:
    counts = np.stack([(votes == label).sum(axis=1) for label in range(3)], axis=1)
    return np.asarray((counts + 0.01 * (votes[:, :1] == np.arange(3))).argmax(axis=1))


def weak_labels(source: Path, name: str) -> Log:
    """Rules of thumb that say one thing or nothing; then a tool, then a person."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    texts, ratings = rated(source, name)
    lexicon = SentimentIntensityAnalyzer().lexicon
    strong = sorted(lexicon, key=lambda word: -abs(lexicon[word]))
    mean = np.array([np.mean(rating) for rating in ratings])
    kept = np.abs(mean) > 0.3

    def rule(words: set[str], label: int) -> np.ndarray:
        found = [label if set(t.lower().split()) & words else -1 for t in texts]
        return np.asarray(np.array(found)[kept])

    good = {word for word in strong[:4000] if lexicon[word] > 0}
    bad = {word for word in strong[:4000] if lexicon[word] < 0} | {"not", "but", "n't"}
    ends = np.array([2 if "!" in t else 0 if "?" in t else -1 for t in texts])[kept]
    vader = SentimentIntensityAnalyzer()
    score = np.array([vader.polarity_scores(text)["compound"] for text in texts])[kept]
    person = np.array([np.sign(rating[-1]) + 1 if rating[-1] else -1 for rating in ratings])[kept]
    tool = np.where(np.abs(score) < 0.05, -1, (score > 0) * 2)
    codes = [ends, rule(good, 2), rule(bad, 0), tool, person]
    return f"weak {name}", "weak labels", codes, None, (mean > 0)[kept] * 2, [1.0, 1, 1, 3, 20]


TONGUES = (
    "de", "fr", "es", "it", "nl", "pt", "sv", "da", "nb", "fi", "pl", "cs", "sk", "hu", "ro", "bg",
    "ru", "uk", "el", "tr", "id", "vi", "ja", "ko", "ar", "he",
)  # fmt: skip


def languages(length: int, chosen: list[str], final: bool) -> Log:
    """Messages of Django in the languages it is translated to."""
    import gettext

    import django
    import langid
    import py3langid
    import pycld2
    from langdetect import DetectorFactory, LangDetectException, detect_langs

    DetectorFactory.seed = 0
    folder = Path(django.__file__).parent
    texts: list[tuple[str, str]] = []
    places = folder.glob("contrib/*/locale" if final else "conf/locale")
    for place in places:
        for code in TONGUES:
            for file in (place / code / "LC_MESSAGES").glob("*.mo"):
                with file.open("rb") as stream:
                    catalogue = vars(gettext.GNUTranslations(stream))["_catalog"]
                for value in catalogue.values():
                    text = " ".join(str(value).replace("%", " ").split())[:length]
                    if len(text) > 5 and "Project-Id" not in text:
                        texts.append((text, code))
    order = rng_of(f"languages {length}").permutation(len(texts))[:2500]
    texts = [texts[at] for at in order]

    def detected(text: str) -> tuple[str, float]:
        try:
            best = detect_langs(text)[0]
        except LangDetectException:  # a text without letters
            return "", 0.0
        return best.lang, best.prob

    def compact(text: str) -> tuple[str, float]:
        found = pycld2.detect("".join(c for c in text if c.isprintable()))[2][0]
        return ("" if found[1] == "un" else found[1]), float(found[3])

    tools: dict[str, Callable[[str], tuple[str, float]]] = {
        "compact": compact,
        "langid": langid.classify,
        "py3langid": py3langid.classify,
        "detect": detected,
        "letters": _by_letters,
    }
    outputs = [[tools[tool](text) for text, _ in texts] for tool in chosen]
    names: dict[str, int] = {}
    same = {"no": "nb", "iw": "he"}
    coded = lambda word: -1 if not word else names.setdefault(same.get(word, word), len(names))  # noqa: E731
    codes = [np.array([coded(word) for word, _ in column]) for column in outputs]
    sure = [np.array([float(value) for _, value in column]) for column in outputs]
    truth = np.array([coded(code) for _, code in texts])
    return f"languages {length} {'final' if final else ''}", "services", codes, sure, truth, None


def _by_letters(text: str) -> tuple[str, float]:
    """The cheapest tool: telling letters."""
    for letters, code in (
        ("ß", "de"), ("ñ", "es"), ("ãõ", "pt"), ("œçèê", "fr"), ("å", "sv"), ("ø", "da"),
        ("ąęłż", "pl"), ("ěřů", "cs"), ("őű", "hu"), ("ăș", "ro"), ("їєі", "uk"), ("ыэ", "ru"),
        ("ъ", "bg"), ("ğış", "tr"), ("ạảế", "vi"), ("αβε", "el"), ("אבה", "he"), ("ال", "ar"),
        ("のを", "ja"), ("이다", "ko"),
    ):  # fmt: skip
        hits = sum(letter in text for letter in letters)
        if hits:
            return code, float(hits)
    return "en", 0.0


def spelling(part: int, chosen: list[str]) -> Log:
    """Misspelt words of codespell, corrected by four tools."""
    import codespell_lib
    from autocorrect import Speller
    from spellchecker import SpellChecker
    from symspellpy import SymSpell, Verbosity
    from textblob import Word

    words = Path(codespell_lib.__file__).parent / "data" / "dictionary.txt"
    lines = words.read_text("utf-8").split("\n")
    pairs = [line.split("->") for line in lines if "->" in line and "," not in line]
    order = rng_of(f"spelling {part}").permutation(len(pairs))[part * 1500 : part * 1500 + 1500]
    pairs = [pairs[at] for at in order]
    checker, speller, fast = SpellChecker(distance=1), Speller(fast=True), SymSpell(2, 7)
    import symspellpy

    fast.load_dictionary(
        str(Path(symspellpy.__file__).parent / "frequency_dictionary_en_82_765.txt"), 0, 1
    )

    def by_symspell(word: str) -> tuple[str, float]:
        found = fast.lookup(word, Verbosity.TOP, max_edit_distance=2)
        return (found[0].term, -float(found[0].distance)) if found else (word, -3.0)

    tools: dict[str, Callable[[str], tuple[str, float]]] = {
        "auto": lambda word: (speller(word), np.nan),
        "checker": lambda word: (checker.correction(word) or word, np.nan),
        "symspell": by_symspell,
        "blob": lambda word: Word(word).spellcheck()[0],
        "near": lambda word: (_near(word), np.nan),
    }
    outputs = [[tools[tool](wrong) for wrong, _ in pairs] for tool in chosen]
    names: dict[str, int] = {}
    codes = [np.array([names.setdefault(w.lower(), len(names)) for w, _ in c]) for c in outputs]
    truth = np.array([names.setdefault(right.lower(), len(names)) for _, right in pairs])
    sure = [np.array([float(value) for _, value in column]) for column in outputs]
    return f"spelling {part}", "services", codes, sure, truth, None


def _near(word: str) -> str:
    """Double letters made single: the cheapest correction there is."""
    return "".join(c for at, c in enumerate(word) if not at or c != word[at - 1])
