"""What a user tells about a log: one object, from flags, from a TOML file, or from Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

from numpy.typing import ArrayLike

from stopwise.abstentions import Abstentions, as_abstentions
from stopwise.checks import (
    fail,
    finite_number,
    known_names,
    names_fields,
    one_of,
    parse_toml,
    take_plain_numbers,
    whole_number,
)
from stopwise.costs import CALLS, Calls
from stopwise.storage import read_whole

LogLayout = Literal["auto", "wide", "long"]
TrailingBlanks = Literal["not-called", "abstained"]
HeadlineReading = Literal["auto", "certain", "weak-dominance", "estimated", "minimax"]

LAYOUTS: tuple[LogLayout, ...] = get_args(LogLayout)
TRAILING_BLANKS: tuple[TrailingBlanks, ...] = get_args(TrailingBlanks)
READINGS: tuple[HeadlineReading, ...] = get_args(HeadlineReading)


class LogOptions(TypedDict, total=False):
    """The fields of `LogSettings`, as keywords that an editor completes."""

    stages: Sequence[str] | str | None
    costs: Sequence[float] | Mapping[str, float] | ArrayLike | str | None
    mistake_cost: float | None
    segment: str | None
    truth: str | None
    item: str | None
    layout: LogLayout | None
    stage_column: str | None
    output_column: str | None
    cost_column: str | None
    level: float | None
    max_labels: int | None
    trailing_blanks: TrailingBlanks | None
    abstentions: Abstentions | None
    calls: Calls | None
    baseline: str | None
    reading: HeadlineReading | None
    features: Sequence[str] | str | None


@names_fields
@dataclass(frozen=True)
class LogSettings:
    """How to read a log and what its stages and mistakes cost.

    Args:
        stages: names in order, cheapest first: columns of a wide log, values of a long one.
        costs: each stage's own cost; None takes the costs measured in the log.
        mistake_cost: what one wrong answer costs, in the units of the costs; None stands for 1.
        segment: a column; every value of it gets a verdict of its own.
        truth: a column with the right answers, for scoring only.
        item: the column that names items; needed in a long log.
        layout: "wide" (one column per stage), "long" (one row per stage and item), or "auto".
        stage_column: in a long log, the column that names the stage.
        output_column: in a long log, the column of outputs.
        cost_column: in a long log, the column of costs.
        level: probability with which all statements called certain are true together.
        max_labels: more distinct outputs than this are refused as free text.
        trailing_blanks: what blanks at the end of a row are, where no cost tells:
            "not-called" (the cascade stopped before) or "abstained".
        calls: "cascade" if a stage needs those before it, "alone" if each can be called by itself,
            so that it costs what it costs alone; None where it was not said: then both are shown.
        baseline: the stage that savings and changed answers are stated against; by default the one
            named last.
        abstentions: what it means that a stage gives no answer: "go on" (the next stage that
            answers does), "mistake" or "leave out". None where it was not said: then "go on", or
            in a log of live rounds what their learner was given.
        reading: what the first sentence rests on: "certain", "weak-dominance", "estimated" or
            "minimax"; "auto" takes what is certain first, then the estimate.
        features: columns that are known of an item before its first call, for per-item rules.

    >>> LogSettings.of(stages="vader,amazon", costs="0.1,0.5").costs
    (0.1, 0.5)
    """

    stages: tuple[str, ...] | None = None
    costs: tuple[float, ...] | None = None
    mistake_cost: float | None = None
    segment: str | None = None
    truth: str | None = None
    item: str | None = None
    layout: str = "auto"
    stage_column: str = "stage"
    output_column: str = "output"
    cost_column: str = "cost"
    level: float = 0.99
    max_labels: int = 2000
    trailing_blanks: str = "not-called"
    abstentions: Abstentions | None = None
    calls: Calls | None = None
    baseline: str | None = None
    reading: str = "auto"
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        take_plain_numbers(self)
        if self.stages is not None:
            object.__setattr__(self, "stages", _stage_names(self.stages))
        if self.costs is not None:
            object.__setattr__(self, "costs", _costs(self.costs, self.stages))
        if self.features is not None:
            object.__setattr__(self, "features", _feature_names(self.features))
        if self.stages and self.costs is not None and len(self.stages) != len(self.costs):
            raise fail(
                "costs", list(self.costs),
                f"{len(self.stages)} numbers, one for each of {', '.join(self.stages)}",
            )  # fmt: skip
        if self.mistake_cost is not None:
            accepted = "a number above 0: what one wrong answer costs, in the units of the costs"
            if finite_number("mistake_cost", self.mistake_cost, accepted) <= 0:
                raise fail("mistake_cost", self.mistake_cost, accepted)
        level = finite_number("level", self.level, "a number between 0.5 and 1, such as 0.99")
        if not 0.5 <= level < 1:
            raise fail("level", self.level, "a number between 0.5 and 1, such as 0.99")
        whole_number("max_labels", self.max_labels, least=2)
        one_of("layout", self.layout, LAYOUTS)
        one_of("trailing_blanks", self.trailing_blanks, TRAILING_BLANKS)
        one_of("reading", self.reading, READINGS)
        if self.calls is not None:
            one_of("calls", self.calls, CALLS)
        if self.abstentions is not None:
            object.__setattr__(self, "abstentions", as_abstentions(self.abstentions))
        for field in ("segment", "truth", "item", "stage_column", "output_column", "cost_column"):
            value = getattr(self, field)
            if value is not None and not (isinstance(value, str) and value):
                raise fail(field, value, "the name of a column")
        if self.stages and self.baseline is not None:
            one_of("baseline", self.baseline, self.stages)
        if self.truth is not None and self.truth in (self.stages or ()):
            raise fail("truth", self.truth, "a column that is not one of the stages")

    @property
    def no_answer(self) -> Abstentions:
        """What it means that a stage gives no answer: as it was said, or "go on".

        >>> LogSettings().no_answer, LogSettings(abstentions="mistake").no_answer
        ('go on', 'mistake')
        """
        return "go on" if self.abstentions is None else self.abstentions

    @classmethod
    def of(cls, file: str | Path | None = None, **given: Any) -> LogSettings:
        """Settings of a TOML file, where given, with what is given beside it put on top.

        None stands for "not given". Unknown names are refused.

        >>> LogSettings.of(stage=["a", "b"])
        Traceback (most recent call last):
        ...
        stopwise.checks.StopwiseError: settings: unknown field 'stage'; did you mean 'stages'?
        """
        fields = [field.name for field in dataclasses.fields(cls)]
        values: dict[str, Any] = {}
        if file is not None:
            values = parse_toml(f"settings {file}", read_whole(file, "settings"))
        known_names(f"settings {file}" if file is not None else "settings", values, fields)
        known_names("settings", given, fields)
        values.update({name: value for name, value in given.items() if value is not None})
        return cls(**values)


def settings_from(settings: LogSettings | None, given: Mapping[str, Any]) -> LogSettings:
    """Settings given whole or by name, not both.

    >>> settings_from(None, {"mistake_cost": 2}).mistake_cost
    2
    """
    if settings is None:
        return LogSettings.of(**given)
    if given:
        raise fail("settings", sorted(given), "either settings or single fields, not both")
    return settings


Settings = LogSettings
"""The name of `LogSettings` before version 0.3."""


def _stage_names(stages: Any) -> tuple[str, ...]:
    accepted = "at least two different names, cheapest first, such as vader,amazon,google"
    if hasattr(stages, "tolist"):
        stages = stages.tolist()
    if isinstance(stages, str):
        stages = [name.strip() for name in stages.split(",")]
    if not isinstance(stages, Sequence) or not all(isinstance(s, str) and s for s in stages):
        raise fail("stages", stages, accepted)
    if len(stages) < 2 or len(set(stages)) != len(stages):
        raise fail("stages", list(stages), accepted)
    return tuple(stages)


def _feature_names(features: Any) -> tuple[str, ...]:
    if isinstance(features, str):
        features = [name.strip() for name in features.split(",")]
    known = isinstance(features, Sequence) and all(isinstance(f, str) and f for f in features)
    if not known or not features or len(set(features)) != len(features):
        raise fail("features", features, "different columns of the log, such as length,language")
    return tuple(features)


def _costs(costs: Any, stages: tuple[str, ...] | None) -> tuple[float, ...]:
    """Costs as text, as a list or array, or by stage name; a series may have names too."""
    accepted = "each stage's own cost, 0 or more, such as 0.001,0.75,2.5"
    index: Any = getattr(costs, "index", None)
    names = index.tolist() if hasattr(index, "tolist") else []
    if any(isinstance(name, str) for name in names):
        costs = dict(zip(names, costs.tolist(), strict=True))
    if isinstance(costs, Mapping):
        if stages is None or set(costs) != set(stages):
            raise fail("costs", dict(costs), f"one cost by name for each of {stages or 'stages'}")
        costs = [costs[stage] for stage in stages]
    for listed in ("tolist", "to_list"):  # arrays and series of pandas; series of polars
        if hasattr(costs, listed):
            costs = getattr(costs, listed)()
    if isinstance(costs, str):
        parts = [part.strip() for part in costs.split(",")]
        try:
            costs = [float(part) for part in parts]
        except ValueError:
            raise fail("costs", costs, accepted) from None
    if not isinstance(costs, Sequence):
        raise fail("costs", costs, accepted)
    values = tuple(finite_number(f"costs[{at}]", cost, accepted) for at, cost in enumerate(costs))
    for at, value in enumerate(values):
        if value < 0:
            raise fail(f"costs[{at}]", value, accepted)
    return values
