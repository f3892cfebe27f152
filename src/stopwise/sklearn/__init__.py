"""A cascade of scikit-learn classifiers that learns from unlabelled rows where to stop."""

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names
from stopwise.sklearn.classifier import CascadeClassifier

__all__ = ["CascadeClassifier"]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, {})
