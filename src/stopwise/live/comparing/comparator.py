"""A comparator: when do two answers agree?

A comparator is a key (answers agree when their keys are equal; a key of None is an abstention) or a
function of two answers. Keys are to be preferred: they are taken once for each answer, and a batch
is compared at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from stopwise.evidence import ABSTAINED

Key = Callable[[Any], Hashable]
Agree = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Comparator:
    """How answers are compared; made by the functions of this room.

    Args:
        label: what stands in a snapshot, so that counts of another comparator are refused.
        key: answers agree when their keys are equal.
        agree: or, says of two answers whether they agree.
    """

    label: str
    key: Key | None = None
    agree: Agree | None = None

    def agrees(self, one: Any, two: Any) -> bool | None:
        """Whether two answers agree; None where one of them is an abstention.

        >>> Comparator("folded", key=str.casefold).agrees("Yes", "yes")
        True
        """
        if self.key is not None:
            one = ABSTAINED if one is ABSTAINED else self.key(one)
            two = ABSTAINED if two is ABSTAINED else self.key(two)
        if one is ABSTAINED or two is ABSTAINED:
            return None
        return bool(one == two if self.agree is None else self.agree(one, two))

    def keys(self, answers: Sequence[Any]) -> Sequence[Any]:
        """What is compared, in the place of each answer."""
        key = self.key
        if key is None:
            return answers
        return [ABSTAINED if answer is ABSTAINED else key(answer) for answer in answers]

    def differ(self, one: Any, two: Any) -> bool:
        """Whether two keys (answers, where there is no key) disagree."""
        return not (one == two if self.agree is None else self.agree(one, two))
