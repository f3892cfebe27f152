"""A cascade while it runs: its learner, its mode, the depth of every request."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stopwise.evidence import ABSTAINED
from stopwise.live import Comparator, Drift, Learner
from stopwise.service.cascades.beside import RowsBeside
from stopwise.service.cascades.counting import (
    ComparedAnswers,
    compare,
    count_round,
    known_calls,
)
from stopwise.service.cascades.drawing import RequestDraws, draw, new_id, with_full_runs
from stopwise.service.cascades.evidence_stores import epoch_of, evidence_store
from stopwise.service.cascades.forms import Finished, RequestDecision, Why
from stopwise.service.cascades.items import ItemRequests
from stopwise.service.cascades.spending import Spending
from stopwise.service.config.forms import CascadeConfig, Mode
from stopwise.service.database.trail import Trail
from stopwise.service.database.writing import Entry

OTHER = "other"


class RunningCascade:
    """One cascade of a service.

    Args:
        config: what the file says of it.
        store, folder: where evidence is kept.
        trail: modes and epochs.
        spending: what was spent today.
        keep_seconds: how long texts are kept.
    """

    def __init__(
        self,
        config: CascadeConfig,
        store: str,
        folder: Path,
        trail: Trail,
        spending: Spending,
        keep_seconds: float = 0.0,
    ) -> None:
        self.config = config
        self.epoch, meaning = epoch_of(config)
        trail.begin_epoch(config.name, self.epoch, json.dumps(meaning, sort_keys=True))
        self.mode: Mode = config.mode
        self.kept_mode: Mode | None = None  # set while the service ran: then the file's is not used
        # The stage of the headline of all (None), and of segments of which it was wanted: renewed
        # now and then.
        self.headlines: dict[str | None, int] = {}
        self._wanted: set[str] = set()
        self._spending = spending
        self._beside = RowsBeside(
            config.name,
            self.epoch,
            shared=not store.startswith("sqlite:///"),
            keep_seconds=keep_seconds,
        )
        self._draws = RequestDraws(trail.secret("sticky"), config.name, config.seed)
        self._lock = threading.Lock()
        self._segments: set[str] = set()
        # Codes of agreeing answers are compared in place of texts, unless a tolerance is not
        # transitive; the label still says by which comparator they came about.
        plain = config.compare.agree is None
        self.learner = Learner(
            {stage.name: stage.cost for stage in config.stages},
            config.policy,
            mistake_cost=config.mistake_cost,
            seed=config.seed,
            comparator=Comparator(config.compare.label, quick=True) if plain else config.compare,
            measured=config.priced,
            drift=Drift(),
            abstentions=config.abstentions,
            store=evidence_store(store, folder, config.name, self.epoch, self._beside),
        )
        decider = self.learner.item_decider
        # What decides requests per item; None where depths are drawn before the first call.
        self.items = (
            None
            if decider is None
            else ItemRequests(
                decider, config.compare, trail.secret("labels"), len(config.stages) - 1
            )
        )

    @property
    def name(self) -> str:
        """The model name that clients send."""
        return self.config.name

    def segment(self, name: str) -> str:
        """The segment that evidence goes to: this one, or the common one if there are too many."""
        with self._lock:
            # The learner knows a segment once a round of it was counted. Those that were let in
            # since are remembered here: a flood would be through before the first one counts.
            self._segments.update(self.learner.segments)
            if name not in self._segments:
                if len(self._segments) >= self.config.max_segments:
                    return OTHER
                self._segments.add(name)
            return name

    def law(self, segment: str) -> list[float]:
        """The law of the depth that enforcing draws from, full runs included.

        Per item nothing is drawn: then, how often the rule stops after each stage.
        """
        if self.items is not None:
            return self.items.law(self.config.full_run_rate)
        return with_full_runs(self.learner.advice(segment), self.config.full_run_rate)

    def decide(
        self,
        segment: str = "",
        conversation: str | None = None,
        features: Mapping[str, Any] | None = None,
        *,
        affordable: bool | None = None,
    ) -> RequestDecision:
        """How deep a request goes.

        Args:
            segment: whose evidence it adds to.
            conversation: that it belongs to, where conversations stay with their model.
            features: per item, what is known of it.
            affordable: whether comparisons may be paid; None for what this replica knows.
        """
        config, mode = self.config, self.mode
        segment = self.segment(segment)
        if mode == "shadow" and self._draws.fresh() >= config.sample:
            return self.uncounted(segment, "not sampled")
        if self._beyond_budget() if affordable is None else not affordable:
            return self.uncounted(segment, "budget")
        if self.items is not None:
            return self._decide_item(self.items, segment, features)
        policy_law = self.learner.advice(segment)
        law = with_full_runs(policy_law, config.full_run_rate)
        sticky = config.sticky == "conversation" and conversation is not None
        uniform = (
            self._draws.of_conversation(conversation)
            if sticky and conversation is not None
            else self._draws.fresh()
        )
        depth, full = draw(policy_law, config.full_run_rate, uniform)
        if mode == "enforce":
            return RequestDecision(
                new_id(), config.name, segment, mode, depth, law[depth], full_run=full
            )
        return RequestDecision(
            new_id(),
            config.name,
            segment,
            mode,
            config.run_to,
            1.0,
            advised=depth,
            advised_probability=law[depth],
            full_run=config.run_to == len(config.stages) - 1,
        )

    def _decide_item(
        self, items: ItemRequests, segment: str, features: Mapping[str, Any] | None
    ) -> RequestDecision:
        """Per item: whether it goes through all stages, or only as far as its answers ask for."""
        config, mode = self.config, self.mode
        last = len(config.stages) - 1
        chance = items.full_chance(config.full_run_rate)
        full = self._draws.fresh() < chance
        enforced = mode == "enforce"
        return RequestDecision(
            new_id(),
            config.name,
            segment,
            mode,
            last,
            1.0 if not enforced else chance if full else 1 - chance,
            # Where the rule would stop is known when the answers are.
            advised=last if full and not enforced else None,
            advised_probability=chance if full and not enforced else None,
            full_run=full or not enforced,
            chance=chance,
            features=features,
        )

    def uncounted(self, segment: str, why: Why, stage: int | None = None) -> RequestDecision:
        """A request that is served by one stage and not compared."""
        if stage is None:
            stage = self.headline(segment) if self.mode == "enforce" else self.config.run_to
        return RequestDecision(
            new_id(), self.config.name, segment, self.mode, stage, 1.0, uncounted=why
        )

    def headline(self, segment: str) -> int:
        """Where an enforced request stops that draws nothing: the stage of the headline.

        By the segment's own evidence, else by that of all; until there is a headline, `run_to`.
        """
        with self._lock:
            self._wanted.add(segment)
        known = self.headlines.get(segment, self.headlines.get(None))
        return self.config.run_to if known is None else known

    def wanted_headlines(self) -> tuple[str, ...]:
        """The segments of which a headline was wanted since this was last asked."""
        with self._lock:
            wanted, self._wanted = self._wanted, set()
        return tuple(sorted(wanted))

    def _beyond_budget(self) -> bool:
        budget = self.config.comparison_budget
        return budget is not None and self._spending.spent(f"comparison:{self.name}") >= budget

    def compare(self, finished: Finished) -> ComparedAnswers | None:
        """Compare the answers of a request; None where nothing is to be learned from it."""
        if finished.decision.uncounted:
            return None
        config = self.config
        return compare(config.compare, known_calls(finished.calls, config.abstentions))

    def is_silent(self, output: Any) -> bool:
        """Whether an output is no answer: an abstention, or what the comparator cannot read."""
        return output is None or next(iter(self.config.compare.keys([output]))) is ABSTAINED

    def goes_on(self, decision: RequestDecision) -> bool:
        """Whether a request goes on to the next stage where one gives no answer."""
        return (
            self.config.goes_on
            and decision.mode == "enforce"
            and decision.uncounted not in ("pinned", "many choices")
        )

    def concluded(self, finished: Finished) -> Finished:
        """A request with what was decided of it; where depths are drawn, that is known before."""
        if self.items is None or finished.decision.chance is None:
            return finished
        return self.items.concluded(finished)

    def count(self, finished: Finished, compared: ComparedAnswers, entry: Entry) -> None:
        """Count a round; the entry is written in the transaction that counts the round."""
        labels = None if self.items is None else self.items.labels(finished.calls, compared.codes)
        count_round(
            self.learner,
            finished,
            compared,
            lambda number: self._beside.expect(number, entry),
            labels,
        )

    def flush(self) -> None:
        """Wait until what was counted is written, or raise why it is not yet."""
        self.learner.flush()
        self._beside.forget()

    def close(self) -> None:
        """Let the learner go."""
        self.learner.close()
