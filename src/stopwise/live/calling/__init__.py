"""Calling stages: what a stage is, how it is called, and what came of the call."""
