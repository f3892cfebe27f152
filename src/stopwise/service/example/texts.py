"""The labelled texts: the first part teaches the stages, the rest is what they are asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).parent / "data" / "texts.tsv"


@dataclass(frozen=True)
class Text:
    """A text and the code of its language."""

    language: str
    text: str


def read_texts() -> tuple[list[Text], list[Text]]:
    """Texts to learn from, and texts to ask about.

    >>> known, asked = read_texts()
    >>> len(known), len(asked), len({text.language for text in asked})
    (2477, 3029, 24)
    """
    rows = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        language, text = line.split("\t")
        rows.append(Text(language, text))
    middle = len(rows) * 45 // 100
    return rows[:middle], rows[middle:]
