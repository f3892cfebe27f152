"""A policy: a pure function from (evidence, round, costs) to a distribution over the depth."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from stopwise.checks import fail, take_plain_numbers, whole_number
from stopwise.costs import Costs, FloatArray
from stopwise.evidence import Evidence


class Policy(ABC):
    """Base of all policies. A subclass is a frozen dataclass with a `name` and one small hook.

    The depth of a round is drawn before its first stage is called, because no rule here looks at
    the round's own outputs. A subclass implements `_depth_probabilities`; this class checks what
    goes in and what comes out.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class CoinFlip(Policy):
    ...     name = "coin-flip"
    ...     def _depth_probabilities(self, evidence, round, costs):
    ...         return np.array([0.5, 0.5])
    >>> CoinFlip().probabilities(Evidence(2), 1, Costs.from_cumulative((0, 1)))
    array([0.5, 0.5])
    """

    name: ClassVar[str]
    """The name under which it is registered and shown."""

    def __post_init__(self) -> None:
        """Make NumPy's scalars plain numbers, so that labels, JSON and kernels see one kind.

        A subclass that checks its settings calls `super().__post_init__()` first.

        >>> from stopwise.policies.uss_ucb import UssUcb
        >>> UssUcb(alpha=np.float32(0.5)).label(), UssUcb(alpha=np.float64(0.51)).label()
        ('uss-ucb', 'uss-ucb:alpha=0.51')
        """
        take_plain_numbers(self)

    @abstractmethod
    def _depth_probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        """The rule itself. Must not change its arguments nor remember anything."""

    def probabilities(self, evidence: Evidence, round: int, costs: Costs) -> FloatArray:
        """The probability of stopping at each stage, in round `round` (the first is 1)."""
        if evidence.stage_count != costs.stage_count:
            raise fail(
                "evidence",
                f"{evidence.stage_count} stages",
                f"{costs.stage_count} stages, as in costs",
            )
        round = whole_number("round", round, least=1)
        result = np.asarray(self._depth_probabilities(evidence, round, costs), dtype=np.float64)
        if result.shape != (costs.stage_count,) or not (result >= 0).all():
            raise fail(
                f"policy {self.name}", result, f"{costs.stage_count} probabilities, each >= 0"
            )
        if abs(result.sum() - 1) > 1e-9:
            raise fail(f"policy {self.name}", result, "probabilities that sum to 1")
        return result

    def draw(self, evidence: Evidence, round: int, costs: Costs, rng: np.random.Generator) -> int:
        """Draw the depth of a round; exactly one uniform number is used unless a rule overrides it.

        >>> from stopwise.policies.fixed import FixedStage
        >>> costs = Costs.from_cumulative((0, 1))
        >>> FixedStage(1).draw(Evidence(2), 1, costs, np.random.default_rng(0))
        1
        """
        cumulative = np.cumsum(self.probabilities(evidence, round, costs))
        depth = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        return min(depth, costs.stage_count - 1)

    def record(self, evidence: Evidence, round: int, prefix: Sequence[Hashable]) -> None:
        """Count a finished round; a rule whose source counts otherwise overrides this.

        >>> from stopwise.policies.fixed import FixedStage
        >>> evidence = Evidence(2)
        >>> FixedStage(1).record(evidence, 1, ["yes", "no"])
        >>> int(evidence.disagreed[0, 1])
        1
        """
        evidence.add(prefix)

    def for_horizon(self, horizon: int) -> Policy:
        """The policy for a run of `horizon` rounds; those that plan ahead take it from here.

        >>> from stopwise.policies.imed import Imed
        >>> Imed().for_horizon(1000).settings()["horizon"]
        1000
        """
        del horizon
        return self

    def compiled_rule(self) -> Callable[..., None] | None:
        """The rule once more for numba, if it has been written for it, so that simulations fly.

        A function made by `numba.njit` of (seen, disagreed, thresholds, round, depths) that fills
        `depths`; the counts and thresholds are tables of stages x stages. `check_policy` compares
        it with the rule itself.

        >>> from stopwise.policies.fixed import FixedStage
        >>> FixedStage(1).compiled_rule() is None       # it has a kernel of its own
        True
        """
        return None

    def settings(self) -> Mapping[str, Any]:
        """The settings, as JSON would hold them.

        >>> from stopwise.policies.uss_ucb import UssUcb
        >>> UssUcb(alpha=0.51).settings()
        {'alpha': 0.51}
        """
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]

    def label(self) -> str:
        """Name and the settings that are not the usual ones, as the command line takes them.

        >>> from stopwise.policies.uss_ucb import UssUcb
        >>> UssUcb(alpha=0.51).label()
        'uss-ucb:alpha=0.51'
        """
        usual = {field.name: field.default for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        changed = {key: value for key, value in self.settings().items() if value != usual[key]}
        written = ",".join(f"{key}={self._as_text(key, value)}" for key, value in changed.items())
        return f"{self.name}:{written}" if written else self.name

    def _as_text(self, key: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            raise fail(f"policy {self.name}: {key}", value, "a value that JSON can hold") from None


def certain_depth(stage_count: int, stage: int) -> FloatArray:
    """The distribution of a rule that has decided.

    >>> certain_depth(3, 1)
    array([0., 1., 0.])
    """
    distribution = np.zeros(stage_count)
    distribution[stage] = 1.0
    return distribution
