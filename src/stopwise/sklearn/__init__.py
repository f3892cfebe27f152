"""A cascade of scikit-learn classifiers that learns from unlabelled rows where to stop."""

from stopwise.sklearn.classifier import CascadeClassifier

__all__ = ["CascadeClassifier"]
