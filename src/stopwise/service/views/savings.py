"""Page 3: what was saved against always serving `run_to`, net of comparison calls."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from stopwise.service.cascades.running import RunningCascade
from stopwise.service.config.forms import MODES

if TYPE_CHECKING:
    from stopwise.service.core import Service

_FEWEST = 30


@dataclass(frozen=True)
class SavingsView:
    """What a cascade costs against what is served without it.

    Without Stopwise every request would be one call of `run_to`. What that costs is known where it
    was called: in full runs, which are drawn without looking at the request.

    Attributes:
        requests: that were enforced.
        spent: on them, comparison calls included; `comparison` is that part.
        baseline: what one call of `run_to` costs: mean, low and high at `level`; None if unknown.
        baseline_calls: how many calls that rests on (one that failed and cost nothing is none);
            `from_full_runs` tells whether full runs alone were enough of them.
        saved: baseline x requests less what was spent: mean, low and high; below 0 it is overhead.
        observing: what comparison calls cost in the modes shadow and advise, with nothing saved.
        would: of rounds compared in shadow or advise: how many, what they would have cost if every
            one had gone as deep as was drawn for it, and one call of `run_to` for each.
        by_mode: (mode, requests, spent, of it comparison).
    """

    name: str
    run_to: str
    requests: int
    spent: float
    comparison: float
    baseline: tuple[float, float, float] | None
    baseline_calls: int
    from_full_runs: bool
    saved: tuple[float, float, float] | None
    observing: float
    would: tuple[int, float, float] | None
    level: float
    by_mode: tuple[tuple[str, int, float, float], ...]


def savings_view(service: Service, cascade: RunningCascade, level: float = 0.95) -> SavingsView:
    """Read what a cascade saved in its present epoch."""
    sums = service.rounds.sums(cascade.name, epoch=cascade.epoch)
    return savings_of(sums, cascade.name, cascade.config.stage_names, cascade.config.run_to, level)


def savings_of(
    sums: Mapping[str, float], name: str, stages: tuple[str, ...], run_to: int, level: float = 0.95
) -> SavingsView:
    """The same from sums alone.

    >>> sums = {"requests:enforce": 100, "spent:enforce": 60.0, "full:calls:1": 40,
    ...         "full:cost:1": 40.0, "full:cost2:1": 40.0}
    >>> savings_of(sums, "c", ("small", "large"), 1).saved
    (40.0, 40.0, 40.0)
    """
    full = int(sums.get(f"full:calls:{run_to}", 0) - sums.get(f"full:unpaid:{run_to}", 0))
    enough = full >= _FEWEST
    kind = f"full:{{}}:{run_to}" if enough else "baseline:{}"
    calls = full if enough else int(sums.get("baseline:calls", 0))
    baseline = _mean(
        calls, sums.get(kind.format("cost"), 0.0), sums.get(kind.format("cost2"), 0.0), level
    )
    requests, spent = int(sums.get("requests:enforce", 0)), sums.get("spent:enforce", 0.0)
    saved = None
    if baseline is not None and requests:
        saved = tuple(requests * value - spent for value in baseline)
    return SavingsView(
        name=name,
        run_to=stages[run_to],
        requests=requests,
        spent=spent,
        comparison=sums.get("comparison:enforce", 0.0),
        baseline=baseline,
        baseline_calls=calls,
        from_full_runs=enough,
        saved=saved,  # type: ignore[arg-type]
        observing=sums.get("comparison:shadow", 0.0) + sums.get("comparison:advise", 0.0),
        would=_would(sums, len(stages), baseline),
        level=level,
        by_mode=tuple(
            (
                mode,
                int(sums.get(f"requests:{mode}", 0)),
                sums.get(f"spent:{mode}", 0.0),
                sums.get(f"comparison:{mode}", 0.0),
            )
            for mode in MODES
        ),
    )


def _would(
    sums: Mapping[str, float], stage_count: int, baseline: tuple[float, float, float] | None
) -> tuple[int, float, float] | None:
    rounds = int(sum(sums.get(f"advised:{stage}", 0) for stage in range(stage_count)))
    if baseline is None or not rounds:
        return None
    return rounds, sums.get("advised:cost", 0.0), rounds * baseline[0]


def _mean(
    calls: int, total: float, squares: float, level: float
) -> tuple[float, float, float] | None:
    """A mean with its interval (normal, as costs of calls are bounded and calls are many)."""
    if calls < 2:
        return None
    mean = total / calls
    variance = max(0.0, (squares - calls * mean * mean) / (calls - 1))
    wide = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance / calls)
    return mean, max(0.0, mean - wide), mean + wide
