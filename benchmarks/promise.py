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
COUNTED = ("digits", "cancer", "drawn, 4 stages")
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


def compared(log: MadeLog, target: float, seed: int) -> list[float]:
    """BARGAIN beside the promise: first and last stage only, then all stages."""
    ends = Observations(
        log.rows.labels, log.rows.codes[:, [0, -1]], log.rows.confidences[:, [0, -1]]
    )  # fmt: skip
    level = 1 - DELTA
    theirs, _ = bargain(log.rows, target, seed)
    two = promise_rows(ends, log.costs[[0, -1]], target, level, seed=seed)
    whole = promise_rows(log.rows, log.costs, target, level, seed=seed)
    alone = promise_rows(log.rows, log.costs, target, level, seed=seed, calls="alone")
    return [
        theirs,
        two.last_calls_avoided,
        theirs * (1 - log.costs[0] / log.costs.sum()),
        whole.cost_avoided,
        whole.last_calls_avoided,
        alone.cost_avoided,
    ]


def broken(log: MadeLog, target: float, level: float, seed: int) -> list[bool]:
    """Whether the promise was broken, as a cascade and called alone."""
    return [
        not promise_rows(log.rows, log.costs, target, level, seed=seed, calls=calls).kept
        for calls in ("cascade", "alone")
    ]


def cut(log: MadeLog, most: int) -> MadeLog:
    """At most this number of rows, drawn at random."""
    some = np.random.default_rng(1).permutation(len(log.rows))[:most]
    return log._replace(rows=log.rows.where(some), truth=log.truth[some])


def each(function, runs: int, *given) -> np.ndarray:
    """Means over runs with other seeds, on all cores."""
    work = (delayed(function)(*given, seed) for seed in range(runs))
    return np.asarray(np.mean(Parallel(n_jobs=-1)(work), axis=0))


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000, help="to count broken promises")
    parser.add_argument("--compared", type=int, default=20, help="beside BARGAIN")
    parser.add_argument("--counted", default=";".join(COUNTED), help="logs to count on, with ;")
    parser.add_argument("--levels", default="0.9,0.95", help="levels to count at")
    parser.add_argument("own", nargs="*", help="further logs: name=file.csv:costs")
    chosen = parser.parse_args()
    logs = [*map(own_log, chosen.own), *made_logs()]
    avoided, ratios = [], []
    for log in (cut(log, MOST_ROWS) for log in logs):
        for target in TARGETS:
            mean = each(compared, chosen.compared, log, target)
            ratios.append([mean[1] / mean[0], mean[3] / mean[2]] if mean[0] > 0 else [np.nan] * 2)
            shown = " | ".join(f"{value:.3f}" for value in mean)
            avoided.append(f"| {log.name} | {len(log.rows):,} | {target:.2f} | {shown} |")
            print(avoided[-1], flush=True)
    counted, worst = [], 0.0
    for log in (cut(log, 1000) for log in logs if log.name in chosen.counted.split(";")):
        for level in map(float, chosen.levels.split(",")):
            for target in TARGETS:
                mean = each(broken, chosen.runs, log, target, level)
                worst = max(worst, *(mean / (1 - level)))
                shown = " | ".join(f"{value:.3f}" for value in mean)
                counted.append(f"| {log.name} | {target:.2f} | {level:.2f} | {shown} |")
                print(counted[-1], flush=True)
    calls, cost = np.asarray(ratios).T
    page = [
        "# A promise of agreement, measured",
        "",
        "Made by `benchmarks/promise.py`. Logs that are not made here (yelp, digit speech,"
        " MMLU-Pro) were given by file. Items that are looked at count as calls of the last stage"
        " everywhere.",
        "",
        f"## Avoided, beside BARGAIN 0.1.3 (delta {DELTA}; means of {chosen.compared} runs)",
        "",
        "*calls*: share of the calls of the last stage avoided. *cost*: share of the cost avoided"
        " that always going to the last stage has, through the cascade or alone.",
        "",
        "| log | rows | promised | BARGAIN: calls | first and last stage only: calls | BARGAIN:"
        " cost | all stages: cost | all stages: calls | called alone: cost |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *avoided,
        "",
        f"- Calls avoided with first and last stage only, over BARGAIN's, on the"
        f" {np.isfinite(calls).sum()} of {len(calls)} lines on which it avoids any: geometric mean"
        f" {_mean(calls):.2f}, smallest {np.nanmin(calls):.2f}.",
        f"- Cost avoided with all stages, over BARGAIN's: geometric mean {_mean(cost):.2f},"
        f" smallest {np.nanmin(cost):.2f}.",
        "",
        f"## How often the promise was broken, in {chosen.runs:,} runs on at most 1,000 rows",
        "",
        "| log | promised | level | cascade | alone |",
        "|---|---:|---:|---:|---:|",
        *counted,
        "",
        f"At most {worst:.2f} times what the level allows (1 - level); the test uses two thirds"
        " of that.",
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")


def _mean(values: np.ndarray) -> float:
    return float(np.exp(np.nanmean(np.log(np.maximum(values, 1e-3)))))


if __name__ == "__main__":
    main()
