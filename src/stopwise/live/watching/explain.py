"""Why a learner goes as deep as it does: evidence, threshold, and what would turn each pair."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stopwise.checks import names_settings
from stopwise.costs import Costs
from stopwise.decisions import passes
from stopwise.display import COLOURS, frame, html_table, new_axes
from stopwise.evidence import Evidence

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class PairReason:
    """What is known of two stages.

    Attributes:
        stages: the shallower and the deeper one.
        seen, disagreed: how often both answered, and how often they differed.
        disagreement: the share; None where the pair was never seen.
        low, high: where the true share lies with 95 % confidence (Wilson's interval).
        threshold: above it, going from the one to the other is worth its price.
        worth: whether the observed share says so; None where the pair was never seen.
        turns_after: how many more rounds that all agree (where it is worth it) or all differ (where
            it is not) would turn this around; None where nothing can.
    """

    stages: tuple[str, str]
    seen: float
    disagreed: float
    disagreement: float | None
    low: float
    high: float
    threshold: float
    worth: bool | None
    turns_after: int | None

    def __str__(self) -> str:
        first, second = self.stages
        if self.disagreement is None:
            return f"{first} and {second}: never seen together"
        says = "worth going on" if self.worth else "not worth going on"
        text = (
            f"{first} and {second}: {self.disagreement:.1%} of {self.seen:g} differ"
            f" ({self.low:.1%} to {self.high:.1%}), the threshold is {self.threshold:.1%}: {says}"
        )
        if self.turns_after is not None:
            rounds = "1 more round" if self.turns_after == 1 else f"{self.turns_after} more rounds"
            text += f"; {rounds} that {'agree' if self.worth else 'differ'} would change that"
        return text


@dataclass(frozen=True)
class Explanation:
    """Why the next round goes as deep as it does. Print it, or show it in a notebook.

    Attributes:
        segment: whose evidence is explained.
        stages: their names.
        policy: the rule.
        probabilities: of each depth, for the next round.
        best_stage: the deterministic reading of the evidence.
        pairs: what is known of every pair.

    >>> from stopwise.live import Learner
    >>> learner = Learner({"rule": 0, "model": 1}, "fixed", mistake_cost=4)
    >>> for answer in ("yes", "yes", "no"):
    ...     with learner.begin() as round: round.observe("yes"); round.observe(answer)
    >>> print(learner.explain())
    The next round stops at rule with 0.0 %, at model with 100.0 % (fixed).
    By the evidence alone: model.
    rule and model: 33.3% of 3 differ (6.1% to 79.2%), the threshold is 25.0%: worth going on; 2
    more rounds that agree would change that
    >>> why = learner.explain()
    >>> why.to_frame()["seen"].to_list(), why.to_dict()["best_stage"], why.to_json()[:15]
    ([3.0], 'model', '{"segment": "",')
    >>> why.plot().get_yticklabels()[0].get_text()
    'rule / model'
    """

    segment: str
    stages: tuple[str, ...]
    policy: str
    probabilities: tuple[float, ...]
    best_stage: str
    pairs: tuple[PairReason, ...]

    def __str__(self) -> str:
        shares = ", ".join(
            f"at {name} with {100 * p:.1f} %"
            for name, p in zip(self.stages, self.probabilities, strict=True)
        )
        where = f" in segment {self.segment}" if self.segment else ""
        lines = [
            f"The next round{where} stops {shares} ({self.policy}).",
            f"By the evidence alone: {self.best_stage}.",
        ]
        return "\n".join([*lines, *map(str, self.pairs)])

    def __repr__(self) -> str:
        return f"<Explanation: {str(self).splitlines()[0]}>"

    def to_frame(self) -> polars.DataFrame:
        """What is known of every pair, as a polars frame."""
        return frame([asdict(pair) | {"stages": " / ".join(pair.stages)} for pair in self.pairs])

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.to_dict())

    def _repr_html_(self) -> str:
        columns = ["pair", "seen", "differ", "95 %", "threshold", "", "would change after"]
        rows = [
            [
                " / ".join(pair.stages),
                pair.seen,
                "-" if pair.disagreement is None else f"{pair.disagreement:.1%}",
                f"{pair.low:.1%} to {pair.high:.1%}",
                f"{pair.threshold:.1%}",
                {True: "worth going on", False: "not worth it", None: "never seen"}[pair.worth],
                "-" if pair.turns_after is None else pair.turns_after,
            ]
            for pair in self.pairs
        ]
        title, note = str(self).split("\n")[:2]
        return html_table(columns, rows, title=title, note=note)

    @names_settings
    def plot(self, ax: Axes | None = None) -> Axes:
        """Every pair's disagreement with its interval, beside its threshold."""
        axes = new_axes(ax, height=1.2 + 0.45 * len(self.pairs))
        for at, pair in enumerate(self.pairs):
            axes.plot([pair.low, pair.high], [at, at], color=COLOURS[4], linewidth=6, alpha=0.6)
            if pair.disagreement is not None:
                axes.plot(pair.disagreement, at, "o", color=COLOURS[0])
            axes.plot([pair.threshold] * 2, [at - 0.35, at + 0.35], color=COLOURS[5], linewidth=2)
        axes.set_yticks(range(len(self.pairs)), [" / ".join(pair.stages) for pair in self.pairs])
        axes.invert_yaxis()
        axes.set_xlim(
            0, max(0.02, *(min(max(p.high, p.threshold), 1.0) for p in self.pairs)) * 1.05
        )
        axes.set_xlabel("disagreement (bar: 95 %), and the threshold (line) above which it pays")
        axes.set_title(str(self).split("\n", maxsplit=1)[0], fontsize="small")
        axes.spines[["top", "right"]].set_visible(False)
        return axes


def explain(
    segment: str,
    stages: Sequence[str],
    policy: str,
    probabilities: Sequence[float],
    best_stage: int,
    evidence: Evidence,
    costs: Costs,
) -> Explanation:
    """Put together what is known of every pair."""
    pairs = []
    for j in range(1, len(stages)):
        for i in range(j):
            n, d = float(evidence.seen[i, j]), float(evidence.disagreed[i, j])
            threshold = float(costs.thresholds[i, j])
            low, high = wilson(n, d)
            worth = not passes(threshold, d / n) if n else None
            pairs.append(
                PairReason(
                    (stages[i], stages[j]), n, d, d / n if n else None, low, high, threshold, worth,
                    rounds_to_turn(n, d, threshold) if n else None,
                )
            )  # fmt: skip
    return Explanation(
        segment,
        tuple(stages),
        policy,
        tuple(map(float, probabilities)),
        stages[best_stage],
        tuple(pairs),
    )


def wilson(n: float, d: float, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's interval for a share.

    >>> [round(end, 3) for end in wilson(10, 1)]
    [0.018, 0.404]
    """
    if n <= 0:
        return 0.0, 1.0
    p = d / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def rounds_to_turn(n: float, d: float, threshold: float) -> int | None:
    """How many rounds that all show the opposite turn a pair around.

    >>> rounds_to_turn(3, 1, 0.25)   # 1 of 5 is below a quarter
    2
    >>> rounds_to_turn(10, 0, 0.25)   # 4 of 14 is above it
    4
    """
    now = passes(threshold, d / n)
    if threshold > 1 or threshold <= 0:
        return None
    if now:
        start = int((threshold * n - d) / (1 - threshold)) if threshold < 1 else 0
    else:
        start = int(d / threshold - n)
    for k in range(max(start - 1, 0), max(start, 0) + 5):
        share = (d + k) / (n + k) if now else d / (n + k)
        if passes(threshold, share) != now:
            return k
    return None
