"""A policy over a log as if live, beside the baselines."""
