"""All checks that scikit-learn has for estimators, none of them skipped."""

import os
import subprocess
import sys
from pathlib import Path

CHECKS = """
import {module}
from sklearn.utils.estimator_checks import check_estimator
results = check_estimator({module}.small(), on_skip=None, on_fail="raise")
print(len(results), {{result["status"] for result in results}})
"""


def assert_all_checks_pass(module):
    """Check what `small()` of a test module makes.

    In a process of its own: one check is skipped unless this is set before scipy is imported.
    """
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), str(here.parents[1] / "src")])
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", CHECKS.format(module=module)],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    number, status = done.stdout.strip().split(" ", 1)
    assert int(number) > 40
    assert status == "{'passed'}"
