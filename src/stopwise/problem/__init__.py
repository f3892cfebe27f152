"""What is true: costs and the joint distribution of truth and outputs. Known only in simulation.

`problem` holds the class; `patterns` checks and codes its table, `as_json` reads and writes it, and
`rates` finds a joint distribution with given error rates and disagreements.
"""

from stopwise.problem.patterns import IntArray as IntArray
from stopwise.problem.problem import Problem as Problem

__all__ = ["IntArray", "Problem"]
