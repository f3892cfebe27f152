"""The scalar parts of policies, made known to numba: the kernels compile what the policies run.

Import them from here, so that they are known before a kernel that calls them is compiled.
"""

from __future__ import annotations

from numba.extending import register_jitable

from stopwise.policies.imed import bernoulli_kl, imed_index
from stopwise.policies.uss_ucb import upper_bound
from stopwise.policies.voi import (
    LATE_CAUTION,
    looks_to_learn,
    price_of_looks,
    rounds_that_count,
    stakes,
)

__all__ = [
    "LATE_CAUTION",
    "bernoulli_kl",
    "imed_index",
    "looks_to_learn",
    "price_of_looks",
    "rounds_that_count",
    "stakes",
    "upper_bound",
]

for function in (
    bernoulli_kl, imed_index, looks_to_learn, price_of_looks, rounds_that_count, stakes,
    upper_bound,
):  # fmt: skip
    register_jitable(function)
