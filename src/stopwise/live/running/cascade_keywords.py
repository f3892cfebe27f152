"""The settings of a cascade by keyword, for what passes them on: an editor completes them."""

from __future__ import annotations

from typing import Literal

from stopwise.live.items.known import FeatureFunction
from stopwise.live.keywords import LearnerKeywords
from stopwise.live.running.runner import OnFailure

CostSource = Literal["known", "reported", "clock", "elapsed"]


class CascadeKeywords(LearnerKeywords, total=False):
    """What `Cascade` takes besides stages and policy; see there.

    >>> "deadline" in CascadeKeywords.__optional_keys__
    True
    """

    mistake_cost: float
    seed: int
    costs: CostSource
    on_failure: OnFailure
    at_once: bool
    workers: int | None
    deadline: float | None
    features: FeatureFunction | None
