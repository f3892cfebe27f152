"""The example log: three classifiers of rising cost on scikit-learn's digits, out-of-fold.

Made by `scripts/make_example_log.py`. Costs are thousands of arithmetic operations a prediction.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "data"

MISTAKE_COST = 500.0
"""As if one wrong digit cost as much as half a million operations."""


def example_log() -> Path:
    """Where the example log lies.

    >>> example_log().name
    'digits.csv'
    """
    return _FOLDER / "digits.csv"


def example_settings() -> dict[str, Any]:
    """Its stages, their costs and a mistake cost. The truth is in column `truth`.

    >>> example_settings()["stages"]
    ['tree', 'linear', 'kernel']
    """
    known: dict[str, Any] = json.loads((_FOLDER / "digits.json").read_text(encoding="utf-8"))
    return {**known, "mistake_cost": MISTAKE_COST}
