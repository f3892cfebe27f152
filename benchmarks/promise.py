"""A promise of agreement against BARGAIN 0.1.3, and how often it is broken: into PROMISE.md.

`python benchmarks/promise.py [--runs 1000] [name=file.csv:costs ...]`; needs `pip install bargain`.
"""

from __future__ import annotations

import argparse
import sys
import types
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from made_logs import MadeLog, made_logs, own_log

from stopwise.logs.agreeing.promise import promise_rows
from stopwise.situations.observations import Observations

DELTA = 0.1
TARGETS = (0.90, 0.95, 0.99)
MOST_ROWS = 5000
PAGE = Path(__file__).with_name("PROMISE.md")


def bargain(rows: Observations, target: float, seed: int) -> tuple[float, bool]:
    """Share of last-stage calls that BARGAIN avoids, and whether it kept its promise."""
    sys.modules.setdefault("openai", types.SimpleNamespace(OpenAI=object))  # it asks for nobody
    from BARGAIN import BARGAIN_A, Oracle, Proxy

    first, last, sure = rows.codes[:, 0], rows.codes[:, -1], rows.confidences[:, 0]

    class First(Proxy):
        def get_preds_and_scores(self, indxs, data_records):
            at = np.asarray(indxs, dtype=np.int64)
            return first[at], sure[at]

    class Last(Oracle):
        def get_pred(self, data_records, indxs=None):
            return last[np.asarray(data_records, dtype=np.int64)]

        def is_answer_correct(self, indxs, data_records, outputs):
            return last[np.asarray(data_records, dtype=np.int64)] == outputs

    process = BARGAIN_A(
        First(verbose=False), Last(verbose=False), target=target, delta=DELTA, verbose=False,
        seed=seed,
    )  # fmt: skip
    answers, used = process.process(np.arange(len(rows)), return_oracle_usage=True)
    return 1 - float(np.mean(used)), bool(np.mean(np.asarray(answers) == last) >= target - 1e-12)


def one_run(log: MadeLog, target: float, seed: int, compare: bool) -> list[float]:
    """All figures of one run."""
    ends = Observations(
        log.rows.labels, log.rows.codes[:, [0, -1]], log.rows.confidences[:, [0, -1]]
    )
    two = promise_rows(ends, log.costs[[0, -1]], target, 1 - DELTA, seed=seed)
    whole = promise_rows(log.rows, log.costs, target, 1 - DELTA, seed=seed)
    alone = promise_rows(log.rows, log.costs, target, 1 - DELTA, seed=seed, calls="alone")
    theirs, kept = bargain(log.rows, target, seed) if compare else (np.nan, True)
    total = log.costs.sum()
    return [
        theirs, not kept, two.last_calls_avoided, not two.kept,
        theirs * (1 - log.costs[0] / total), whole.cost_avoided, not whole.kept,
        whole.last_calls_avoided, alone.cost_avoided, not alone.kept,
    ]  # fmt: skip


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--compared", type=int, default=50)
    parser.add_argument("own", nargs="*")
    chosen = parser.parse_args()
    logs = [*map(own_log, chosen.own), *made_logs()]
    table, ratios, broken = [], [], []
    for log in logs:
        if len(log.rows) > MOST_ROWS:
            some = np.random.default_rng(1).permutation(len(log.rows))[:MOST_ROWS]
            log = log._replace(rows=log.rows.where(some), truth=log.truth[some])
        for target in TARGETS:
            runs = np.asarray(
                Parallel(n_jobs=-1)(
                    delayed(one_run)(log, target, seed, seed < chosen.compared)
                    for seed in range(chosen.runs)
                )
            )
            mean = np.nanmean(runs, axis=0)
            ratios.append((mean[2] / mean[0] if mean[0] > 0 else np.nan,
                           mean[5] / mean[4] if mean[4] > 0 else np.nan))  # fmt: skip
            broken.append(mean[[3, 6, 9]])
            table.append(
                f"| {log.name} | {len(log.rows):,} | {target:.2f} | {mean[0]:.3f} | {mean[2]:.3f} |"
                f" {mean[4]:.3f} | {mean[5]:.3f} | {mean[7]:.3f} | {mean[8]:.3f} |"
                f" {mean[3]:.3f} | {mean[6]:.3f} | {mean[9]:.3f} |"
            )
            print(table[-1], flush=True)
    first, cost = np.asarray(ratios).T
    page = [
        "# A promise of agreement, measured",
        "",
        f"Equal to the last stage on a share of the items, with 90 % confidence: {chosen.runs:,}"
        f" runs of each line, the first {chosen.compared} beside BARGAIN 0.1.3 (delta {DELTA}) on"
        " the same rows. Items that are looked at count as calls of the last stage. Made by"
        " `benchmarks/promise.py`.",
        "",
        "| log | rows | promised | BARGAIN: calls of the last stage avoided | first and last stage"
        " only: avoided | BARGAIN: cost avoided | all stages: cost avoided | all stages: calls of"
        " the last avoided | called alone: cost avoided | broken: first and last | all stages |"
        " alone |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *table,
        "",
        f"- Where BARGAIN avoids anything ({np.isfinite(first).sum()} of {len(first)} lines), calls"
        f" of the last stage avoided, over BARGAIN's: geometric mean {_mean(first):.2f}, smallest"
        f" {np.nanmin(first):.2f}.",
        f"- Cost avoided with all stages, over BARGAIN's: geometric mean {_mean(cost):.2f},"
        f" smallest {np.nanmin(cost):.2f}.",
        f"- Broken at most in {np.max(broken):.1%} of the runs of a line; 10 % are promised.",
        "- BARGAIN's costs are those of a cascade of all stages: an item that it answers by the"
        " first stage saves all others. *Called alone* states costs against the last stage alone.",
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")


def _mean(values: np.ndarray) -> float:
    return float(np.exp(np.nanmean(np.log(np.maximum(values, 1e-3)))))


if __name__ == "__main__":
    main()
