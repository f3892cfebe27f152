"""How often, and on which items, stages are called because one before them gave no answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stopwise.abstentions import (
    NO_ANSWER,
    UNKNOWN,
    Abstentions,
    answering_stages,
    calling_rates,
)
from stopwise.costs import FloatArray
from stopwise.logs.reading.bills import Bills
from stopwise.logs.reading.counting import ABSTAINED_CODE, PatternCounts


@dataclass(frozen=True)
class GoingOn:
    """For every stage to stop at and every deeper one, the patterns that call the deeper one too.

    Attributes:
        sure: patterns on which it is called (stage to stop at, deeper stage, pattern).
        perhaps: those, and patterns of which the log does not tell how far it would have gone on.
        telling: patterns that tell, or begin to (stage to stop at, pattern).
        number: rows of each pattern.
        rates: share of the rows that tell on which it is called.
    """

    sure: NDArray[np.bool_]
    perhaps: NDArray[np.bool_]
    telling: NDArray[np.bool_]
    number: FloatArray
    rates: FloatArray

    @property
    def ever(self) -> bool:
        """Whether that happens at all."""
        return bool(self.perhaps.any())

    def rates_high(self, tail: float) -> FloatArray:
        """Upper bounds on the shares, each wrong with a chance of at most `tail`; 0 if never.

        With a tail of 1 they are the shares themselves.
        """
        from scipy.special import betainccinv

        seen = self.perhaps @ self.number
        of_all = (self.telling @ self.number)[:, None]
        others = of_all - seen
        if tail >= 1:
            return np.asarray(seen / np.maximum(of_all, 1.0))
        high = np.where(others > 0, betainccinv(seen + 1, np.maximum(others, 1e-9), tail), 1.0)
        return np.where(seen > 0, high, 0.0)

    def costs(self, own: FloatArray, billed: Bills | None) -> FloatArray:
        """What the deeper stage costs per item through these calls: as billed on these items."""
        means = np.broadcast_to(own, self.rates.shape).copy()
        if billed is not None:
            for i, k in np.argwhere(self.sure.any(axis=2)):
                here = self.sure[i, k]
                bills = math.fsum(billed.number[here, k])
                if bills > 0:
                    means[i, k] = math.fsum(billed.total[here, k]) / bills
        return self.rates * means

    def bills(self, stop: int, deeper: int, billed: Bills) -> float:
        """How many bills of the deeper stage may be those of such calls."""
        return math.fsum(billed.number[self.perhaps[stop, deeper], deeper])


def going_on(counts: PatternCounts, abstentions: Abstentions) -> GoingOn:
    """Find them in counted patterns; there are none unless an abstention means "go on".

    >>> import polars
    >>> from stopwise.logs.reading.counting import count
    >>> from stopwise.logs.reading.layouts.opening import open_log
    >>> from stopwise.logs.settings import LogSettings
    >>> frame = polars.DataFrame({"a": ["x", None, "x", "x"], "b": ["x", "y", "x", "y"]})
    >>> counts = count(open_log(frame, LogSettings(stages=("a", "b"), costs=(1, 5))))
    >>> going_on(counts, "go on").costs(np.array([1.0, 5.0]), None)[0]
    array([0.  , 1.25])
    """
    codes = counts.codes
    patterns, stage_count = codes.shape
    sure = np.zeros((stage_count, stage_count, patterns), dtype=bool)
    perhaps, telling = sure.copy(), np.ones((stage_count, patterns), dtype=bool)
    rates = calling_rates(codes, counts.number, abstentions, counts.counted)
    if abstentions == "go on":
        who = answering_stages(codes, abstentions, counts.counted)
        counted = np.ones(codes.shape, dtype=bool) if counts.counted is None else counts.counted
        for i in range(stage_count):
            unknown = who[:, i] == UNKNOWN
            # It gave no answer, and the log ends there: how deep it would have gone is open.
            open_end = unknown & (codes[:, i] == ABSTAINED_CODE) & counted[:, i]
            telling[i] = ~unknown | open_end
            reached = np.where(who[:, i] == NO_ANSWER, stage_count - 1, who[:, i])
            for k in range(i + 1, stage_count):
                sure[i, k] = ~unknown & (reached >= k)
                perhaps[i, k] = sure[i, k] | open_end
    return GoingOn(sure, perhaps, telling, counts.number.astype(np.float64), np.triu(rates, 1))
