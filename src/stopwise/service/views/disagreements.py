"""Page 4: answers side by side. Texts are data from models: a page shows them as plain text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stopwise.abstentions import UNKNOWN
from stopwise.service.cascades.counting import stop_codes
from stopwise.service.cascades.running import RunningCascade
from stopwise.service.database.rounds import StoredItem
from stopwise.service.views.cascade import segments_of
from stopwise.service.views.items import why_of

if TYPE_CHECKING:
    from stopwise.service.core import Service

_LATEST = 500  # rounds in which it is counted what two stages say
_SHORT = 60  # letters of an answer that is counted
_MOST = 8


@dataclass(frozen=True)
class AnswerView:
    """What one stage answered.

    Attributes:
        group: equal for answers that agree; None where there is no answer.
        note: "failed: ...", "abstained" or empty.
    """

    stage: str
    text: str
    group: int | None
    cost: float
    note: str


@dataclass(frozen=True)
class SideBySide:
    """One round with its answers; `why` says per item why it stopped there."""

    round_id: str
    at: float
    segment: str
    served: str | None
    request: str
    answers: tuple[AnswerView, ...]
    why: str = ""


@dataclass(frozen=True)
class DisagreementsView:
    """What was kept, the latest first.

    Attributes:
        segments: every segment and its number of requests.
        counts: for every pair of stages, how often they disagreed and of how many.
        directions: of one pair, what the two said where they differed, and how often, the most
            frequent first; `counted` is in how many of the latest rounds that was looked for.
        older: the time to ask for the page before this one; None on the last.
    """

    name: str
    stages: tuple[str, ...]
    pair: tuple[str, str] | None
    segment: str | None
    segments: tuple[tuple[str, int], ...]
    keep: str
    keep_days: float
    counts: tuple[tuple[str, str, int, int], ...]
    items: tuple[SideBySide, ...]
    older: float | None
    directions: tuple[tuple[str, str, int], ...] = ()
    counted: int = 0


def disagreements_view(
    service: Service,
    cascade: RunningCascade,
    *,
    pair: tuple[int, int] | None = None,
    segment: str | None = None,
    before: float | None = None,
    limit: int = 20,
) -> DisagreementsView:
    """Rounds in which answers differed; of one pair or segment if asked for."""
    names = cascade.config.stage_names
    sums = service.rounds.sums(cascade.name, epoch=cascade.epoch, segment=segment)
    found: list[StoredItem] = []
    place = before
    for _ in range(20):  # a rare pair is looked for in some thousand rounds, not in all
        part = service.rounds.items(
            cascade.name, cascade.epoch, segment=segment, before=place, limit=200
        )
        found += [item for item in part if pair is None or _differs(item, pair, cascade)]
        if len(found) > limit or len(part) < 200:
            break
        place = part[-1].round.at
    more = len(found) > limit
    found = found[:limit]
    directions, counted = _directions(service, cascade, pair, segment)
    return DisagreementsView(
        name=cascade.name,
        stages=names,
        pair=None if pair is None else (names[pair[0]], names[pair[1]]),
        segment=segment,
        segments=segments_of(service, cascade),
        keep=service.config.server.keep,
        keep_days=service.config.server.keep_days,
        counts=tuple(
            (names[i], names[j], int(sums.get(f"disagreed:{i}:{j}", 0)), int(seen))
            for i in range(len(names))
            for j in range(i + 1, len(names))
            if (seen := sums.get(f"seen:{i}:{j}", 0))
        ),
        items=tuple(side_by_side(item, names) for item in found),
        older=found[-1].round.at if more else None,
        directions=directions,
        counted=counted,
    )


def _directions(
    service: Service, cascade: RunningCascade, pair: tuple[int, int] | None, segment: str | None
) -> tuple[tuple[tuple[str, str, int], ...], int]:
    """What two stages say where they differ, and in how many of the latest rounds they do.

    Of short answers alone: long ones hardly ever come twice.
    """
    if pair is None:
        return (), 0
    latest = service.rounds.items(cascade.name, cascade.epoch, segment=segment, limit=_LATEST)
    differing = [item for item in latest if _differs(item, pair, cascade)]
    said: Counter[tuple[str, str]] = Counter()
    for item in differing:
        one, two = (
            text_of_output(item.outputs[at]) if at < len(item.outputs) else "" for at in pair
        )
        if max(len(one), len(two)) <= _SHORT:
            said[one, two] += 1
    shown = [(*texts, number) for texts, number in said.most_common(_MOST) if number > 1]
    return tuple(shown), len(differing)


def side_by_side(item: StoredItem, names: Sequence[str]) -> SideBySide:
    """One kept round."""
    form = item.round.form
    codes, costs = form["codes"], form["costs"]
    failed = form.get("failed", {})
    answers = []
    for at, output in enumerate(item.outputs):
        word = failed.get(str(at))
        code = codes[at] if at < len(codes) else -1  # what a client left behind is not compared
        abstained = "abstained" if code < 0 else ""
        answers.append(
            AnswerView(
                stage=names[at],
                text=text_of_output(output),
                group=code if code >= 0 else None,
                cost=costs[at],
                note=f"failed: {word}" if word is not None else abstained,
            )
        )
    served = form.get("stage")
    return SideBySide(
        round_id=item.round.id,
        at=item.round.at,
        segment=item.round.segment,
        served=None if served is None else names[served],
        request=text_of_request(item.request),
        answers=tuple(answers),
        why=why_of(form, names),
    )


def text_of_output(output: Any) -> str:
    """An output as plain text.

    >>> text_of_output({"content": "", "tool_calls": [{"name": "f", "arguments": "{}"}]})
    'f({})'
    >>> text_of_output({"content": None, "tool_calls": [{"function": {"name": "f"}}]})
    'f()'
    """
    if output is None:
        return ""
    if isinstance(output, dict) and "content" in output:
        given = output.get("tool_calls")
        calls = [_text_of_call(call) for call in given] if isinstance(given, list) else []
        said = "" if output["content"] is None else str(output["content"])
        return "\n".join(filter(None, [said, *calls]))
    if isinstance(output, dict) and set(output) == {"decision"}:
        return json.dumps(output["decision"])
    return output if isinstance(output, str) else json.dumps(output, indent=1)


def _text_of_call(call: Any) -> str:
    """A tool call as plain text, as we keep it or as the protocol has it: users report either."""
    function = call.get("function", call) if isinstance(call, dict) else call
    if isinstance(function, dict) and "name" in function:
        return f"{function['name']}({function.get('arguments', '')})"
    return json.dumps(call)


def text_of_request(request: Any) -> str:
    """What was asked, as plain text: the messages one by one.

    >>> text_of_request([{"role": "user", "content": "hi"}])
    'user: hi'
    """
    if isinstance(request, list):
        lines = []
        for message in request:
            if isinstance(message, dict):
                content = message.get("content")
                text = content if isinstance(content, str) else json.dumps(content)
                lines.append(f"{message.get('role')}: {text}")
        return "\n".join(lines)
    return text_of_output(request)


def _differs(item: StoredItem, pair: tuple[int, int], cascade: RunningCascade) -> bool:
    form, config = item.round.form, cascade.config
    codes = stop_codes(tuple(form["codes"]), form["depth"], len(config.stages), config.abstentions)
    one, two = codes[pair[0]], codes[pair[1]]
    return UNKNOWN not in (one, two) and one != two
