"""Calling stages: what a stage is, how it is called, and what its results do to a round."""
