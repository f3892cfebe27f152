"""The depth distribution of Thompson sampling, carried along from round to round in plain Python.

One observation moves one Beta parameter by one. With w = x^a (1-x)^b / B(a, b):

    I_x(a+1, b) = I_x(a, b) - w/a        I_x(a, b+1) = I_x(a, b) + w/b

and w itself moves by a factor. Subtraction wears the smaller of I and 1 - I away, so both are
carried, and both are taken from SciPy again when either has shrunk by a set factor, or after a set
number of steps. A test holds the whole to `policies/uss_ts.py` and `policies/uss_ts_jump.py`.

I_x(a, b) falls in a and rises in b. So when I_x(a, b + m) is negligible, it stays so for m more
observations whatever they show; likewise 1 - I. While that holds for all pairs at once, the
distribution stands still and observations are only noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from stopwise.live.counters.pairs import pair_list, pair_number
from stopwise.policies.base import Policy
from stopwise.policies.uss_ts import UssTs
from stopwise.policies.uss_ts_jump import UssTsJump

_SHRINK = 1 / 16
_STEPS = 256.0
# Below this a probability is no longer told from zero by a random number of 53 bits: it is carried
# without its last digits, and only kept from turning negative.
_NEGLIGIBLE = 1e-18

# a, b, a + b, x, 1 - x, I, J, w, lowest I and J before the next anchor, a + b at the next anchor
_Pair = tuple[float, float, float, float, float, float, float, float, float, float, float]
_FIELDS = 11
_LOW, _HIGH = 5, 6


def _tails(a: float, b: float, x: float) -> tuple[float, float]:
    """I_x(a, b) and its complement. SciPy is imported at the first call, then this name is it."""
    from scipy.special import betainc, betaincc

    def tails(a: float, b: float, x: float) -> tuple[float, float]:
        return float(betainc(a, b, x)), float(betaincc(a, b, x))

    globals()["_tails"] = tails
    return tails(a, b, x)


def can_carry(policy: Policy) -> bool:
    """Whether the distribution of a policy can be carried: USS-TS, with either walk, untempered.

    >>> can_carry(UssTs()), can_carry(UssTsJump(temper=2.0))
    (True, False)
    """
    return type(policy) is UssTs or (type(policy) is UssTsJump and policy.temper == 1.0)


def warm_up() -> None:
    """Import what the first anchor needs, so that the first round does not wait for it."""
    _tails(1.0, 1.0, 0.5)


class FastTs:
    """The pair tests of `UssTs` or `UssTsJump` for one cascade, moved by single observations.

    Args:
        policy: gives the prior counts.
        thresholds: `C_j - C_i` in mistakes, as a table.

    >>> fast = FastTs(UssTs(), [[0.0, 0.25], [0.0, 0.0]])
    >>> fast.anchor([2], [0])
    >>> fast.distribution()
    [0.578125, 0.421875]
    """

    __slots__ = (
        "_jumps", "_noted", "_pairs", "_rows", "_still", "_thresholds", "current", "policy", "sure",
    )  # fmt: skip

    def __init__(self, policy: UssTs | UssTsJump, thresholds: Sequence[Sequence[float]]) -> None:
        count = len(thresholds)
        self.policy = policy
        self._jumps = isinstance(policy, UssTsJump)
        # False while a move is under way: an interrupt then leaves it so, and `anchor` is due.
        self.sure = True
        self._thresholds = [
            min(max(float(thresholds[i][j]), 0.0), 1.0) for i, j in pair_list(count)
        ]
        self._rows = [[pair_number(i, j) for j in range(i + 1, count)] for i in range(count - 1)]
        self._pairs: list[_Pair] = []
        self._still = 0  # number of further observations that cannot change the distribution
        self._noted: list[Sequence[tuple[int, bool]]] = []
        self.current: tuple[Sequence[float], Sequence[float]] | None = None

    def anchor(self, seen: Sequence[float], disagreed: Sequence[float]) -> None:
        """Take every pair from its counts again."""
        self.sure = False
        self._pairs = [
            self._anchored(d + self.policy.prior_disagreed, n - d + self.policy.prior_agreed, x)
            for n, d, x in zip(seen, disagreed, self._thresholds, strict=True)
        ]
        self._noted = []
        self._stand_still()
        self.sure = True

    @staticmethod
    def _anchored(a: float, b: float, x: float) -> _Pair:
        if x <= 0.0 or x >= 1.0:
            # A threshold that is never passed, or always: nothing moves, nothing to renew.
            return (a, b, a + b, x, 1.0 - x, x, 1.0 - x, 0.0, -1.0, -1.0, float("inf"))
        low, high = _tails(a, b, x)
        # w / a is a difference of two neighbours; the smaller tail loses fewest digits by it.
        low_next, high_next = _tails(a + 1.0, b, x)
        w = a * (high_next - high if high < low else low - low_next)
        return (
            a, b, a + b, x, 1.0 - x, low, high, w,
            low * _SHRINK if low > _NEGLIGIBLE else 0.0,
            high * _SHRINK if high > _NEGLIGIBLE else 0.0,
            a + b + _STEPS,
        )  # fmt: skip

    def move(self, moves: Sequence[tuple[int, bool]]) -> None:
        """Count one more observation of each of these pairs."""
        if self._still:
            self._still -= 1
            self._noted.append(moves)
            return
        if self._noted:
            self._catch_up()
        pairs = self._pairs
        anchored = False
        for number, differs in moves:
            a, b, n, x, y, low, high, w, least_low, least_high, until = pairs[number]
            if differs:
                step = w / a
                low -= step
                high += step
                w = step * x * n
                a += 1.0
            else:
                step = w / b
                low += step
                high -= step
                w = step * y * n
                b += 1.0
            n += 1.0
            if low < least_low or high < least_high or n > until:
                pairs[number] = self._anchored(a, b, x)
                anchored = True
            else:
                pairs[number] = (a, b, n, x, y, low, high, w, least_low, least_high, until)
        self.current = None
        if anchored:
            self._stand_still()

    def _stand_still(self) -> None:
        """See how many observations cannot matter any more: powers of two up to 1024."""
        self.current = None
        self._still = 0
        if all(min(pair[_LOW], pair[_HIGH]) <= _NEGLIGIBLE for pair in self._pairs):
            steps = 32
            while steps <= 1024 and all(self._settled(pair, steps) for pair in self._pairs):
                self._still = steps
                steps *= 2

    @staticmethod
    def _settled(pair: _Pair, steps: int) -> bool:
        a, b, _, x = pair[:4]
        if not 0.0 < x < 1.0:
            return True
        if pair[_LOW] < pair[_HIGH]:
            return _tails(a, b + steps, x)[0] <= _NEGLIGIBLE
        return _tails(a + steps, b, x)[1] <= _NEGLIGIBLE

    def _catch_up(self) -> None:
        """Count what was only noted."""
        counts = {number: list(pair[:2]) for number, pair in enumerate(self._pairs)}
        for moves in self._noted:
            for number, differs in moves:
                counts[number][not differs] += 1.0
        self._noted.clear()
        for number, (a, b) in counts.items():
            self._pairs[number] = self._anchored(a, b, self._thresholds[number])
        self._stand_still()

    def renew(self) -> tuple[Sequence[float], Sequence[float]]:
        """The depth distribution and its running sums, kept in `current` until a pair moves."""
        p: Sequence[float]
        sums: Sequence[float]
        if len(self._pairs) == 3:  # three stages, the usual case, written out
            first, second, third = self._pairs
            low = first[_LOW]
            stop = low * second[_LOW]
            if self._jumps:
                middle = first[_HIGH] * third[_LOW]
                last = low * second[_HIGH] + first[_HIGH] * third[_HIGH]
            else:
                go_on = first[_HIGH] + low * second[_HIGH]
                middle = go_on * third[_LOW]
                last = go_on * third[_HIGH]
            p, sums = (stop, middle, last), (stop, stop + middle, stop + middle + last)
        else:
            p = self._jump_walk() if self._jumps else self._step_walk()
            sums = list(accumulate(p))
        self.current = current = (p, sums)
        return current

    def distribution(self) -> list[float]:
        """The probability of every depth."""
        return list((self.current or self.renew())[0])

    def _jump_walk(self) -> list[float]:
        """The jump walk of `policies/walks.py`."""
        pairs = self._pairs
        result = [1.0] + [0.0] * len(self._rows)
        for i, row in enumerate(self._rows):
            passed = result[i]
            for j, number in enumerate(row, i + 1):
                pair = pairs[number]
                result[j] += passed * pair[_HIGH]
                passed *= pair[_LOW]
            result[i] = passed
        return result

    def _step_walk(self) -> list[float]:
        """The step walk of `policies/walks.py`."""
        pairs = self._pairs
        result = []
        arriving = 1.0
        for row in self._rows:
            passing, failing = 1.0, 0.0
            for number in row:
                pair = pairs[number]
                # The first test to fail is this one: all terms are positive, no digit is lost.
                failing += passing * pair[_HIGH]
                passing *= pair[_LOW]
            result.append(arriving * passing)
            arriving *= failing
        result.append(arriving)
        return result

    def to_form(self) -> dict[str, Any]:
        """The carried numbers, so that a restored learner goes on with the very same bits."""
        return {
            "pairs": [[None if v == float("inf") else v for v in pair] for pair in self._pairs],
            "still": self._still,
            "noted": [[list(move) for move in moves] for moves in self._noted],
        }

    def restore(self, form: Any, seen: Sequence[float], disagreed: Sequence[float]) -> None:
        """Take what `to_form` gave, unless it does not belong to these counts."""
        self.anchor(seen, disagreed)
        fresh, fresh_still = self._pairs, self._still
        try:
            self._pairs = [
                tuple(float("inf") if v is None else float(v) for v in pair)  # type: ignore[misc]
                for pair in form["pairs"]
            ]
            self._noted = [tuple((int(k), bool(d)) for k, d in moves) for moves in form["noted"]]
            self._still = int(form["still"])
            kept = (self._pairs, self._still, list(self._noted))
            if self._noted:
                self._catch_up()
            belongs = [len(pair) for pair in kept[0]] == [_FIELDS] * len(fresh) and all(
                mine[:5] == theirs[:5] and abs(mine[_LOW] - theirs[_LOW]) <= 1e-9
                for mine, theirs in zip(self._pairs, fresh, strict=True)
            )
        except (KeyError, TypeError, ValueError, IndexError):
            belongs = False
        if belongs:
            self._pairs, self._still, self._noted = kept
        else:
            self._pairs, self._still, self._noted = fresh, fresh_still, []
        self.current = None
