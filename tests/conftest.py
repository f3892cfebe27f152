"""Read before numpy is imported: tests run side by side, and BLAS threads would fight for cores."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
