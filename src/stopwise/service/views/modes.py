"""Page 7: the mode, what another one would change, and who changed it when and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.service.cascades.running import RunningCascade
from stopwise.service.cascades.verdicts import (
    call_costs,
    costs_now,
    judged_of,
    matter_of,
    sentence_of,
    standing_of,
)
from stopwise.service.config.forms import MODES
from stopwise.service.database.trail import TrailEntry
from stopwise.service.views.cascade import mean_law, segments_of

if TYPE_CHECKING:
    from stopwise.service.core import Service

WHAT = {
    "shadow": "Every request is answered by {run_to}. Of all requests, {sample:.3g} % are also sent"
    " to the stages before it, only to be compared.",
    "advise": "Every request is answered by {run_to} and sent to the stages before it too; the"
    " response says which stage enforcing would have chosen.",
    "enforce": "The stage that answers is drawn from what was learned. The stages before it run"
    " beside it, only to be compared.",
}
GOES_ON = " Where it gives no answer, the next one is called."
PER_ITEM = (
    "The stages are called one after the other. After each, what was learned says whether its"
    " answer is given or the next one is called."
)


@dataclass(frozen=True)
class ModeView:
    """What page 7 shows.

    Attributes:
        file_mode: what the file says.
        kept: whether the mode was set while the service ran, so that the file's is not used.
        back_to: the mode before the present one; None where it was never another.
        sentence: the verdict, in one sentence.
        standing, matter: what is certain or not knowable, and of what that is said.
        choices: every mode and what it does.
        law: the probability of each depth if enforced now.
        expected_cost: per request if enforced now, comparison calls included; `present_cost` is
            that of one call of `run_to`.
        changed_at_most: upper bound on the share of answers that would differ from those of
            `run_to`, if the recommended stage were served; None while unknown.
        recommended: the stage of the headline, as `analyze` names it.
        by_policy: where the policy goes that draws the depths: the rule under weak dominance; None
            per item.
        advised_same: how many answers would have stayed the same, of how many where that is known.
        changes: the trail, the latest first.
    """

    name: str
    mode: str
    file_mode: str
    kept: bool
    back_to: str | None
    sentence: str
    stages: tuple[str, ...]
    run_to: str
    choices: tuple[tuple[str, str], ...]
    law: tuple[float, ...]
    expected_cost: float
    present_cost: float
    recommended: str | None
    certain: bool
    standing: str
    matter: str
    policy: str
    by_policy: str | None
    changed_at_most: float | None
    advised_same: tuple[int, int]
    changes: tuple[TrailEntry, ...]


def mode_view(service: Service, cascade: RunningCascade) -> ModeView:
    """Read the mode of a cascade."""
    config = cascade.config
    sums = service.rounds.sums(cascade.name, epoch=cascade.epoch)
    judged = judged_of(cascade, sums)
    law = mean_law(cascade, segments_of(service, cascade))
    costs = costs_now(cascade, sums)
    run_to = config.run_to
    changed = None
    if judged is not None:
        at = judged.stage
        low, high = min(at, run_to), max(at, run_to)
        changed = 0.0 if low == high else judged.verdict.pair(low, high).may_differ_high
    changes = tuple(service.trail.changes(cascade.name))
    what = WHAT | {"enforce": PER_ITEM} if config.per_item else WHAT
    if config.goes_on:
        what = what | {"enforce": what["enforce"] + GOES_ON}
    words = {"run_to": config.stage_names[run_to], "sample": 100 * config.sample}
    return ModeView(
        name=cascade.name,
        mode=cascade.mode,
        file_mode=config.mode,
        kept=cascade.kept_mode is not None,
        back_to=_before(changes, cascade.mode),
        sentence=sentence_of(cascade, judged, sums),
        stages=config.stage_names,
        run_to=config.stage_names[run_to],
        choices=tuple((mode, what[mode].format(**words)) for mode in MODES),
        law=law,
        expected_cost=sum(p * float(c) for p, c in zip(law, costs.cumulative, strict=True)),
        present_cost=call_costs(cascade, sums)[run_to],
        recommended=None if judged is None else config.stage_names[judged.stage],
        certain=judged is not None and judged.nothing_deeper_pays,
        standing=standing_of(judged),
        matter=matter_of(judged),
        policy=config.policy,
        by_policy=None
        if judged is None or config.per_item
        else config.stage_names[judged.verdict.recommended],
        changed_at_most=changed,
        advised_same=(int(sums.get("advised:same", 0)), int(sums.get("advised:known", 0))),
        changes=changes,
    )


def _before(changes: tuple[TrailEntry, ...], mode: str) -> str | None:
    """The mode before the present one. The same mode chosen again, with another reason, is none."""
    switches = (change for change in changes if change.what == "mode" and change.old != change.new)
    latest = next(switches, None)
    return None if latest is None or latest.new != mode else latest.old
