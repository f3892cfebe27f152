"""Three ways to tell a language, from cheap to expensive, in plain Python.

Naive Bayes over groups of letters: single letters, pairs, and groups of two, three and four
together. Longer groups cost more to look up and are wrong less often.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from stopwise.service.example.texts import Text

_SMOOTHING = 0.3


class Detector:
    """Tells the language of a text.

    Args:
        sizes: of the groups of letters it looks at.
        known: texts to learn from.

    >>> known = [Text("en", "the cat and the dog"), Text("de", "der Hund und die Katze")]
    >>> Detector((2,), known)("the dog")
    'en'
    """

    def __init__(self, sizes: Sequence[int], known: Sequence[Text]) -> None:
        self._sizes = tuple(sizes)
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in known:
            counts[row.language].update(_groups(row.text, self._sizes))
        self.languages = sorted(counts)
        groups = set().union(*counts.values())
        totals = {name: sum(counts[name].values()) for name in self.languages}
        room = _SMOOTHING * len(groups)
        self._weights = {
            group: [
                math.log((counts[name][group] + _SMOOTHING) / (totals[name] + room))
                for name in self.languages
            ]
            for group in groups
        }

    def __call__(self, text: str) -> str:
        """The code of the likeliest language."""
        scores = [0.0] * len(self.languages)
        for group in _groups(text, self._sizes):
            weights = self._weights.get(group)
            if weights is not None:
                scores = [score + weight for score, weight in zip(scores, weights, strict=True)]
        return self.languages[max(range(len(scores)), key=scores.__getitem__)]


def _groups(text: str, sizes: Sequence[int]) -> list[str]:
    padded = f" {text.lower()} "
    return [padded[at : at + size] for size in sizes for at in range(len(padded) - size + 1)]


STAGES: dict[str, tuple[int, ...]] = {"letters": (1,), "pairs": (2,), "groups": (2, 3, 4)}
"""The stages of the example and the groups of letters each looks at."""
COSTS = {"letters": 0.0001, "pairs": 0.0004, "groups": 0.003}
MISTAKE_COST = 0.02


def make_detectors(known: Sequence[Text]) -> dict[str, Detector]:
    """The three stages, taught."""
    return {name: Detector(sizes, known) for name, sizes in STAGES.items()}
