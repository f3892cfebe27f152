"""Counting a large log against the bare query: time and peak memory, each in a fresh process.

    python benchmarks/logs_scale.py --rows 50000000 --folder FOLDER

Writes a Parquet file of four stages with text labels (a fifth of the rows at a time, so that this
script itself stays small), then runs, in turn and several times over:

bare      scan_parquet(...).group_by(the four stages).agg(len), streaming engine
count     what `stopwise analyze` counts: the same group-by, with the part of the log as a key
analyze   all of `stopwise analyze --json`

With --billed every stage also has a column of costs, which the bare query sums. Processor time is
shown beside the time on the clock: on a machine that does other work it is the fairer of the two.
Imports, of polars and of Stopwise (0.2 s), are left out of all three.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STAGES = ["tiny", "small", "medium", "large"]
ERRORS = [0.30, 0.20, 0.10, 0.05]
LABELS = ["negative", "neutral", "positive"]
CHUNK = 1_000_000

BARE = """
import polars
frame = polars.scan_parquet(path)
result = frame.group_by(stages).agg(polars.len()).collect(engine="streaming")
rows = int(result["len"].sum())
"""
COUNT = """
from stopwise.logs.reading.counting import count
from stopwise.logs.reading.layouts.opening import open_log
from stopwise.logs.settings import LogSettings
rows = count(open_log(path, LogSettings(stages=tuple(stages), costs=(0.1, 0.2, 0.3, 0.4)))).rows
"""
ANALYZE = """
import os
os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "1")  # as the command does
from stopwise.logs import analyze
analysis = analyze(path, stages=stages, costs=[0.01, 0.02, 0.04, 0.08], mistake_cost=1)
rows = analysis.to_dict()["rows"]
"""
BARE_BILLED = """
import polars
sums = [polars.len()] + [polars.col(stage + ":cost").sum() for stage in stages]
result = polars.scan_parquet(path).group_by(stages).agg(sums).collect(engine="streaming")
rows = int(result["len"].sum())
"""
COUNT_BILLED = COUNT.replace(", costs=(0.1, 0.2, 0.3, 0.4)", "")
ANALYZE_BILLED = ANALYZE.replace(" costs=[0.01, 0.02, 0.04, 0.08],", "")
FRAME = """
import json, resource, sys, time
import numpy, polars, scipy.special, stopwise.logs.analysis  # imports are not what is measured
path, stages = sys.argv[1], json.loads(sys.argv[2])
used = resource.getrusage(resource.RUSAGE_SELF)
before = used.ru_utime + used.ru_stime
start = time.perf_counter()
{body}
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
used = resource.getrusage(resource.RUSAGE_SELF)
cpu = used.ru_utime + used.ru_stime - before
print(json.dumps({{"rows": rows, "seconds": seconds, "cpu": cpu, "peak_gib": peak}}))
"""


def write_log(path: Path, rows: int, billed: bool = False, seed: int = 0) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    fields = [(stage, pa.string()) for stage in STAGES]
    fields += [(f"{stage}:cost", pa.float64()) for stage in STAGES if billed]
    schema = pa.schema(fields)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            truth = rng.integers(0, len(LABELS), size)
            columns = {}
            for at, (stage, error) in enumerate(zip(STAGES, ERRORS, strict=True)):
                other = rng.integers(0, len(LABELS), size)
                codes = np.where(rng.random(size) < error, other, truth).astype(np.int8)
                coded = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(LABELS))
                columns[stage] = coded.cast(pa.string())
                if billed:
                    bills = rng.lognormal(0, 0.5, size) * 1e-3 * 3**at
                    columns[f"{stage}:cost"] = pa.array(np.round(bills, 6))
            writer.write_table(pa.table(columns, schema=schema))


def measure(body: str, path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", FRAME.format(body=body), str(path), json.dumps(STAGES)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--billed", action="store_true", help="costs are measured in the log")
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "log.parquet"
        write_log(path, given.rows, given.billed)
        print(f"{given.rows:,} rows, {path.stat().st_size / 2**20:.0f} MiB")
        bodies = {"bare": BARE, "count": COUNT, "analyze": ANALYZE}
        if given.billed:
            bodies = {"bare": BARE_BILLED, "count": COUNT_BILLED, "analyze": ANALYZE_BILLED}
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in bodies}
        for _ in range(given.repeats):
            for name, body in bodies.items():
                found = measure(body, path)
                assert found["rows"] == given.rows
                runs[name].append(found)
    medians, cpu = {}, {}
    for name, measured in runs.items():
        medians[name] = statistics.median(run["seconds"] for run in measured)
        cpu[name] = statistics.median(run["cpu"] for run in measured)
        peak = max(run["peak_gib"] for run in measured)
        print(
            f"{name:8} {medians[name]:7.2f} s, {cpu[name]:7.2f} s of a processor (medians of"
            f" {len(measured)}), peak {peak:.2f} GiB"
        )
    for name in ("count", "analyze"):
        ratio, of_cpu = medians[name] / medians["bare"], cpu[name] / cpu["bare"]
        print(f"{name} / bare {ratio:.2f}, of processor time {of_cpu:.2f}")


if __name__ == "__main__":
    main()
