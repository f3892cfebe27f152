"""The first sentences: which stage, on which reading, and where the readings disagree."""

from __future__ import annotations

from stopwise.logs.formatting import amount, counted, share
from stopwise.logs.judging.alone import CalledAlone
from stopwise.logs.judging.readings import (
    CERTAIN,
    ESTIMATED,
    MINIMAX,
    RULE_OF_THUMB,
    WEAK_DOMINANCE,
    Readings,
)
from stopwise.logs.judging.verdict import NOT_KNOWABLE, Verdict

_GUESS = " (estimated, not certain)"


def headline(verdict: Verdict, readings: Readings) -> str:
    """One sentence a manager understands: which stage, why, what it saves, what would change."""
    what, why = title_and_reason(verdict, readings)
    # An estimate says so in the shortest sentence, and that one comes first.
    return f"{what}. {why}" if what.endswith(_GUESS) else f"{what}: {why[0].lower()}{why[1:]}"


def title_and_reason(verdict: Verdict, readings: Readings) -> tuple[str, str]:
    """The same in two parts: what to do, as a title, and the sentences that say why."""
    names, last, stage = verdict.stages, len(verdict.stages) - 1, readings.headline_stage
    if stage is None:
        left = ", ".join(names[at] for at in readings.candidates)
        what = "certain" if readings.headline_reading == CERTAIN else "estimated"
        why = readings.why_not or "more than one may be the best"
        return f"No stage can be named by what is {what}", f"{_begun(why)}; in question are {left}."
    if verdict.alone:
        start = f"Call {names[stage]} alone"
    else:
        start = f"Go on to {names[stage]}" if stage == last else f"Stop at {names[stage]}"
    if readings.headline_reading == ESTIMATED and not _ruled_out(verdict, stage):
        start += _GUESS
    return start, f"{_begun(_why(verdict, readings, stage))}. {_savings(verdict, stage)}"


def _begun(text: str) -> str:
    """As a sentence begins."""
    return text[0].upper() + text[1:]


def _why(verdict: Verdict, readings: Readings, stage: int) -> str:
    last = len(verdict.stages) - 1
    ruled_out = _ruled_out(verdict, stage)
    deeper, shallower = sides(verdict)
    certain = f"whatever the truth, no {deeper} stage is worth its price{_provided(verdict, stage)}"
    reading = readings.headline_reading
    if reading == WEAK_DOMINANCE:
        if stage == last:
            return (
                f"it differs from {shallower} ones often enough to be worth its price, if it is"
                " right where they differ (weak dominance)"
            )
        if ruled_out:
            return f"{certain}, so under weak dominance too"
        more = all(p.verdict != NOT_KNOWABLE for p in verdict.pairs if p.shallow == stage)
        return (
            f"{deeper} stages differ from it too rarely to look worth their price (weak dominance;"
            f" {'more rows would make this certain' if more else 'not certain'})"
        )
    if reading == MINIMAX:
        return "it has the smallest worst case, whoever is right (minimax)"
    if ruled_out and stage == 0:
        return certain
    if reading == RULE_OF_THUMB:
        text = (
            f"{_nothing_estimated(verdict, readings)}; by rule of thumb a {deeper} stage fixes a"
            " third of the differences"
        )
    elif ruled_out:
        text = (
            f"and by how the stages agree among themselves a {shallower} one would cost more"
            " (estimated)"
        )
    else:
        text = (
            "judged by how the stages agree among themselves, it is wrong on about"
            f" {share(float(readings.error_rates[stage]))} of items"
            f"{_interval(readings, stage)}, and with mistakes counted no other stage looks"
            " cheaper"
        )
    return f"{certain}; {text}" if ruled_out else text


def _provided(verdict: Verdict, stage: int) -> str:
    """What "certain" rests on where it is not only that items to come are like those of the log."""
    rests = []
    if not all(pair.whatever_missing for pair in verdict.pairs if pair.shallow == stage):
        rests.append("items on which a stage was not called are like the others")
    if verdict.alone and verdict.cost_bounds.measured:
        rests.append("no bill is above twice the largest seen")
    return f" (if {' and '.join(rests)})" if rests else ""


def _ruled_out(verdict: Verdict, stage: int) -> bool:
    """Whether it is certain that nothing deeper pays; of the last stage there is nothing to say."""
    deeper = [pair.certain for pair in verdict.pairs if pair.shallow == stage]
    return bool(deeper) and all(deeper)


def _nothing_estimated(verdict: Verdict, readings: Readings) -> str:
    if len(verdict.stages) == 2:
        return "with two stages nothing can be estimated"
    why = readings.why_not or ""
    if why.startswith("fewer"):
        return "fewer than three stages ever answer, so nothing can be estimated"
    return "too few items differ, so nothing can be estimated"


def _interval(readings: Readings, stage: int) -> str:
    low, high = readings.error_rates_low, readings.error_rates_high
    if low is None or high is None:
        return ""
    return f" ({share(float(low[stage]))} to {share(float(high[stage]))})"


def sides(verdict: Verdict) -> tuple[str, str]:
    """What the stages behind and before one are called: of stages called alone, only costs tell."""
    return ("more expensive", "cheaper") if verdict.alone else ("deeper", "shallower")


def _savings(verdict: Verdict, stage: int) -> str:
    """What a stage saves against the baseline, through the cascade and called alone."""
    name, base = verdict.stages[verdict.baseline], verdict.baseline
    if stage == base:
        return f"Nothing is saved against always {name}, and no answer would change."
    spent, total = verdict.costs.cumulative[stage], verdict.costs.cumulative[base]
    saved, alone = total - spent, verdict.cost_bounds.own[base] - spent
    if verdict.alone:
        text = f"{_saves(alone)} per item against calling {name} alone{_part(alone, total)}"
    else:
        text = (
            f"{_saves(saved)} per item against going through all stages to {name}"
            f"{_part(saved, total)}"
        )
    if verdict.cost_bounds.calls is None:
        text += (
            f", or {amount(alone)} against calling it alone"
            if alone >= 0
            else f", but costs {amount(-alone)} more than calling it alone"
        )
    changed = share(verdict.pair(stage, base).may_differ_high)
    return f"This {text}; at most {changed} of the answers would change."


def _saves(saved: float) -> str:
    return f"saves {amount(saved)}" if saved >= 0 else f"costs {amount(-saved)} more"


def _part(saved: float, total: float) -> str:
    return f" ({share(saved / total)} of that cost)" if total > 0 and saved >= 0 else ""


def alone_sentence(alone: CalledAlone, verdict: Verdict, readings: Readings) -> str:
    """Where nobody said how stages are called: what holds if each can be called alone.

    Args:
        verdict: of the same stages in a cascade, with its readings: what is the same is not
            said again.
    """
    if _same_reasons(alone, verdict, readings):
        if readings.headline_stage is None:
            return "If each stage can be called alone: no stage can be named either."
        return "If each stage can be called alone: the same stage, for the same reasons."
    text = headline(alone.verdict, alone.readings)
    return f"If each stage can be called alone: {text[0].lower()}{text[1:]}"


def _same_reasons(alone: CalledAlone, verdict: Verdict, readings: Readings) -> bool:
    """Whether stage and reading are the same called alone, and whether more is ruled out."""

    def said(of: Verdict, read: Readings) -> tuple[object, ...]:
        at = read.headline_stage
        if at is None:
            return tuple(of.stages[stage] for stage in read.candidates)
        out = _ruled_out(of, at)
        return of.stages[at], read.headline_reading, out, _provided(of, at) if out else ""

    return said(alone.verdict, alone.readings) == said(verdict, readings)


def disagreement_sentence(verdict: Verdict, readings: Readings) -> str | None:
    """Which other readings stop elsewhere, what is at stake each way, what would settle it."""
    at = readings.headline_stage
    if at is None:
        return None
    names = verdict.stages
    others = {
        "weak dominance": readings.weak_dominance,
        "the estimate": readings.estimated,
        "minimax (trusting nobody)": readings.minimax,
    }
    elsewhere = {one: stage for one, stage in others.items() if stage not in (None, at)}
    if not elsewhere:
        return None
    listed = "; ".join(
        f"{reading} names {names[stage]}"
        for reading, stage in elsewhere.items()
        if stage is not None
    )
    texts = [f"Readings disagree: {listed}."]
    texts += [
        _stakes(verdict, at, stage)
        for stage in dict.fromkeys(elsewhere.values())
        if stage is not None
    ]
    if readings.labels_to_settle:
        texts.append(
            f"About {counted(readings.labels_to_settle, 'label')} would settle it"
            " (`stopwise audit`)."
        )
    return " ".join(texts)


def _stakes(verdict: Verdict, at: int, other: int) -> str:
    """What is lost by each of two stages if the other is the right one."""
    pair = verdict.pair(min(at, other), max(at, other))
    mistake = verdict.costs.mistake_cost
    step, differ = pair.threshold * mistake, pair.disagreement * mistake
    shallow, deep = verdict.stages[pair.shallow], verdict.stages[pair.deep]
    at_stage = "calling" if verdict.alone else "stopping at"
    return (
        f"If {deep} is right wherever the two differ, {at_stage} {shallow} loses"
        f" {amount(max(differ - step, 0.0))} per item; if {shallow} is, {deep} wastes"
        f" {amount(step + differ)} per item."
    )


def check_sentence(verdict: Verdict, readings: Readings) -> str | None:
    """What the check of the estimate found."""
    if readings.headline_reading != ESTIMATED or not readings.dependent_pairs:
        return None
    names = verdict.stages
    pairs = ", ".join(f"{names[i]} and {names[j]}" for i, j in readings.dependent_pairs[:3])
    return (
        f"The estimate is less sure than it looks: {pairs} agree far more than their estimated"
        " errors explain. Some stages, these or the others, may be copies of each other, as models"
        " of one family are."
    )


def missing_sentence(verdict: Verdict) -> str | None:
    """Whether "certain" rests on missing rows being like the others."""
    if all(pair.whatever_missing for pair in verdict.pairs if pair.certain):
        return None
    return (
        "Some stages were not called on all items. What is called certain takes it that those items"
        " are like the others; without that it would not be certain."
    )


def shallower_sentence(verdict: Verdict, readings: Readings) -> str | None:
    """What nobody can know without labels about the stages before the one of the headline."""
    at = readings.headline_stage
    if not at:
        return None
    names = verdict.stages
    spent = verdict.costs.cumulative
    _, shallower = sides(verdict)
    other = f"another {shallower} stage" if verdict.alone else f"another stage before {names[at]}"
    which = names[0] if at == 1 else f"{names[0]}, or {other},"
    labels = readings.labels_to_settle
    how_many = f" with about {counted(labels, 'label')}" if labels else ""
    return (
        f"Not knowable without labels: {which} may be enough; then up to"
        f" {amount(spent[at] - spent[0])} per item is overspent at {names[at]}. `stopwise audit`"
        f" settles it{how_many}."
    )
