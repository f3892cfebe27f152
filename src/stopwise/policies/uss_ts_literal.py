"""USS-TS as printed, with its Beta draws: the reference that the exact form is tested against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stopwise.checks import names_fields
from stopwise.costs import Costs
from stopwise.evidence import Evidence
from stopwise.policies.uss_ts import UssTs


@names_fields
@dataclass(frozen=True)
class UssTsLiteral(UssTs):
    """Line by line the pseudo-code of Algorithm USS-TS; same law as `UssTs`, other random numbers.

    >>> rng = np.random.default_rng(1)
    >>> costs = Costs.from_cumulative((0.0, 0.25))
    >>> draws = [UssTsLiteral().draw(Evidence(2), 1, costs, rng) for _ in range(1000)]
    >>> 0.2 < 1 - np.mean(draws) < 0.3
    np.True_
    """

    name: ClassVar[str] = "uss-ts-literal"

    def draw(self, evidence: Evidence, round: int, costs: Costs, rng: np.random.Generator) -> int:
        """Lines 3 to 8: walk, sample every pair with a deeper stage, stop or go on."""
        C = costs.in_mistakes
        S = evidence.disagreed + self.prior_disagreed
        F = evidence.seen - evidence.disagreed + self.prior_agreed
        last = costs.stage_count - 1
        i = 0
        while True:
            if i == last or all(
                # A threshold of 1 always passes, though a draw may be rounded up to 1.
                C[j] - C[i] >= 1 or C[j] - C[i] > rng.beta(S[i, j], F[i, j])
                for j in range(i + 1, last + 1)
            ):
                return i
            i += 1
