"""A round whose stages a client called and reported over the API, as a finished one."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from stopwise.service.cascades.forms import Call, Finished, ItemOutcome, RequestDecision
from stopwise.service.cascades.items import given
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.database.writing import Ending

NOT_REPORTED = "not reported"


def ending_name(cascade: str, round_id: str) -> str:
    """Under which name the reply to the end of a round is kept."""
    return f"end {cascade} {round_id}"


def finished_of(
    cascade: RunningCascade, round_id: str, form: dict[str, Any], who: str, abandoned: bool
) -> Finished:
    """An open round as a finished one. A stage in between that is missing counts as failed."""
    calls = calls_of(cascade, form)
    decision = RequestDecision(**form["decision"])
    if decision.walks:
        decision = replace(decision, depth=form["depth"])
    goes_on = cascade.goes_on(decision)
    answered = [call.stage for call in calls if call.output is not None]
    if goes_on:
        # What cannot be read was no answer when the next stage was called.
        readable = [stage for stage in answered if not _is_silent(cascade, calls, stage)]
        answered = readable or answered
    served = answered[-1] if answered else None
    item = None
    if cascade.items is not None and decision.chance is not None:
        said = cascade.items.decide(decision, calls)
        served = given(decision, calls, said)
        if decision.walks:
            # Where the rule stopped it was settled on the way, by the rule of that moment.
            item = ItemOutcome(form.get("stop"), said.steps)
    last = decision.depth + (form["deeper"] if goes_on else 0)
    short = not calls or calls[-1].stage < last
    finished = Finished(
        decision=decision,
        calls=calls,
        served=served,
        who=who,
        abandoned=abandoned or short,
        seconds=time.time() - decision.at,
        item=item,
    )
    reply = json.dumps(_reply(cascade, finished, form))
    return replace(finished, ending=Ending(ending_name(cascade.name, round_id), reply))


def calls_of(cascade: RunningCascade, form: dict[str, Any]) -> tuple[Call, ...]:
    """What was reported, in the order of the stages; what is missing in between has failed."""
    reported = {int(stage): given for stage, given in form["reported"].items()}
    calls = []
    for stage in range(form["first"], max(reported, default=form["first"] - 1) + 1):
        given = reported.get(stage)
        if given is None:
            calls.append(Call(stage, failed=NOT_REPORTED))
            continue
        usual = cascade.config.stages[stage].cost
        calls.append(
            Call(
                stage=stage,
                output=given["output"],
                failed=given["failed"],
                cost=usual if given["cost"] is None else given["cost"],
                seconds=given["seconds"],
                shown=given["output"],
                confidence=given.get("confidence"),
            )
        )
    return tuple(calls)


def _is_silent(cascade: RunningCascade, calls: tuple[Call, ...], stage: int) -> bool:
    return cascade.is_silent(next(call.output for call in calls if call.stage == stage))


def go_on(cascade: RunningCascade, form: dict[str, Any]) -> None:
    """Once all stages called so far are reported, stop or call the next one.

    Per item that is for the rule to say; else the next one is called where the last gave no answer
    and that is what this means. The form is changed in place, within the transaction that took the
    report.
    """
    decision, last = RequestDecision(**form["decision"]), len(cascade.config.stages) - 1
    if cascade.goes_on(decision):
        reached = form["depth"] + form["deeper"]
        all_in = len(form["reported"]) == reached - form["first"] + 1
        # A failure is for the caller to decide, by asking for one stage more.
        if all_in and reached < last and form["reported"][str(reached)]["failed"] is None:
            form["deeper"] += cascade.is_silent(form["reported"][str(reached)]["output"])
        return
    if cascade.items is None or not decision.walks:
        return
    if form["deeper"]:
        form["depth"], form["deeper"] = min(form["depth"] + form["deeper"], last), 0
    calls = calls_of(cascade, form)
    while len(calls) > form["depth"] and form["depth"] < last:
        if form.get("stop") is None:
            form["stop"] = cascade.items.decide(decision, calls).stop
        if form["stop"] is not None and any(call.output is not None for call in calls):
            return
        form["depth"] += 1


def of_this_epoch(cascade: RunningCascade, form: dict[str, Any]) -> bool:
    """Whether a round was begun by what it would be counted by."""
    decision = form["decision"]
    drawn = decision.get("chance") is None
    return form.get("epoch") == cascade.epoch and (
        bool(decision["uncounted"]) or drawn == (cascade.items is None)
    )


def _reply(cascade: RunningCascade, finished: Finished, form: dict[str, Any]) -> dict[str, Any]:
    """The reply to whoever ends a round."""
    names, served = cascade.config.stage_names, finished.served
    answer = None if served is None else form["reported"][str(served)]["output"]
    return {
        "round": finished.decision.id,
        "state": "ended",
        "answer": answer,
        "stage": None if served is None else names[served],
        "cost": finished.cost,
        "abandoned": finished.abandoned,
    }
