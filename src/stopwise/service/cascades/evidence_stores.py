"""Where the evidence of a cascade is kept: one store for each cascade and epoch."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from stopwise.live import PostgresStore, SqliteStore
from stopwise.live.stores.base import Companion
from stopwise.service.config.forms import CascadeConfig
from stopwise.service.database.connection import sqlite_path


def epoch_of(config: CascadeConfig) -> tuple[str, dict[str, Any]]:
    """The name of an epoch and what it stands for: counters under other settings are others.

    The order and names of stages, their prices, the comparator and what an abstention means say
    what counters mean; modes, budgets and the mistake cost only say what is decided from them.
    """
    meaning = {
        "stages": list(config.stage_names),
        "costs": [stage.cost for stage in config.stages],
        "models": [stage.upstream and stage.upstream.model for stage in config.stages],
        "priced": config.priced,
        "comparator": config.compare.label,
    }
    if config.abstentions != "leave out":  # as before it was a setting
        meaning["abstentions"] = config.abstentions
    text = json.dumps(meaning, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12], meaning


def evidence_store(
    store: str, folder: Path, cascade: str, epoch: str, companion: Companion
) -> SqliteStore | PostgresStore:
    """The store that a learner is given: rounds are written behind, in batches, exactly once.

    It is the database of the service, so that rows and counters are written together.
    """
    name = f"{cascade}:{epoch}"
    made: SqliteStore | PostgresStore
    if store.startswith("sqlite:///"):
        made = SqliteStore(sqlite_path(store, folder), cascade=name, durability="behind")
    else:
        made = PostgresStore(store, cascade=name, durability="behind", patience=5.0)
    made.companion = companion
    return made
