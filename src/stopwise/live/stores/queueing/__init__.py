"""Rounds on their way to a store."""
