"""The verdict in words, for the terminal and the report alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwise.logs.judging.verdict import Pair, Verdict

if TYPE_CHECKING:
    from stopwise.logs.analysis import Analysis
    from stopwise.logs.judging.mistake_costs import Window
    from stopwise.logs.judging.scoring import Score
    from stopwise.logs.judging.what_if import WhatIf


def amount(value: float) -> str:
    """A cost with four digits, without an exponent where it can be helped.

    >>> amount(2.5), amount(0.000123456), amount(12345678.0), amount(0)
    ('2.5', '0.0001235', '12,345,678', '0')
    """
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 1e-5:
        return f"{float(f'{value:.4g}'):.9f}".rstrip("0").rstrip(".")
    return f"{value:.3g}"


def share(value: float) -> str:
    """A share in percent, with a digit more where it is small.

    >>> share(0.1234), share(0.00123), share(0), share(1), share(1e-9), share(0.99999)
    ('12.3 %', '0.12 %', '0 %', '100 %', '< 0.01 %', '> 99.9 %')
    """
    if value in (0, 1):
        return "100 %" if value else "0 %"
    if 0 < value < 1e-4:
        return "< 0.01 %"
    if 0.9995 < value < 1:
        return "> 99.9 %"
    return f"{value * 100:.1f} %" if value >= 0.01 else f"{value * 100:.2g} %"


def round_share(value: float) -> str:
    """A share that is a round number, such as a tick or a level.

    >>> round_share(0.3), round_share(0.99), round_share(0.025)
    ('30 %', '99 %', '2.5 %')
    """
    return f"{value * 100:.6g} %"


def headline(analysis: Analysis) -> str:
    """One sentence a manager understands: which stage, what it saves, what would change."""
    return verdict_sentence(analysis.verdict)


def verdict_sentence(verdict: Verdict) -> str:
    """The same, of a verdict alone."""
    names, last = verdict.stages, len(verdict.stages) - 1
    stage = names[verdict.recommended]
    if verdict.recommended == last:
        return (
            f"Go on to {stage}: it differs from the stages before it often enough to be worth its"
            " price if it is right where they differ; nothing is saved against always"
            f" {stage}, and no answer would change."
        )
    total = verdict.costs.cumulative[last]
    why = (
        "whatever the truth, no deeper stage is worth its price"
        if verdict.nothing_deeper_pays
        else "deeper stages differ from it too rarely to look worth their price (more rows would"
        " make this certain)"
    )
    return (
        f"Stop at {stage}: {why}. This saves {amount(verdict.savings)} an item against always"
        f" {names[last]} ({share(verdict.savings / total)} of its cost), and at most"
        f" {share(verdict.answers_changed_at_most)} of the answers would change."
    )


def shallower_sentence(verdict: Verdict) -> str | None:
    """What nobody can know without labels about the stages before the recommended one."""
    if verdict.recommended == 0:
        return None
    names, at = verdict.stages, verdict.recommended
    spent = verdict.costs.cumulative
    first = spent[at] - spent[0]
    which = names[0] if at == 1 else f"{names[0]}, or another stage before {names[at]},"
    return (
        f"Not knowable without labels: {which} may be enough; then up to {amount(first)} an item"
        f" is being overspent at {names[at]}. `stopwise audit` settles it with few labels."
    )


def caution_sentence(analysis: Analysis) -> str | None:
    """What a warning about the recommended stage itself means for the choice."""
    verdict = analysis.verdict
    at = verdict.recommended
    doubted = any(
        w.stage == at and w.code in ("outlier_stage", "order_questioned") for w in analysis.warnings
    )
    without = next((w for w in analysis.what_ifs if w.change == f"drop {verdict.stages[at]}"), None)
    if not doubted or not at or without is None:
        return None
    instead = verdict.stages[without.recommended]
    step = abs(without.cost_change)
    change = f"{amount(step)} {'less' if without.cost_change < 0 else 'more'}"
    return (
        f"But doubt {verdict.stages[at]}: it differs from the other stages more than cheaper ones"
        f" do (see the warnings). Without it the rule stops at {instead}, which costs {change} an"
        " item; an audit tells which is right."
    )


def key_pairs(verdict: Verdict) -> list[Pair]:
    """The pairs worth a sentence: all of a short cascade, else those of the recommended stage."""
    if len(verdict.pairs) <= 3:
        return list(verdict.pairs)
    return [pair for pair in verdict.pairs if verdict.recommended in (pair.shallow, pair.deep)]


def key_changes(analysis: Analysis) -> list[WhatIf]:
    """Changes of the cascade that change the choice; else those that save most."""
    at = analysis.verdict.recommended
    changed = [change for change in analysis.what_ifs if change.recommended != at]
    rest = [c for c in analysis.what_ifs if c.recommended == at and c.cost_change < -1e-12]
    return changed + sorted(rest, key=lambda change: change.cost_change)[:2]


def minimax_sentence(verdict: Verdict) -> str:
    """The stage with the smallest worst case, in cost units."""
    stage = verdict.minimax_stage
    worst = verdict.worst_case_regret[stage] * verdict.costs.mistake_cost
    return (
        f"Trusting nobody, not even that dearer stages are better: {verdict.stages[stage]} has the"
        f" smallest worst case, {amount(worst)} an item more than the best stage (minimax)."
    )


def pair_sentence(verdict: Verdict, pair: Pair) -> str:
    """What is certain of a pair, or what is not knowable and what hangs on it."""
    shallow, deep = verdict.stages[pair.shallow], verdict.stages[pair.deep]
    if pair.certain:
        return (
            f"{deep} cannot be worth its price over {shallow}, whatever the truth: they differ on"
            f" at most {share(pair.may_differ_high)} of items, and it would have to mend"
            f" {share(pair.threshold)}."
        )
    mistake = verdict.costs.mistake_cost
    cost = pair.threshold * mistake
    text = (
        f"{shallow} may be enough: then {amount(cost)} an item is being overspent on going on to"
        f" {deep}. Or {deep} is right where they differ ({share(pair.disagreement)} of items):"
    )
    gain = pair.disagreement * mistake - cost
    text += (
        f" then stopping at {shallow} loses {amount(gain)} an item."
        if gain > 0
        else " even then it hardly pays, but the rows are too few to be certain."
    )
    return text


def window_range(window: Window) -> str:
    """The mistake costs of a window.

    >>> from stopwise.logs.judging.mistake_costs import Window
    >>> window_range(Window(0.0, 4.0, 0, True, 4.0))
    'below 4'
    >>> window_range(Window(4.0, float("inf"), 1, False, 4.0))
    '4 and more'
    """
    if window.end == float("inf"):
        return f"{amount(window.start)} and more" if window.start else "any"
    if window.start == 0:
        return f"below {amount(window.end)}"
    return f"{amount(window.start)} to {amount(window.end)}"


def window_kind(window: Window, last: int) -> str:
    """What is known of the stage over a window."""
    if window.certain:
        return "certain: it is the best stage, whatever the truth"
    unknown = "a shallower stage may be enough"
    if window.stage == last:
        return f"not knowable: {unknown}"
    sure = window.nothing_deeper_pays_below
    if window.stage == 0:
        return "not certain: too few rows, or too close"
    if sure <= window.start:
        return f"not knowable: {unknown}; too few rows, or too close, to rule out deeper ones"
    until = "" if sure >= window.end else f" (below {amount(sure)})"
    return f"not knowable: {unknown}; nothing deeper pays, for certain{until}"


def what_if_sentence(verdict: Verdict, change: WhatIf) -> str:
    """What a change of the cascade would do."""
    stage = verdict.stages[change.recommended]
    same = change.recommended == verdict.recommended
    step = (
        "the cost stays the same"
        if abs(change.cost_change) < 1e-12
        else f"an item costs {amount(abs(change.cost_change))}"
        f" {'less' if change.cost_change < 0 else 'more'}"
    )
    choice = f"still stop at {stage}" if same else f"stop at {stage} instead"
    return f"{change.change}: {choice}; {step}."


def truth_sentence(verdict: Verdict, truth: Score) -> str:
    """How the verdict held against the truth."""
    names = verdict.stages
    best = names[truth.optimal_stage]
    if truth.optimal_stage == verdict.recommended:
        text = f"Held against the truth: {best} is the best stage, as recommended."
    else:
        loss = truth.regret_of_recommended * verdict.costs.mistake_cost
        text = (
            f"Held against the truth: the best stage is {best}; stopping at"
            f" {names[verdict.recommended]} costs {amount(loss)} an item more."
        )
    if not truth.weak_dominance:
        text += " Weak dominance does not hold, so no rule without labels could tell."
    if truth.certain_but_wrong:
        pairs = ", ".join(f"{names[i]}/{names[j]}" for i, j in truth.certain_but_wrong)
        text += f" Called certain, but wrong here: {pairs}."
    return text
