"""What a finished request adds: to the learner's evidence, and to the sums by the hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from stopwise.abstentions import UNKNOWN, Abstentions, answers
from stopwise.agreement import Increments, count_prefix
from stopwise.evidence import ABSTAINED
from stopwise.live import Comparator, Learner
from stopwise.live.abstaining import added_under
from stopwise.live.choosing.stateless_decider import DrawnItem
from stopwise.live.pairs import pair_list, pair_number
from stopwise.service.cascades.forms import GIVEN_UP, Call, Finished, ItemOutcome

PATTERN = "pattern:"
UNTIL = "<"
"""Before the number of stages that a pattern counts for, where more were called than were drawn."""
_MOST_PATTERNS = 5  # stages: beyond, there are too many patterns to count each


@dataclass(frozen=True)
class ComparedAnswers:
    """Which answers of a request agree.

    Attributes:
        codes: a number for each stage called: equal for answers that agree, -1 for none.
        increments: which pairs of outputs disagree.
    """

    codes: tuple[int, ...]
    increments: Increments

    def pairs(
        self, depth: int, stage_count: int, abstentions: Abstentions
    ) -> tuple[tuple[int, int, bool], ...]:
        """What it adds to pairs of stages to stop at: (i, j, whether the answers differ).

        It is what the learner adds (`stopwise.live.abstaining`).

        >>> from stopwise.live import folded
        >>> found = compare(folded(), (Call(0), Call(1, "yes"), Call(2, "yes")))
        >>> found.pairs(2, 3, "leave out"), found.pairs(2, 3, "mistake")[0]
        (((1, 2, False),), (0, 1, True))
        >>> found.pairs(0, 3, "go on")
        ()
        """
        if abstentions == "leave out":
            return self.increments.pairs
        answered = [stage for stage, code in enumerate(self.codes) if code >= 0]
        decided = {(i, j) for i, j, _ in self.increments.pairs}
        added = added_under(
            abstentions,
            stage_count,
            len(self.codes),
            depth,
            sum(1 << stage for stage in answered),
            sum(1 << pair_number(i, j) for i, j, differs in self.increments.pairs if differs),
            sum(
                1 << pair_number(i, j)
                for j in answered
                for i in answered
                if i < j and (i, j) not in decided
            ),
        )
        names = pair_list(stage_count)
        return tuple((*names[pair], differs) for pair, differs in added.pairs)


@lru_cache(maxsize=4096)
def stop_codes(
    codes: tuple[int, ...], depth: int, stage_count: int, abstentions: Abstentions
) -> tuple[int, ...]:
    """The answer when stopping at each stage, as a code; -1 for none, -2 where it does not count.

    Args:
        codes: of the outputs of the stages that were called; -1 for none.
        depth: that was drawn. Where a stage beyond it was called because another gave no answer,
            the round does not count for it.

    >>> stop_codes((-1, 0), 0, 3, "go on"), stop_codes((-1, 0), 1, 3, "mistake")
    ((0, -2, -2), (-1, 0, -2))
    """
    row = [*codes, *[UNKNOWN] * (stage_count - len(codes))]
    counted = None if abstentions == "leave out" else np.arange(stage_count)[None, :] <= depth
    return tuple(answers([row], abstentions, counted)[0].tolist())


def known_calls(calls: tuple[Call, ...], abstentions: Abstentions) -> tuple[Call, ...]:
    """The calls from which something is to be learned.

    That a client left or the service stopped says nothing of the stage that was waited for. Where
    no answer counts as one, that call is left out, and with it whatever was called in its place.

    >>> len(known_calls((Call(0, "yes"), Call(1, failed="client gone")), "mistake"))
    1
    """
    if abstentions == "leave out":
        return calls
    gone = (at for at, call in enumerate(calls) if call.failed in GIVEN_UP)
    return calls[: next(gone, len(calls))]


def compare(comparator: Comparator, calls: tuple[Call, ...]) -> ComparedAnswers:
    """Compare the answers of a request, each read once.

    >>> from stopwise.live import folded
    >>> compare(folded(), (Call(0, "Yes"), Call(1, failed="timeout"), Call(2, "yes"))).codes
    (0, -1, 0)
    """
    keys = list(comparator.keys([call.output for call in calls]))
    codes: list[int] = []
    firsts: list[int] = []
    for at, key in enumerate(keys):
        if key is ABSTAINED:
            codes.append(-1)
            continue
        same = [n for n, first in enumerate(firsts) if not comparator.differ(keys[first], key)]
        if same:
            codes.append(same[0])
        else:
            codes.append(len(firsts))
            firsts.append(at)
    answered = [at for at, key in enumerate(keys) if key is not ABSTAINED]
    found = count_prefix(answered, lambda i, j: comparator.differ(keys[i], keys[j]))
    return ComparedAnswers(tuple(codes), found)


def count_round(
    learner: Learner,
    finished: Finished,
    compared: ComparedAnswers,
    on_begin: Callable[[int], None] = lambda sequence: None,
    labels: Sequence[str | None] | None = None,
) -> None:
    """Count a request as a round of the learner.

    The depth was drawn when the request began, perhaps by another replica; the learner is given it
    with its probability. Answers that agree go in as equal numbers: texts never reach it.

    Args:
        on_begin: given the number of the round before it ends.
        labels: per item, what answers go in as in the place of numbers.
    """
    decision = finished.decision
    advised = decision.advised
    round = learner.begin_drawn(
        decision.depth,
        decision.probability,
        decision.segment,
        advised=None if advised is None else (advised, decision.advised_probability or 0.0),
        item=_drawn_item(finished),
    )
    on_begin(round.sequence)
    exactly = learner.reader.comparator.agree is None
    known = compared.codes if labels is None else labels
    for at, call in enumerate(finished.calls[: len(compared.codes)]):
        while at > round.depth:
            round.go_on()
        if call.failed is not None:
            round.fail(call.failed, call.cost)
        elif compared.codes[at] < 0:
            round.observe(ABSTAINED, call.cost)
        else:
            round.observe(known[at] if exactly else call.output, call.cost, call.confidence)
    if finished.abandoned:
        round.abandon()
    else:
        round.end()


def _drawn_item(finished: Finished) -> DrawnItem | None:
    """How a request was decided per item; None where its depth was drawn."""
    decision, item = finished.decision, finished.item
    if decision.chance is None:
        return None
    stop = None if item is None else item.stop
    return DrawnItem(decision.full_run, decision.chance, stop, decision.features)


def sums_of(
    finished: Finished,
    compared: ComparedAnswers | None,
    baseline: int,
    stage_count: int,
    abstentions: Abstentions = "leave out",
) -> Mapping[str, float]:
    """What a request adds to the sums of its hour.

    Names are words and numbers joined by colons: `served:1` counts answers given by stage 1,
    `decided` rounds that were decided by their answers (per item) and so count for no pair,
    `seen:0:2` and `disagreed:0:2` count a pair, `half:0:2` rounds in which one of the two gave no
    answer, `pattern:0:1:0` rounds in which the first and third answer agreed and the second did not
    (`pattern:-1:0<1` one that counts for the first stage alone, see `stop_codes`), `cost:1` sums
    what stage 1 cost, `drawn:calls:1`, `drawn:cost:1` and `drawn:cost2:1` (squares) are of calls
    that chance alone decided upon (`drawn:unpaid:1` of those that failed and cost nothing),
    `full:...` of full runs, `missing:WHY` counts comparisons that were due and did not come.

    Args:
        baseline: the stage that is served without Stopwise (`run_to`).
        stage_count: of the cascade.
        abstentions: what it means that a stage gives no answer.
    """
    decision = finished.decision
    sums: Counter[str] = Counter()
    add = sums.update
    mode = decision.mode
    _add_request(sums, finished)
    _add_costs(sums, finished, stage_count)
    if decision.uncounted:
        add({f"uncounted:{decision.uncounted}": 1})
        if decision.uncounted == "budget":
            add({"missing:budget": 1})
        return sums
    add({"rounds": 1, f"rounds:{mode}": 1, f"depth:{decision.depth}": 1})
    add({"full_runs": int(decision.full_run)})
    if decision.advised is not None:
        add({f"advised:{decision.advised}": 1})
        _add_advice(sums, finished, compared, decision.advised, abstentions)
    for call in finished.calls:
        if call.failed is not None and call.stage != finished.served:
            add({"missing:failed": 1})
    if not finished.sampled(stage_count):
        add({"decided": 1})  # by its answers: they are no fair sample
        return sums
    if compared is not None:
        _add_compared(sums, compared, decision.depth, stage_count, abstentions)
    if len(finished.calls) > baseline and not finished.calls[baseline].unpaid:
        paid = finished.calls[baseline].cost
        add({"baseline:calls": 1, "baseline:cost": paid, "baseline:cost2": paid * paid})
    return sums


def _add_request(sums: Counter[str], finished: Finished) -> None:
    """What any request adds: what it cost, who asked and who answered."""
    add, mode = sums.update, finished.decision.mode
    add({"requests": 1, f"requests:{mode}": 1, "spent": finished.cost})
    add({f"spent:{mode}": finished.cost, f"seconds:{mode}": finished.seconds})
    add({f"comparison:{mode}": finished.comparison_cost, "comparison": finished.comparison_cost})
    if finished.who:
        add({f"key:{finished.who}": finished.cost})
    add({"abandoned": int(finished.abandoned)})
    if finished.served is not None:
        add({f"served:{finished.served}": 1, f"served:{mode}:{finished.served}": 1})
    elif not finished.abandoned:
        add({"unanswered": 1})


def _add_costs(sums: Counter[str], finished: Finished, stage_count: int) -> None:
    """What each call cost, and apart from that the costs of calls that chance alone decided on."""
    decision = finished.decision
    # A pinned stage, several choices or a call because of what was answered before: what these cost
    # says nothing of what a stage costs. Which requests shadow compares is a matter of chance.
    fair = decision.uncounted in ("", "not sampled") and finished.sampled(stage_count)
    for call in finished.calls:
        _add_call(sums, call)
        kinds = ("drawn", "full") if decision.full_run else ("drawn",)
        for kind in kinds if fair and call.stage <= decision.depth else kinds[1:]:
            sums.update({f"{kind}:calls:{call.stage}": 1, f"{kind}:cost:{call.stage}": call.cost})
            sums.update({f"{kind}:cost2:{call.stage}": call.cost**2})
            if call.unpaid:
                sums.update({f"{kind}:unpaid:{call.stage}": 1})


def _add_compared(
    sums: Counter[str],
    compared: ComparedAnswers,
    depth: int,
    stage_count: int,
    abstentions: Abstentions,
) -> None:
    codes = compared.codes
    for i, j, differs in compared.pairs(depth, stage_count, abstentions):
        sums.update({f"seen:{i}:{j}": 1, f"disagreed:{i}:{j}": int(differs)})
    if codes and stage_count <= _MOST_PATTERNS:
        limited = abstentions != "leave out" and len(codes) > depth + 1
        until = f"{UNTIL}{depth + 1}" if limited else ""
        sums.update({PATTERN + ":".join(map(str, codes)) + until: 1})
    if abstentions == "leave out":
        for i, one in enumerate(codes):
            for j, two in enumerate(codes[:i]):
                if (one < 0) != (two < 0):
                    sums.update({f"half:{j}:{i}": 1})


def _add_call(sums: Counter[str], call: Call) -> None:
    stage = call.stage
    sums.update({f"calls:{stage}": 1, f"cost:{stage}": call.cost})
    sums.update({f"call_seconds:{stage}": call.seconds})
    if call.usage is not None:
        sums.update({f"input:{stage}": call.usage.input, f"output:{stage}": call.usage.output})
    if call.failed is not None:
        sums.update({f"failed:{stage}": 1})
    elif call.output is None:
        sums.update({f"abstained:{stage}": 1})


def _add_advice(
    sums: Counter[str],
    finished: Finished,
    compared: ComparedAnswers | None,
    advised: int,
    abstentions: Abstentions,
) -> None:
    """What the advice would have cost, and whether it would have changed the answer."""
    codes = () if compared is None else compared.codes
    if abstentions == "go on":
        while advised + 1 < len(codes) and codes[advised] < 0:
            advised += 1
    sums.update({"advised:cost": sum(call.cost for call in finished.calls[: advised + 1])})
    sums.update({"advised:paid": finished.cost})
    served = finished.served
    if served is None or max(served, advised) >= len(codes):
        return
    one, two = codes[advised], codes[served]
    # That one of them is no answer is a change, unless such rounds are left out.
    if (one >= 0 and two >= 0) or (max(one, two) >= 0 and abstentions != "leave out"):
        sums.update({"advised:known": 1, "advised:same": int(one == two)})


def row_form(
    finished: Finished, compared: ComparedAnswers | None, stage_count: int
) -> dict[str, Any]:
    """What is kept of a round for good: numbers, no texts."""
    decision = finished.decision
    form: dict[str, Any] = {
        "mode": decision.mode,
        "depth": decision.depth,
        "probability": decision.probability,
        "stage": finished.served,
        "called": len(finished.calls),
        "codes": list(compared.codes) if compared is not None else [],
        "costs": [call.cost for call in finished.calls],
        "seconds": [round(call.seconds, 6) for call in finished.calls],
        "cost": finished.cost,
    }
    if decision.advised is not None:
        form["advised"] = [decision.advised, decision.advised_probability]
    failed = {str(call.stage): call.failed for call in finished.calls if call.failed is not None}
    if failed:
        form["failed"] = failed
    if decision.full_run:
        form["full_run"] = True
    if not finished.sampled(stage_count):
        form["decided"] = True  # by its answers: they are no fair sample of all stages' answers
    if finished.abandoned:
        form["abandoned"] = True
    if finished.who:
        form["key"] = finished.who
    if decision.chance is not None and finished.item is not None:
        form["item"] = item_form(finished.item, decision.chance)
    return form


def item_form(item: ItemOutcome, chance: float) -> dict[str, Any]:
    """What is kept of what the rule said: numbers.

    >>> from stopwise.policies.per_item.rule import RuleDecision
    >>> step = RuleDecision(True, (0.02, 0.1), 0.2, 1.5, 40, 3)
    >>> item_form(ItemOutcome(0, (step,)), 0.25)
    {'chance': 0.25, 'stop': 0, 'steps': [[True, 0.02, 0.2, 1.5, 40]]}
    """
    return {
        "chance": chance,
        "stop": item.stop,
        "steps": [
            [step.stop, *(float(f"{number:.4g}") for number in (step.losses[at], step.here,
             step.deeper)), step.rows]
            for at, step in enumerate(item.steps)
        ],
    }  # fmt: skip
