"""The verdict in words, for the terminal and the report alike."""

from __future__ import annotations

from stopwise.logs.formatting import amount, share
from stopwise.logs.judging.findings import Findings
from stopwise.logs.judging.mistake_costs import MistakeCostRange
from stopwise.logs.judging.readings import Readings
from stopwise.logs.judging.scoring import TruthScore
from stopwise.logs.judging.verdict import TOO_FEW_ROWS, Pair, Verdict
from stopwise.logs.judging.what_if import WhatIf
from stopwise.logs.reporting.headline import sides


def key_pairs(verdict: Verdict, readings: Readings) -> list[Pair]:
    """The pairs worth a sentence: all of a short cascade, else those of the headline's stage."""
    if len(verdict.pairs) <= 3:
        return list(verdict.pairs)
    at = readings.headline_stage
    at = verdict.recommended if at is None else at
    return [pair for pair in verdict.pairs if at in (pair.shallow, pair.deep)]


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
        start = f"{deep} cannot be worth its price over {shallow}, whatever the truth:"
        if pair.threshold_low >= 1:
            return f"{start} the step to it costs as much as a mistake, or more."
        return (
            f"{start} they differ on at most {share(pair.may_differ_high)} of items, and it would"
            f" have to fix {share(pair.threshold)}."
        )
    if pair.verdict == TOO_FEW_ROWS:
        return (
            f"{deep} differs from {shallow} on {share(pair.disagreement)} of items and would have"
            f" to fix {share(pair.threshold)}, so it hardly pays; but the rows are"
            " too few to be certain."
        )
    mistake = verdict.costs.mistake_cost
    cost = pair.threshold * mistake
    on, at = ("", "calling") if verdict.alone else ("going on to ", "stopping at")
    text = (
        f"{shallow} may be enough: then {amount(cost)} per item is being overspent on {on}{deep}."
        f" Or {deep} is right where they differ ({share(pair.disagreement)} of items):"
    )
    gain = max(pair.disagreement * mistake - cost, 0.0)
    return text + f" then {at} {shallow} loses {amount(gain)} per item."


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


def range_kind(here: MistakeCostRange, verdict: Verdict) -> str:
    """What is known of the stage over a range."""
    deeper, shallower = sides(verdict)
    last = len(verdict.stages) - 1
    if here.certain:
        return "certain: it is the best stage, whatever the truth"
    unknown = f"a {shallower} stage may be enough"
    if here.stage == last:
        return f"not knowable: {unknown}"
    sure = here.nothing_deeper_pays_below
    if here.stage == 0:
        return "not certain: too few rows, or too close"
    if sure <= here.start:
        return f"not knowable: {unknown}; too few rows, or too close, to rule out {deeper} ones"
    until = "" if sure >= here.end else f" (below {amount(sure)})"
    return f"not knowable: {unknown}; nothing {deeper} pays, for certain{until}"


WHAT_IF_TITLE = "If the cascade were another: where the paper's rule would stop"
"""What changes of the cascade do is judged by that rule alone, whatever the headline rests on."""


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


def truth_sentence(verdict: Verdict, readings: Readings, truth: TruthScore) -> str:
    """How the headline, and the paper's rule, held against the truth."""
    names = verdict.stages
    best = names[truth.optimal_stage]
    text = f"Held against the truth: {best} is the best stage"
    said = {"the first sentence": readings.headline_stage, "the rule": verdict.recommended}
    for who, stage in said.items():
        if stage is None:
            continue
        loss = float(truth.regret_by_stage[stage]) * verdict.costs.mistake_cost
        text += (
            f"; {who} says so"
            if stage == truth.optimal_stage
            else f"; {who} says {names[stage]}, which costs {amount(loss)} per item more"
        )
    text += "."
    if not truth.weak_dominance:
        text += " Weak dominance does not hold here."
    if truth.certain_but_wrong:
        pairs = ", ".join(f"{names[i]}/{names[j]}" for i, j in truth.certain_but_wrong)
        text += f" Called certain, but wrong here: {pairs}."
    return text
