"""Page 8: keys, settings as they are, epochs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwise.service.database.keys import SCOPES, Key

if TYPE_CHECKING:
    from stopwise.service.core import Service

SCOPE_MEANINGS = {
    "infer": "ask for answers and hold rounds",
    "read": "see these pages, reports and logs",
    "label": "say which answer is right",
    "admin": "everything, also modes and keys",
}


@dataclass(frozen=True)
class EpochLine:
    """One epoch of a cascade: what its counters mean."""

    cascade: str
    epoch: str
    began: float
    settings: tuple[tuple[str, str], ...]
    present: bool


@dataclass(frozen=True)
class KeysView:
    """What page 8 shows.

    Attributes:
        spent: today, by the id of the key.
        scopes: what each one allows.
        settings: (section, field, value); secrets are shown as ***.
    """

    keys: tuple[Key, ...]
    scopes: Mapping[str, str]
    spent: tuple[tuple[str, float], ...]
    settings: tuple[tuple[str, str, str], ...]
    epochs: tuple[EpochLine, ...]


def keys_view(service: Service) -> KeysView:
    """Read keys and settings."""
    keys = tuple(service.keys.all())
    epochs = []
    for name, cascade in service.cascades.items():
        for epoch in service.trail.epochs(name):
            settings = json.loads(epoch.settings)
            epochs.append(
                EpochLine(
                    cascade=name,
                    epoch=epoch.epoch,
                    began=epoch.began,
                    settings=tuple((field, json.dumps(value)) for field, value in settings.items()),
                    present=epoch.epoch == cascade.epoch,
                )
            )
    return KeysView(
        keys=keys,
        scopes={scope: SCOPE_MEANINGS[scope] for scope in SCOPES},
        spent=tuple((key.id, service.spending.spent(f"key:{key.id}")) for key in keys),
        settings=tuple(_settings(service)),
        epochs=tuple(epochs),
    )


def _settings(service: Service) -> list[tuple[str, str, str]]:
    server = service.config.server
    rows = [("server", "listen", f"{server.host}:{server.port}")]
    # A PostgreSQL URL may hold a password: its kind is enough.
    rows.append(("server", "store", server.store.partition(":")[0]))
    for field in (
        "keep", "keep_days", "flush_seconds", "store_away", "max_body", "body_seconds",
        "header_seconds", "drain_seconds", "max_requests", "public_url", "log_level",
        "opentelemetry",
    ):  # fmt: skip
        rows.append(("server", field, _shown(getattr(server, field))))
    for name, cascade in service.cascades.items():
        config = cascade.config
        for field in (
            "mode", "sample", "mistake_cost", "comparator", "segment_by", "sticky", "max_segments",
            "full_run_rate", "on_failure", "comparison_budget", "policy", "confidence", "reading",
            "abstentions",
        ):  # fmt: skip
            rows.append((name, field, _shown(getattr(config, field))))
        if cascade.kept_mode is not None:
            rows.append((name, "mode in use", f"{cascade.kept_mode}, set while the service ran"))
        rows.append((name, "run_to", config.stage_names[config.run_to]))
        for stage in config.stages:
            where = stage.upstream.base_url if stage.upstream is not None else "through the API"
            priced = stage.price
            price = f"{priced.input:g} / {priced.output:g} per million" if priced else stage.cost
            rows.append((name, f"stage {stage.name}", f"{where}, {price}"))
    return rows


def _shown(value: object) -> str:
    """A setting as the file would say it; numbers without what nobody would write."""
    if value is None:
        return "not set"
    return f"{value:g}" if isinstance(value, float) else str(value)
