"""Replications of the confidence-bound rules: USS-UCB and Algorithm 2."""
