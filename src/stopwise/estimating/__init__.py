"""Who is how often wrong, without a label: estimates from how the stages agree among themselves.

The truth of an item is not known, but stages that err independently rarely agree on a wrong answer.
So agreement says who is right, and how often each stage is. The assumption is plain: *errors of
different stages are not copies of each other*. It can be checked in part (`Dependence`), and where
it fails the estimate leans less on agreement. Half of it comes from a second model, in which errors
are shared to some part (`difficulty`).

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> truth = rng.integers(0, 3, 3000)
>>> outputs = [np.where(rng.random(3000) < e, (truth + 1) % 3, truth) for e in (0.3, 0.2, 0.1)]
>>> estimated = estimate(np.stack(outputs, axis=1))
>>> np.abs(estimated.consensus.accuracy - [0.7, 0.8, 0.9]).max() < 0.06
np.True_
>>> estimated.error_rates.argsort()               # the best first
array([2, 1, 0])
"""

from typing import TYPE_CHECKING

from stopwise.estimating.consensus import Consensus, consensus, plurality, vote_shares
from stopwise.estimating.dependence import Dependence, dependence
from stopwise.estimating.estimate import Estimate, answer_probabilities, estimate
from stopwise.estimating.from_pairs import PairEstimate, by_rule_of_thumb, estimate_from_pairs
from stopwise.lazy import lazy_names

__all__ = [
    "Consensus",
    "Dependence",
    "Estimate",
    "PairEstimate",
    "answer_probabilities",
    "by_rule_of_thumb",
    "consensus",
    "dependence",
    "estimate",
    "estimate_from_pairs",
    "plurality",
    "vote_shares",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, {})
