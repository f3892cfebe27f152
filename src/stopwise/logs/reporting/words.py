"""The verdict in words, for the terminal and the report alike."""

from __future__ import annotations

from stopwise.logs.formatting import amount, share
from stopwise.logs.judging.findings import Findings
from stopwise.logs.judging.mistake_costs import MistakeCostRange
from stopwise.logs.judging.scoring import TruthScore
from stopwise.logs.judging.verdict import Pair, Verdict
from stopwise.logs.judging.what_if import WhatIf


def verdict_sentence(verdict: Verdict) -> str:
    """One sentence a manager understands: which stage, what it saves, what would change."""
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
        f"Stop at {stage}: {why}. This saves {amount(verdict.savings)} per item against always"
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
        f"Not knowable without labels: {which} may be enough; then up to {amount(first)} per item"
        f" is being overspent at {names[at]}. `stopwise audit` settles it with few labels."
    )


def caution_sentence(analysis: Findings) -> str | None:
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
        f" do (see the warnings). Without it the rule stops at {instead}, which costs {change}"
        " per item; an audit tells which is right."
    )


def key_pairs(verdict: Verdict) -> list[Pair]:
    """The pairs worth a sentence: all of a short cascade, else those of the recommended stage."""
    if len(verdict.pairs) <= 3:
        return list(verdict.pairs)
    return [pair for pair in verdict.pairs if verdict.recommended in (pair.shallow, pair.deep)]


def key_changes(analysis: Findings) -> list[WhatIf]:
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
        f"Trusting nobody, not even that more expensive stages are better:"
        f" {verdict.stages[stage]} has the smallest worst case, {amount(worst)} per item"
        " more than the best stage (minimax)."
    )


def pair_sentence(verdict: Verdict, pair: Pair) -> str:
    """What is certain of a pair, or what is not knowable and what hangs on it."""
    shallow, deep = verdict.stages[pair.shallow], verdict.stages[pair.deep]
    if pair.certain:
        return (
            f"{deep} cannot be worth its price over {shallow}, whatever the truth: they differ on"
            f" at most {share(pair.may_differ_high)} of items, and it would have to fix"
            f" {share(pair.threshold)}."
        )
    mistake = verdict.costs.mistake_cost
    cost = pair.threshold * mistake
    text = (
        f"{shallow} may be enough: then {amount(cost)} per item is being overspent on going on to"
        f" {deep}. Or {deep} is right where they differ ({share(pair.disagreement)} of items):"
    )
    gain = pair.disagreement * mistake - cost
    text += (
        f" then stopping at {shallow} loses {amount(gain)} per item."
        if gain > 0
        else " even then it hardly pays, but the rows are too few to be certain."
    )
    return text


def range_text(here: MistakeCostRange) -> str:
    """The mistake costs of a range.

    >>> from stopwise.logs.judging.mistake_costs import MistakeCostRange
    >>> range_text(MistakeCostRange(0.0, 4.0, 0, True, 4.0))
    'below 4'
    >>> range_text(MistakeCostRange(4.0, float("inf"), 1, False, 4.0))
    '4 and more'
    """
    if here.end == float("inf"):
        return f"{amount(here.start)} and more" if here.start else "any"
    if here.start == 0:
        return f"below {amount(here.end)}"
    return f"{amount(here.start)} to {amount(here.end)}"


def range_kind(here: MistakeCostRange, last: int) -> str:
    """What is known of the stage over a range."""
    if here.certain:
        return "certain: it is the best stage, whatever the truth"
    unknown = "a shallower stage may be enough"
    if here.stage == last:
        return f"not knowable: {unknown}"
    sure = here.nothing_deeper_pays_below
    if here.stage == 0:
        return "not certain: too few rows, or too close"
    if sure <= here.start:
        return f"not knowable: {unknown}; too few rows, or too close, to rule out deeper ones"
    until = "" if sure >= here.end else f" (below {amount(sure)})"
    return f"not knowable: {unknown}; nothing deeper pays, for certain{until}"


def what_if_sentence(verdict: Verdict, change: WhatIf) -> str:
    """What a change of the cascade would do."""
    stage = verdict.stages[change.recommended]
    same = change.recommended == verdict.recommended
    step = (
        "the cost stays the same"
        if abs(change.cost_change) < 1e-12
        else f"each item costs {amount(abs(change.cost_change))}"
        f" {'less' if change.cost_change < 0 else 'more'}"
    )
    choice = f"still stop at {stage}" if same else f"stop at {stage} instead"
    return f"{change.change}: {choice}; {step}."


def truth_sentence(verdict: Verdict, truth: TruthScore) -> str:
    """How the verdict held against the truth."""
    names = verdict.stages
    best = names[truth.optimal_stage]
    if truth.optimal_stage == verdict.recommended:
        text = f"Held against the truth: {best} is the best stage, as recommended."
    else:
        loss = truth.regret_of_recommended * verdict.costs.mistake_cost
        text = (
            f"Held against the truth: the best stage is {best}; stopping at"
            f" {names[verdict.recommended]} costs {amount(loss)} per item more."
        )
    if not truth.weak_dominance:
        text += " Weak dominance does not hold, so no rule without labels could tell."
    if truth.certain_but_wrong:
        pairs = ", ".join(f"{names[i]}/{names[j]}" for i, j in truth.certain_but_wrong)
        text += f" Called certain, but wrong here: {pairs}."
    return text
