"""A comparator: when do two answers agree?

A comparator is a key (answers agree when their keys are equal; a key of None is an abstention) or a
function of two answers. Keys are to be preferred: they are taken once for each answer.

It is *sound* if agreeing implies being equally right. Too strict a comparator only costs money; one
that is too loose breaks what Stopwise calls certain.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stopwise.checks import StopwiseError, a_function, fail, names_fields
from stopwise.evidence import ABSTAINED
from stopwise.live.calling import background
from stopwise.live.calling.stage import Reported
from stopwise.live.limits import check_cost

KeyFunction = Callable[[Any], Hashable | Awaitable[Hashable]]
AgreeResult = bool | None | Reported
Agree = Callable[[Any, Any], AgreeResult | Awaitable[AgreeResult]]

_LOOP_FIX = "the comparator is async; await round.end_async() or Cascade.answer_async instead"


OF_TWO = "a function of two answers"


class MisusedComparatorError(StopwiseError):
    """A comparator said something that is neither yes nor no; its function must be fixed.

    >>> from stopwise import Cascade, Stage
    >>> stages = [Stage("rule", str.islower, 1), Stage("model", str.isalpha, 5)]
    >>> vague = Cascade(stages, "fixed:stage=1", mistake_cost=20, comparator=lambda a, b: "perhaps")
    >>> vague.answer("a")
    Traceback (most recent call last):
    ...
    stopwise.live.comparing.comparator.MisusedComparatorError: comparator ...: returned str, but ...
    """


class Judged(NamedTuple):
    """What a comparator said of two answers, and what it cost; None where it cannot say."""

    agree: bool | None
    cost: float = 0.0


@names_fields
@dataclass(frozen=True)
class Comparator:
    """How answers are compared; made by the functions of this room.

    Args:
        label: what stands in a snapshot, so that counts of another comparator are refused.
        key: answers agree when their keys are equal.
        agree: or, says of two answers (of two keys, where there is a key) whether they agree.
        may_abstain: whether `agree` may return None: it cannot say.
        quick: whether it is so quick that an event loop need not be spared.

    >>> folded = Comparator("folded", key=str.casefold)
    >>> folded.agrees("Yes", "yes")
    True
    >>> folded.key_of("Yes"), folded.keys(["Yes", "NO"]), folded.checked_key("yes")
    ('yes', ['yes', 'no'], 'yes')
    >>> folded.differ("yes", "no"), folded.judge("yes", "no")
    (True, Judged(agree=False, cost=0.0))
    """

    label: str
    key: KeyFunction | None = None
    agree: Agree | None = None
    may_abstain: bool = False
    quick: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not self.label:
            raise fail("label", self.label, "text, which stands in snapshots")
        if self.key is not None:
            a_function("key", self.key, "a function of an answer")
        if self.agree is not None:
            a_function("agree", self.agree, OF_TWO)

    def __repr__(self) -> str:
        return f"Comparator({self.label!r})"

    @property
    def is_async(self) -> bool:
        """Whether a function of it must be awaited."""
        return any(inspect.iscoroutinefunction(part) for part in (self.key, self.agree))

    def agrees(self, one: Any, two: Any) -> bool | None:
        """Whether two answers agree; None where one of them is an abstention, or it cannot say."""
        first, second = self.key_of(one), self.key_of(two)
        if first is ABSTAINED or second is ABSTAINED:
            return None
        return self.judge(first, second).agree

    def key_of(self, answer: Any) -> Any:
        """What is compared in the place of an answer."""
        if self.key is None or answer is ABSTAINED:
            return answer
        return self.checked_key(settle(self.key(answer)))

    def keys(self, answers: Sequence[Any]) -> Sequence[Any]:
        """What is compared, in the place of each answer."""
        return [self.key_of(answer) for answer in answers]

    def differ(self, one: Any, two: Any) -> bool:
        """Whether two keys (answers, where there is no key) disagree; not to know is to differ."""
        return not self.judge(one, two).agree

    def judge(self, one: Any, two: Any) -> Judged:
        """Compare two keys (answers, where there is no key)."""
        if self.agree is None:
            return Judged(bool(one == two))
        return self.read_verdict(settle(self.agree(one, two)))

    def checked_key(self, key: Any) -> Any:
        """Refuse a key that would never be equal to another."""
        if hasattr(key, "__next__"):
            raise MisusedComparatorError(
                f"comparator {self.label}: its key is a {type(key).__name__}; return text, a number"
                " or a tuple"
            )
        return key

    def read_verdict(self, verdict: Any) -> Judged:
        """Read what the function of two returned.

        >>> Comparator("by(x)").read_verdict(Reported(True, cost=0.01))
        Judged(agree=True, cost=0.01)
        """
        cost = 0.0
        if type(verdict) is Reported:
            verdict, cost = verdict.output, check_cost("cost", verdict.cost or 0.0)
        if verdict is None and self.may_abstain:
            return Judged(None, cost)
        # NumPy's booleans equal True and False; a similarity such as 0.3 does not.
        if verdict is None or isinstance(verdict, str) or verdict not in (True, False):
            accepted = "True, False or None" if self.may_abstain else "True or False"
            fix = "" if self.may_abstain else " (judge(...) may return None, for 'cannot say')"
            raise MisusedComparatorError(
                f"comparator {self.label}: returned {type(verdict).__name__}, but need {accepted}"
                + fix
            )
        return Judged(bool(verdict), cost)


def settle(value: Any) -> Any:
    """A value, or what awaiting it gives."""
    if inspect.isawaitable(value):
        return background.run(value, _LOOP_FIX)
    return value
