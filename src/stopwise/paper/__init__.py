"""The paper: its instances as data, its tables and figures, and the published points beside them.

Read in this order: `files` and `instances` (what is printed), `classifiers` and `environments`
(problems from it), `experiments` (the list of runs), `running` (run and keep), then `tables`,
`comparison`, `figures` and `report` (look), and `reproduce` (all of it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names

if TYPE_CHECKING:
    from stopwise.paper.environments import problem
    from stopwise.paper.instances import (
        Dataset,
        Instance,
        PaperInstance,
        get_dataset,
        load_datasets,
    )

_WHERE = {
    "Dataset": "stopwise.paper.instances",
    "Instance": "stopwise.paper.instances",
    "PaperInstance": "stopwise.paper.instances",
    "get_dataset": "stopwise.paper.instances",
    "load_datasets": "stopwise.paper.instances",
    "problem": "stopwise.paper.environments",
}

__all__ = [
    "Dataset",
    "Instance",
    "PaperInstance",
    "get_dataset",
    "load_datasets",
    "problem",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
