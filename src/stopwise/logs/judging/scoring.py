"""The verdict held against the truth, after it was given. Nothing here flows back to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stopwise.abstentions import UNKNOWN, answers
from stopwise.checks import StopwiseError
from stopwise.costs import FloatArray
from stopwise.decisions import TIE, optimal_stage
from stopwise.logs.judging.verdict import Verdict
from stopwise.logs.judging.warnings.log_warning import LogWarning
from stopwise.logs.reading.counting import NOT_CALLED, encode, tell_blanks_apart
from stopwise.logs.reading.files import collect, need_polars
from stopwise.logs.reading.labels import (
    fold_labels,
    plain_label,
    refuse_foreign_truth,
    truth_notes,
)
from stopwise.logs.reading.log import Log


@dataclass(frozen=True)
class TruthScore:
    """What is true of the stages, and how good the verdict was. Regret is in mistakes per item.

    Attributes:
        rows: items with a truth.
        error_rates: of every stage, with what an abstention means as in the settings.
        error_rates_if_abstaining_is_wrong: with an abstention counted as a mistake.
        expected_total_costs: error rate plus cumulative cost in mistakes.
        margin: of weak dominance; None if the last stage is optimal, so that there is none.
        certain_but_wrong: pairs called certain whose deeper stage was worth its price.
    """

    rows: int
    error_rates: FloatArray
    error_rates_if_abstaining_is_wrong: FloatArray
    expected_total_costs: FloatArray
    optimal_stage: int
    margin: float | None
    weak_dominance: bool
    regret_by_stage: FloatArray
    regret_of_recommended: float
    certain_but_wrong: tuple[tuple[int, int], ...]


def score(log: Log, verdict: Verdict) -> tuple[TruthScore, list[LogWarning]]:
    """Count errors in the log and compare; and what should be said about the truth's labels.

    >>> import polars
    >>> from stopwise import Costs, Evidence
    >>> from stopwise.logs.reading.layouts.opening import open_log
    >>> from stopwise.logs.settings import LogSettings
    >>> from stopwise.logs.judging.verdict import judge
    >>> frame = polars.DataFrame({"a": [0, 1], "b": [1, 1], "truth": [1, 1]})
    >>> log = open_log(frame, LogSettings(stages=("a", "b"), costs=(0, 0.25), truth="truth"))
    >>> evidence = Evidence.from_prefixes(2, [[0, 1], [1, 1]])
    >>> scored, _ = score(log, judge(("a", "b"), evidence, Costs.from_cumulative((0.0, 0.25))))
    >>> scored.error_rates, scored.optimal_stage, scored.regret_of_recommended
    (array([0.5, 0. ]), 1, 0.0)
    """
    polars = need_polars()
    assert log.truth is not None
    columns = [f"y{at}" for at in range(len(log.stages))]
    calls = [f"k{at}" for at, known in enumerate(log.calls_known) if known]
    query = log.truth.group_by([*columns, *calls, "truth"]).agg(
        polars.col("n").sum() if log.weighted else polars.len().alias("n")
    )
    table = collect(query, log.name)
    labels: dict[str, int] = {}
    codes = np.stack([encode(table[name].to_list(), labels) for name in columns], axis=1)
    known_labels = len(labels)
    written = [plain_label(value) for value in table["truth"].to_list()]
    renamed, unknown = fold_labels([label for label in written if label is not None], labels)
    truth = encode([renamed.get(label, label) if label else None for label in written], labels)
    number = table["n"].to_numpy().astype(np.float64)
    known = truth >= 0
    if not known.any():
        raise StopwiseError(f"truth: the column {log.settings.truth!r} is blank in every row")
    refuse_foreign_truth(log.settings.truth, truth, known_labels)
    codes = tell_blanks_apart(log, table, codes)[known]
    truth, number = truth[known], number[known]
    given = answers(codes, log.settings.no_answer)
    counted = number @ (given != UNKNOWN)
    if (counted == 0).any():
        stage = log.stages[int(np.argmin(counted))]
        raise StopwiseError(f"truth: no item that {stage} answered has a truth")
    errors = (number @ ((given != UNKNOWN) & (given != truth[:, None]))) / counted
    called = codes != NOT_CALLED
    with_silence = (number @ (called & (codes != truth[:, None]))) / (number @ called)
    notes = [LogWarning(code, text) for code, text in truth_notes(renamed, unknown).items()]
    return _score(verdict, errors, int(number.sum()), with_silence), notes


def _score(verdict: Verdict, errors: FloatArray, rows: int, with_silence: FloatArray) -> TruthScore:
    totals = errors + verdict.costs.in_mistakes
    best = optimal_stage(totals)
    beyond = [pair for pair in verdict.pairs if pair.shallow == best]
    margin = min((pair.threshold - pair.disagreement for pair in beyond), default=None)
    regret = np.maximum(totals - totals[best], 0.0)
    return TruthScore(
        rows=rows,
        error_rates=errors,
        error_rates_if_abstaining_is_wrong=with_silence,
        expected_total_costs=totals,
        optimal_stage=best,
        margin=margin,
        weak_dominance=margin is None or margin > TIE,
        regret_by_stage=regret,
        regret_of_recommended=float(regret[verdict.recommended]),
        certain_but_wrong=tuple(
            (pair.shallow, pair.deep)
            for pair in verdict.pairs
            if pair.certain and totals[pair.deep] < totals[pair.shallow] - TIE
        ),
    )
