"""The settings of a learner by keyword, for what passes them on: an editor completes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from stopwise.abstentions import Abstentions
from stopwise.costs import Calls
from stopwise.live.comparing.comparator import Agree, Comparator
from stopwise.live.comparing.reader import Combine
from stopwise.live.record import RoundRecord
from stopwise.live.settings import Mode
from stopwise.live.stores.base import Store
from stopwise.live.watching.drift import Drift, DriftAlarm
from stopwise.policies.per_item.any_rule import AnyRule


class LearnerKeywords(TypedDict, total=False):
    """What `Learner` takes besides stages, policy, mistake cost and seed; see there.

    >>> "half_life" in LearnerKeywords.__optional_keys__
    True
    """

    comparator: Comparator | Agree | str
    combine: Combine | None
    half_life: float | None
    full_run_rate: float
    drift: Drift | None
    on_drift: Callable[[DriftAlarm], None] | None
    mode: Mode
    run_to: int | str
    item_budget: float | None
    run_budget: float | None
    segment_strength: float
    store: Store | None
    on_round: Callable[[RoundRecord], None] | None
    max_segments: int
    rule: AnyRule | str | Path | None
    agree: float | None
    level: float
    look_rate: float
    calls: Calls | None
    abstentions: Abstentions
