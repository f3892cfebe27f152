"""Replications of the Thompson rules: looks one by one, alike rounds in bulk."""
