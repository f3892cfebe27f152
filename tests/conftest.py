"""Read before numpy is imported: tests run side by side, and BLAS threads would fight for cores."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from hypothesis import HealthCheck, settings  # noqa: E402

# No test may fail because the machine is busy. In continuous integration examples are the same in
# every run, so that a failure is a change's; elsewhere they go on exploring.
settings.register_profile(
    "stopwise",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("stopwise")
