"""Ours against the published figures: how far apart, and what each figure is meant to show."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from stopwise.paper.experiments import PaperRun
from stopwise.paper.instances import get_dataset
from stopwise.paper.running import Results, RunResult
from stopwise.simulation.results import CurvePoint

# Points were read off printed plots; two numbers this near cannot be told apart.
READING_ERROR = 0.03
NEAR = 0.15
# A regret that grows like T^1 is linear; simulated curves are called linear from here on.
LINEAR_FROM = 0.9


@dataclass(frozen=True)
class ComparedPoint:
    """The last point of a curve, or one margin of figure 2c, beside the published one."""

    run: PaperRun
    ours: CurvePoint
    published: float | None
    growth: float

    @property
    def ratio(self) -> float | None:
        """Ours over published; None where there is nothing to divide by."""
        if not self.published:
            return None
        return self.ours.mean / self.published

    @property
    def verdict(self) -> str:
        """In words. A published zero is met by anything that would be drawn as zero."""
        if self.published is None:
            return "not published"
        if self.ratio is None:
            return "agrees" if self.ours.mean < 1 else "differs"
        off = abs(self.ratio - 1)
        return "agrees" if off <= READING_ERROR else "near" if off <= NEAR else "differs"


def growth_exponent(result: RunResult) -> float:
    """The b of regret ~ T^b over the second half of the rounds; nan where there is no regret.

    >>> points = [CurvePoint(n, n**0.5, 0, 0) for n in (250, 500, 1000)]
    >>> round(growth_exponent(RunResult("reference", tuple(points))), 6)
    0.5
    """
    last = result.final
    half = min(result.curve, key=lambda point: abs(point.round - last.round / 2))
    if half.mean <= 0 or half.round == last.round:
        return math.nan
    return math.log(last.mean / half.mean) / math.log(last.round / half.round)


def compare(results: Results) -> list[ComparedPoint]:
    """One row for every run."""
    rows = []
    for run, result in results:
        final = result.final
        at = float(final.round) if run.x is None else run.x
        published = run.published(final.round).get(at)
        rows.append(ComparedPoint(run, final, published, growth_exponent(result)))
    return rows


@dataclass(frozen=True)
class Claim:
    """Something that the paper says its figure shows, and whether ours shows it too."""

    text: str
    holds: bool
    detail: str


def check_claims(rows: Iterable[ComparedPoint]) -> list[Claim]:
    """The claims that the results at hand allow to check."""
    rows = list(rows)
    claims = []
    for source in ("calibrated", "retrained", "as-printed"):
        curves = [r for r in rows if r.run.figure.startswith("1") and r.run.source == source]
        claims += _growth_claims(curves, source)
    for figure in ("2a", "2b"):
        for source in ("calibrated", "retrained"):
            shown = [r for r in rows if r.run.figure == figure and r.run.source == source]
            claims += _order_claim(shown, figure, source)
    for curve in ("optimal-arm-1", "optimal-arm-2"):
        claims += _transition_claim([r for r in rows if r.run.instance == curve], curve)
    return claims


def _growth_claims(curves: list[ComparedPoint], source: str) -> list[Claim]:
    learnable: list[ComparedPoint] = []
    hopeless: list[ComparedPoint] = []
    for row in curves:
        printed = get_dataset(row.run.dataset).instance(int(row.run.instance))
        (learnable if printed.weak_dominance else hopeless).append(row)
    # No regret to speak of is as sub-linear as can be.
    linear = [r for r in learnable if r.ours.mean >= 1 and r.growth >= LINEAR_FROM]
    sublinear = [r for r in hopeless if r.growth < LINEAR_FROM]
    return [
        *_claim(
            f"Sub-linear regret wherever the paper says WD ({source})",
            learnable,
            "linear: ",
            linear,
        ),
        *_claim(f"Linear regret on instance 5 ({source})", hopeless, "not linear: ", sublinear),
    ]


def _claim(
    text: str, curves: list[ComparedPoint], but: str, against: list[ComparedPoint]
) -> list[Claim]:
    """What holds of these curves, if there are any: all of them but those against it."""
    found = _names(but, against) or f"{len(curves)} of {len(curves)} curves"
    return [Claim(text, not against, found)] if curves else []


def _order_claim(shown: list[ComparedPoint], figure: str, source: str) -> list[Claim]:
    by_policy = {row.run.policy_name: row.ours for row in shown}
    if len(by_policy) < 3:
        return []
    ts, ucb, heuristic = (by_policy[name] for name in ("uss-ts", "uss-ucb", "hanawal-2"))
    return [
        Claim(
            f"Figure {figure}: USS-TS < USS-UCB < Algorithm 2 ({source})",
            ts.ci_high < ucb.ci_low and ucb.ci_high < heuristic.ci_low,
            f"{ts.mean:.0f} < {ucb.mean:.0f} < {heuristic.mean:.0f}",
        )
    ]


def _transition_claim(shown: list[ComparedPoint], curve: str) -> list[Claim]:
    at = {row.run.x: row.ours for row in shown}
    if not {-0.03, 0.0, 0.03} <= set(at):
        return []
    before, here, after = at[-0.03], at[0.0], at[0.03]
    return [
        Claim(
            f"Figure 2c: the regret falls where ξ turns positive ({curve.replace('-', ' ')})",
            before.ci_low > here.ci_high and here.ci_low > after.ci_high,
            f"{before.mean:.0f} at ξ = -0.03, {here.mean:.0f} at 0, {after.mean:.0f} at 0.03",
        )
    ]


def _names(lead: str, rows: list[ComparedPoint]) -> str:
    return lead + ", ".join(f"{r.run.dataset} {r.run.instance}" for r in rows) if rows else ""
