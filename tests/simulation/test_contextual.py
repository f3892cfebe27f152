"""Problems with a context: which stage is the best for each, by hand."""

from __future__ import annotations

import numpy as np

from stopwise.costs import Costs
from stopwise.simulation.contextual import ContextualProblem


def test_of_equal_stages_the_deepest_is_the_best() -> None:
    # At the context 0 the first stage errs in half of all cases, which is what the second costs.
    problem = ContextualProblem(((0.0, 3.0),), Costs.from_cumulative((0.0, 0.5)))
    assert problem.best_stages(np.array([[-1.0], [0.0], [1.0]])).tolist() == [0, 1, 1]
