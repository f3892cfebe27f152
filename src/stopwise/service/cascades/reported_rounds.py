"""A round whose stages a client called and reported over the API, as a finished one."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from stopwise.service.cascades.forms import Call, Finished, RequestDecision
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
    reported = {int(stage): given for stage, given in form["reported"].items()}
    calls = []
    for stage in range(form["first"], max(reported, default=form["first"] - 1) + 1):
        given = reported.get(stage)
        usual = cascade.config.stages[stage].cost
        if given is None:
            calls.append(Call(stage, failed=NOT_REPORTED))
            continue
        cost = usual if given["cost"] is None else given["cost"]
        calls.append(
            Call(
                stage=stage,
                output=given["output"],
                failed=given["failed"],
                cost=cost,
                seconds=given["seconds"],
                shown=given["output"],
            )
        )
    answered = [call.stage for call in calls if call.output is not None]
    decision = RequestDecision(**form["decision"])
    short = not calls or calls[-1].stage < decision.depth
    finished = Finished(
        decision=decision,
        calls=tuple(calls),
        served=answered[-1] if answered else None,
        who=who,
        abandoned=abandoned or short,
        seconds=time.time() - decision.at,
    )
    reply = json.dumps(_reply(cascade, finished, form))
    return replace(finished, ending=Ending(ending_name(cascade.name, round_id), reply))


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
