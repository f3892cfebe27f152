"""Replications of the rules that ask what a look is worth: USS-VOI and IMED."""
