"""The published benchmark of policies: instances, runs that can be resumed, tables and plots.

`stopwise bench-policies` runs all of it: `plan` says what, on the instances of `families`; `runs`
runs and keeps, `report` and `plots` show. The instances are of use for a policy of your own, too.

>>> import stopwise as sw
>>> [instance.problem.stage_count for instance in sw.bench.make_family("weak", 5, seed=1)]
[2, 3, 5, 8, 16]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names

if TYPE_CHECKING:
    from stopwise.bench.families import BenchInstance, make_family, paper_instances

_WHERE = {
    "BenchInstance": "stopwise.bench.families",
    "make_family": "stopwise.bench.families",
    "paper_instances": "stopwise.bench.families",
}

__all__ = [
    "BenchInstance",
    "make_family",
    "paper_instances",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
