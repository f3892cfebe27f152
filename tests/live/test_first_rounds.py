"""What is slow to load is loaded when a learner is made, not in its first rounds."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, time
from stopwise.live import Learner
learner = Learner([0, 1, 2], sys.argv[1], mistake_cost=8)
loaded = set(sys.modules)
for _ in range(5):
    round = learner.begin()
    for _ in range(round.depth + 1):
        round.observe("x")
    round.end()
new = [name for name in set(sys.modules) - loaded if name.startswith(("scipy", "numba"))]
print(new)
"""


@pytest.mark.parametrize("policy", ["uss-ts-jump", "uss-voi-anytime"])
def test_nothing_large_is_loaded_in_a_round(policy):
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, policy], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
