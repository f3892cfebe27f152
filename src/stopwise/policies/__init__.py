"""Policies: one rule, one file. `registry` finds them by name, `conformance` checks any of them.

Not here: Algorithm 1 of Hanawal, Szepesvari, Saligrama (AISTATS 2017). It decides by how many of
its own rounds were exploration, a count that neither the pair evidence nor the round number holds,
so it is not a function of (evidence, round, costs). It also assumes strong dominance and estimates
only the disagreement with the first stage, so it could not be recommended over the others.
"""
