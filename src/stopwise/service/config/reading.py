"""From a TOML file to a `Config`, or one line that says what is wrong with it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from stopwise.abstentions import ABSTENTIONS, Abstentions, as_abstentions
from stopwise.checks import StopwiseError, fail, one_among, parse_toml
from stopwise.logs.settings import READINGS
from stopwise.openai.comparators import parse_comparator
from stopwise.policies.per_item.policy import PerItem
from stopwise.policies.per_item.situation import ItemPolicy
from stopwise.policies.registry import make_policy
from stopwise.service.config.forms import (
    CONFIDENCES,
    MODES,
    CascadeConfig,
    Config,
    Keep,
    LogLevel,
    Price,
    ServerConfig,
    StageConfig,
    StandIn,
    Sticky,
    StoreAway,
    Upstream,
)
from stopwise.service.config.prices import known_price
from stopwise.service.config.tables import LONGEST, NAME, NAME_ACCEPTED, Table
from stopwise.situations.observations import MOST_STAGES
from stopwise.storage import as_path, read_whole


def read_config(path: str | Path) -> Config:
    """Read and check a configuration file."""
    path = as_path("configuration", path)
    form = parse_toml(f"{path}", read_whole(path))
    try:
        return config_of(form, path.parent)
    except StopwiseError as error:
        raise StopwiseError(f"{path}: {error}") from None


def config_of(form: Mapping[str, Any], folder: Path = Path()) -> Config:
    """Check what a file holds.

    >>> stages = [{"name": "small", "cost": 0.1}, {"name": "large", "cost": 1.0}]
    >>> config = config_of({"cascades": {"triage": {"mistake_cost": 5, "stages": stages}}})
    >>> config.cascades["triage"].stage_names, config.server.port
    (('small', 'large'), 8600)
    """
    table = Table("file", form)
    server = _server(Table("server", table.value("server", {})))
    cascades = {}
    for name, part in Table("cascades", table.value("cascades", {}))._form.items():
        cascades[name] = _cascade(name, part)
    embeddings = {}
    for name, part in Table("embeddings", table.value("embeddings", {}))._form.items():
        _checked_name("embeddings", name)
        if name in cascades:
            raise fail("embeddings", name, "a name that no cascade has")
        embeddings[name] = _stage(Table(f"embeddings.{name}", part), _EMBEDDED, name)
    table.done()
    if not cascades:
        raise StopwiseError("cascades: missing; need at least one table [cascades.NAME]")
    return Config(server, cascades, embeddings, folder)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _checked_name(where: str, name: str) -> str:
    if not NAME.fullmatch(name):
        raise fail(where, name, NAME_ACCEPTED)
    return name


def _server(table: Table) -> ServerConfig:
    usual = ServerConfig()
    accepted = "an address and a port, such as 127.0.0.1:8600"
    listen = table.text("listen", f"{usual.host}:{usual.port}", accepted)
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    host = usual.host if host == "localhost" else host  # the server takes numbers, no names
    if not _is_address(host) or not port.isdigit() or not int(port) < 65536:
        raise fail("server.listen", listen, accepted)
    store = table.text("store", usual.store)
    if not store.startswith(("sqlite:///", "postgresql://", "postgres://")):
        # A PostgreSQL URL may hold a password, so the value is not shown.
        raise StopwiseError(
            "server.store: need sqlite:///file.db or postgresql://user@host/database"
        )
    config = ServerConfig(
        host=host,
        port=int(port),
        store=store,
        keep=table.choice("keep", usual.keep, get_args(Keep)),
        keep_days=table.number("keep_days", usual.keep_days, above=True, most=36500.0),
        flush_seconds=table.number("flush_seconds", usual.flush_seconds, above=True, most=10.0),
        store_away=table.choice("store_away", usual.store_away, get_args(StoreAway)),
        max_body=table.whole("max_body", usual.max_body, least=1000),
        body_seconds=table.seconds("body_seconds", usual.body_seconds),
        header_seconds=table.seconds("header_seconds", usual.header_seconds),
        drain_seconds=table.number("drain_seconds", usual.drain_seconds, most=LONGEST),
        max_requests=table.whole("max_requests", usual.max_requests, least=1),
        public_url=table.url("public_url") if table.has("public_url") else None,
        log_level=table.choice("log_level", usual.log_level, get_args(LogLevel)),
        opentelemetry=table.text("opentelemetry", usual.opentelemetry),
    )
    table.value("public_url", None)
    table.done()
    return config


def _cascade(name: str, form: Any) -> CascadeConfig:
    where = f"cascades.{_checked_name('cascades', name)}"
    table = Table(where, form)
    usual = CascadeConfig(name, (), 1.0, 0)
    typical = Table(f"{where}.typical_tokens", table.value("typical_tokens", {}))
    tokens = (typical.whole("input", 500), typical.whole("output", 200))
    typical.done()
    given = table.value("stages", accepted="two or more tables [[...stages]], cheapest first")
    if not isinstance(given, list) or len(given) < 2:
        raise fail(f"{where}.stages", given, "two or more stages, cheapest first")
    stages = tuple(
        _stage(Table(f"{where}.stages[{at}]", part), tokens) for at, part in enumerate(given)
    )
    names = [stage.name for stage in stages]
    if len(set(names)) != len(names):
        raise fail(f"{where}.stages", names, "a different name for each stage")
    with_url = [stage.upstream is not None for stage in stages]
    if any(with_url) and not all(with_url):
        raise StopwiseError(
            f"{where}.stages: either every stage has a base_url, or none has (then their outputs"
            " come through the API)"
        )
    comparator = table.text("comparator", usual.comparator)
    policy = table.text("policy", usual.policy)
    per_item = _is_per_item(f"{where}.policy", policy)
    segment_by = table.text("segment_by", None)
    if segment_by is not None:
        kind, _, header = segment_by.partition(":")
        if kind != "header" or not NAME.fullmatch(header):
            raise fail(f"{where}.segment_by", segment_by, "header:NAME-OF-A-HEADER")
        segment_by = header.lower()
    for field, why in _ELSEWHERE.items():
        if table.has(field):
            raise StopwiseError(f"{where}.{field}: {why}")
    config = CascadeConfig(
        name=name,
        stages=stages,
        mistake_cost=table.number("mistake_cost", above=True),
        run_to=names.index(table.choice("run_to", names[-1], names)),
        mode=table.choice("mode", usual.mode, MODES),
        sample=table.number("sample", usual.sample, most=1.0),
        comparator=comparator,
        segment_by=segment_by,
        sticky=table.choice("sticky", usual.sticky, get_args(Sticky)),
        max_segments=table.whole("max_segments", usual.max_segments, least=1),
        full_run_rate=table.number("full_run_rate", usual.full_run_rate, most=1.0),
        on_failure=table.choice("on_failure", usual.on_failure, get_args(StandIn)),
        comparison_budget=table.number("comparison_budget", None, above=True),
        policy=policy,
        reading=table.choice("reading", usual.reading, READINGS),
        abstentions=_abstentions(where, table),
        seed=table.whole("seed", usual.seed),
        confidence=table.choice("confidence", usual.confidence, CONFIDENCES),
        per_item=per_item,
        compare=parse_comparator(f"{where}.comparator", comparator),
    )
    table.done()
    _check_per_item(where, config)
    _check_abstentions(where, config)
    return config


def _abstentions(where: str, table: Table) -> Abstentions:
    given = table.value("abstentions", "leave out")
    try:
        return as_abstentions(given)
    except StopwiseError:
        raise fail(f"{where}.abstentions", given, one_among(given, ABSTENTIONS)) from None


def _check_abstentions(where: str, config: CascadeConfig) -> None:
    """Refuse what does not go with going on, or with the policy."""
    if config.per_item and config.abstentions != "leave out":
        raise fail(
            f"{where}.abstentions",
            config.abstentions,
            f"leave out with the policy {config.policy}: to it an abstention is a situation like"
            " any other, from which it learns whether to go on",
        )
    if config.goes_on and config.run_to != len(config.stages) - 1:
        raise fail(
            f"{where}.run_to",
            config.stage_names[config.run_to],
            f"{config.stage_names[-1]} with abstentions = {config.abstentions!r}: in shadow and"
            " advise the answer is that of run_to, so that nothing can go on after it",
        )


def _is_per_item(where: str, policy: str) -> bool:
    """Whether a policy decides after each stage, of those that can be asked here."""
    made = make_policy(policy)
    if isinstance(made, ItemPolicy) and not isinstance(made, PerItem):
        raise fail(
            where,
            policy,
            "per-item, or a policy that draws the depth before the first call, such as uss-ts-jump"
            " (stopwise replay runs this one)",
        )
    return isinstance(made, PerItem)


def _check_per_item(where: str, config: CascadeConfig) -> None:
    """Refuse settings that do not go with how depths are decided."""
    if not config.per_item:
        if config.confidence != "none":
            accepted = "none, unless the policy decides per item"
            raise fail(f"{where}.confidence", config.confidence, accepted)
        return
    how = f"with the policy {config.policy}"
    if len(config.stages) > MOST_STAGES:
        raise fail(f"{where}.stages", len(config.stages), f"at most {MOST_STAGES} {how}")
    if config.sticky != "none":
        raise fail(
            f"{where}.sticky",
            config.sticky,
            f"none {how}: which stage answers depends on each answer, not on the conversation",
        )
    if config.run_to != len(config.stages) - 1:
        raise fail(
            f"{where}.run_to",
            config.stage_names[config.run_to],
            f"{config.stage_names[-1]} {how}: its rule is learned from requests that all stages"
            " answered",
        )
    if config.compare.agree is not None:
        raise fail(
            f"{where}.comparator",
            config.comparator,
            f"one without a tolerance {how}: its situations are groups of equal answers",
        )


# Settings of other rooms: refused by name, with where they are to be had.
_ELSEWHERE = {
    "rule": 'the service learns its rule per item itself (policy = "per-item") and takes none'
    " from a file; a live cascade does, as Cascade(rule=...)",
    "calls": "the service calls the stages up to the depth that was drawn; `stopwise analyze"
    " --calls alone` judges its log for stages called alone",
    "baseline": "what is served today is run_to",
    "promise": "the service keeps no promise of a share of answers; `stopwise analyze --agree`"
    " makes one on its log",
}


_EMBEDDED = (500, 0)
"""Tokens of a typical text that is embedded."""


def _stage(table: Table, tokens: tuple[int, int], known_as: str | None = None) -> StageConfig:
    """A stage; where it is already known by a name, one that has an upstream."""
    name = table.name("name") if known_as is None else known_as
    upstream = _upstream(table) if known_as or table.has("base_url") else None
    cost = table.number("cost", None)
    price = None
    if table.has("price"):
        inner = Table(f"{table.where}.price", table.value("price"))
        price = Price(
            inner.number("input"),
            inner.number("output", 0.0) if known_as else inner.number("output"),
            inner.number("cached_input", None),
        )
        inner.done()
    if price is not None and cost is not None:
        raise StopwiseError(f"{table.where}: give price or cost, not both")
    if price is None and cost is None:
        if upstream is None:
            raise StopwiseError(f"{table.where}.cost: missing; need the cost of one call")
        price = known_price(table.where, upstream.model, upstream.base_url)
    for known in ("base_url", "model", "api_key", "timeout", "retry_seconds", "price"):
        table.value(known, None)
    table.done()
    if cost is None:
        assert price is not None
        cost = price.of(*tokens)
    return StageConfig(name, cost, price, upstream)


def _upstream(table: Table) -> Upstream:
    return Upstream(
        base_url=table.url("base_url"),
        model=table.text("model", accepted="the model name that the upstream knows"),
        api_key=table.secret("api_key"),
        timeout=table.seconds("timeout", 60.0),
        retry_seconds=table.number("retry_seconds", 10.0, most=LONGEST),
    )
