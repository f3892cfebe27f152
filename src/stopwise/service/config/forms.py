"""The configuration as objects: nothing here reads a file or refuses a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from stopwise.abstentions import Abstentions
from stopwise.live import Comparator
from stopwise.live.settings import Mode as Mode
from stopwise.openai.logprobs import How
from stopwise.policies.registry import DEFAULT_POLICY

MODES: tuple[Mode, ...] = get_args(Mode)
FromFile = Literal["file"]
FROM_FILE: FromFile = "file"
"""In the place of a mode: that of the file, also after the file was changed."""
CONFIDENCES = ("none", *get_args(How))
Keep = Literal["nothing", "disagreements", "all"]
Sticky = Literal["none", "conversation"]
StoreAway = Literal["answer", "refuse"]
StandIn = Literal["shallower", "deeper"]
"""Which stages are asked where one fails."""
LogLevel = Literal["debug", "info", "warning", "error"]


class Secret:
    """A text that never shows itself in a log, an error or a repr.

    >>> Secret("sk-123")
    Secret(***)
    >>> f"{Secret('sk-123')}"
    '***'
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself: for the header of an upstream call and nothing else."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"


@dataclass(frozen=True)
class Price:
    """What tokens cost, per million, in the unit of the mistake cost.

    >>> Price(1.0, 4.0).of(1_000_000, 250_000)
    2.0
    """

    input: float
    output: float
    cached_input: float | None = None

    def of(self, input_tokens: int, output_tokens: int, cached: int = 0) -> float:
        """The cost of one call; cached tokens are a part of the input tokens."""
        cached = min(cached, input_tokens)
        reduced = self.input if self.cached_input is None else self.cached_input
        fresh = input_tokens - cached
        return (fresh * self.input + cached * reduced + output_tokens * self.output) / 1e6


@dataclass(frozen=True)
class Upstream:
    """Where an OpenAI-compatible server is; only the file can name one.

    Attributes:
        retry_seconds: how long a client waits at most for a busy upstream that says when to ask
            again; 0 if another stage is to answer at once.
    """

    base_url: str
    model: str
    api_key: Secret | None = None
    timeout: float = 60.0
    retry_seconds: float = 10.0


@dataclass(frozen=True)
class StageConfig:
    """One stage: a model behind a URL, or a stage that callers run themselves.

    Attributes:
        upstream: None for a stage whose outputs come through the API.
        price: per million tokens; None where `cost` is known per call.
        cost: of one call; for a priced stage, its cost at the typical number of tokens.
    """

    name: str
    cost: float
    price: Price | None = None
    upstream: Upstream | None = None

    def estimate(self, usual: float, size: int) -> float:
        """What a call may cost, before it is made, where nothing says how much at most.

        Args:
            usual: what calls of this stage cost on average.
            size: of the request in bytes: about four make a token.

        >>> StageConfig("large", 0.1, Price(10.0, 40.0)).estimate(0.1, 4_000_000)
        10.0
        """
        if self.price is None:
            return max(usual, self.cost)
        return max(usual, self.price.of(size // 4, 0))

    def most(self, size: int, tokens: int | None) -> float | None:
        """What a call can cost at most; None where nothing says so.

        Args:
            size: of the request in bytes: a token of a text has one at least.
            tokens: how long all its answers together may be (`max_tokens`); None if not said.

        >>> StageConfig("large", 0.1, Price(10.0, 40.0)).most(1000, 500)
        0.03
        """
        if self.price is None:
            return self.cost
        return None if tokens is None else self.price.of(size, tokens)

    def unreported(self, size: int, tokens: int | None) -> float:
        """What a call is taken to have cost whose usage nobody told: no more than it can have.

        Args:
            size, tokens: as in `most`.

        >>> large = StageConfig("large", 0.1, Price(10.0, 40.0))
        >>> large.unreported(1000, 500), large.unreported(1000, None)
        (0.03, 0.1)
        """
        most = self.most(size, tokens)
        return self.cost if most is None else min(self.cost, most)


@dataclass(frozen=True)
class CascadeConfig:
    """One cascade. Its name is the model name that clients send.

    Attributes:
        abstentions: what it means that a stage gives no answer; see `stopwise.abstentions`.
        per_item: whether the policy decides after each stage.
        confidence: per item, how it is read from log-probabilities; "none" if they are not.
    """

    name: str
    stages: tuple[StageConfig, ...]
    mistake_cost: float
    run_to: int
    mode: Mode = "shadow"
    sample: float = 0.05
    comparator: str = "tool_calls | folded"
    segment_by: str | None = None
    sticky: Sticky = "none"
    max_segments: int = 50
    full_run_rate: float = 0.01
    on_failure: StandIn = "deeper"
    comparison_budget: float | None = None
    policy: str = DEFAULT_POLICY
    reading: str = "auto"
    abstentions: Abstentions = "leave out"
    seed: int = 0
    confidence: How | Literal["none"] = "none"
    per_item: bool = False
    compare: Comparator = field(default_factory=lambda: Comparator("exact"), compare=False)

    @property
    def stage_names(self) -> tuple[str, ...]:
        """The names of the stages, cheapest first."""
        return tuple(stage.name for stage in self.stages)

    @property
    def served(self) -> bool:
        """Whether every stage has an upstream, so that chat completions can be answered."""
        return all(stage.upstream is not None for stage in self.stages)

    @property
    def goes_on(self) -> bool:
        """Whether the next stage is called where one gives no answer."""
        return self.abstentions == "go on"

    @property
    def priced(self) -> bool:
        """Whether costs of calls differ, so that running means enter the rule."""
        return any(stage.price is not None for stage in self.stages)


@dataclass(frozen=True)
class ServerConfig:
    """Where to listen, what to keep, and how much of anything is accepted."""

    host: str = "127.0.0.1"
    port: int = 8600
    store: str = "sqlite:///stopwise.db"
    keep: Keep = "disagreements"
    keep_days: float = 30.0
    flush_seconds: float = 0.1
    store_away: StoreAway = "answer"
    max_body: int = 10_000_000
    body_seconds: float = 30.0
    header_seconds: float = 10.0
    drain_seconds: float = 30.0
    max_requests: int = 1000
    public_url: str | None = None
    log_level: LogLevel = "info"
    opentelemetry: str = "none"


@dataclass(frozen=True)
class Config:
    """A whole configuration file.

    Attributes:
        folder: of the file; a relative SQLite path starts there.
        embeddings: models for `/v1/embeddings`, by the name that clients send.
    """

    server: ServerConfig
    cascades: Mapping[str, CascadeConfig]
    embeddings: Mapping[str, StageConfig] = field(default_factory=dict)
    folder: Path = Path()
