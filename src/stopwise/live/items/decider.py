"""Decides live rounds per item, counts them, and makes its rule again from time to time."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path as Path_
from typing import Any, NamedTuple

import numpy as np

from stopwise.checks import StopwiseError, fail
from stopwise.costs import Costs
from stopwise.live.comparing.reader import Reader
from stopwise.live.counters.pairs import added_by, pair_list
from stopwise.live.items.path import Path, codes_of
from stopwise.live.round import Round
from stopwise.policies.per_item.learning import Learned
from stopwise.policies.per_item.rule import Decision, Rule
from stopwise.policies.per_item.situation import SituationPolicy
from stopwise.situations.observations import MOST_STAGES, NOT_CALLED, Observations
from stopwise.situations.transitions import Transitions

MOST_LABELS = 2000
"""Different labels that are told apart; those of free text beyond are not."""


class _Finished(NamedTuple):
    """A round that has ended and is still to be counted."""

    codes: list[int]
    confidences: list[float]
    full: bool


class ItemDecider:
    """Asked after each stage whether to stop there. Safe to use from many threads.

    Args:
        policy: makes rules from what is counted, and says how often full runs are made.
        stages: their names.
        costs: what stages and mistakes cost.
        reader: compares outputs.
        rule: one to begin with, fitted on a log; its bins are kept, its counts are added to.
    """

    def __init__(
        self,
        policy: SituationPolicy,
        stages: tuple[str, ...],
        costs: Costs,
        reader: Reader,
        rule: Rule | None = None,
    ) -> None:
        if len(stages) > MOST_STAGES:
            raise fail("stages", len(stages), f"at most {MOST_STAGES} for a per-item policy")
        if reader.takes_time:
            raise StopwiseError(
                f"policy {policy.name}: got a comparator that takes its time, but need one that"
                " answers at once: it is asked after every stage"
            )
        self.policy = policy
        self._reader = reader
        self._costs = costs
        self._lock = threading.Lock()
        self._labels: dict[str, int] = {}
        self._finished: list[_Finished] = []
        self._learned = Learned(policy, stages, costs)
        if rule is not None:
            self.start_from(rule)
        self._wait = self._learned.until_next()

    def start_from(self, rule: Rule) -> None:
        """Take over the bins and counts of a rule; it decides from the first round on."""
        if rule.stages != self._learned.stages:
            raise fail("rule", list(rule.stages), f"a rule of {list(self._learned.stages)}")
        learned = self._learned
        learned.counts = Transitions.from_dict(rule.counts.to_dict())  # the rule's own stay as is
        learned.settled = True
        learned.round = max(learned.round, rule.counts.rounds)
        learned.rule = Rule(rule.stages, learned.counts, self._costs, rule.reference, rule.trust)

    # ---- deciding -----------------------------------------------------------------------------

    def begin(self, round: Round, uniform: float, rate: float = 0.0) -> None:
        """Say whether a round is a full run, before its first stage is called.

        Args:
            uniform: the round's random number.
            rate: share of rounds that are full runs in any case.
        """
        number = max(self._learned.round, round.number)
        chance = self.policy.full_run_probability(number, self._costs)
        round.full_chance = rate + (1 - rate) * chance
        round.full_run = uniform < round.full_chance
        round.looks = True
        round.path = Path()

    def stops(self, round: Round) -> bool:
        """Whether a round stops after the stages it has called."""
        self._walk(round)
        return round.rule_depth is not None and not round.full_run

    def conclude(self, round: Round, *, enforced: bool) -> None:
        """Settle with which probability a round went as deep as it did, before it is written."""
        self._walk(round)
        last = len(self._learned.stages) - 1
        if not enforced:
            # Nothing was decided by its outputs: whatever it is told, it runs on.
            round.full_run = len(round.outputs) == last + 1
            if round.rule_depth is not None:
                round.advised, round.advised_probability = round.rule_depth, 1 - round.full_chance
        elif round.full_run:
            early = round.rule_depth is not None and round.rule_depth < last
            round.probability = round.full_chance if early else 1.0
            round.full_run = len(round.outputs) == last + 1
        elif round.rule_depth is not None and round.rule_depth < last:
            round.probability = 1 - round.full_chance

    def _walk(self, round: Round) -> None:
        """Follow a round to its newest output; note where the rule stops first."""
        path = round.path
        assert path is not None
        rule, counts = self._learned.rule, self._learned.counts
        binning = None if counts is None else counts.binning
        last = len(self._learned.stages) - 1
        while len(path.groups) < len(round.outputs):
            stage = len(path.groups)
            sure = None
            if round.confidences is not None and stage < len(round.confidences):
                sure = round.confidences[stage]
            cell = 0
            if binning is not None and binning.features:
                cell = binning.cell({"segment": round.segment})
            key = path.extend(binning, round.outputs[stage], sure, cell, self._differ(round, stage))
            if round.rule_depth is None:
                # Before there is a rule, a round that is no full run is one that cannot pay.
                known = rule is not None and key >= 0
                if stage == last or (rule.stops(stage, key) if known and rule else True):
                    round.rule_depth = stage

    def _differ(self, round: Round, stage: int) -> Any:
        """How the comparator sees the outputs so far; None where equal outputs are equal."""
        if self._reader.plain or stage == 0:
            return None
        found = self._reader.compare(round.outputs[: stage + 1])
        names = pair_list(stage + 1)
        pairs = {
            names[pair]: bool(differs)
            for pair, differs in added_by(found.answered, found.disagreed, found.undecided).pairs
        }
        return lambda i, j: pairs.get((i, j), True)

    # ---- counting -----------------------------------------------------------------------------

    def count(self, round: Round) -> None:
        """Take what a round saw; called once, when it has ended."""
        path = round.path
        if path is None or not path.groups:
            return
        sure = list(round.confidences or ())
        sure += [None] * (len(path.groups) - len(sure))
        with self._lock:
            codes = codes_of(path.texts, path.groups, self._labels, MOST_LABELS)
            values = [float("nan") if one is None else float(one) for one in sure]
            self._finished.append(_Finished(codes, values, round.full_run))
            if len(self._finished) >= self._wait:
                self._count()

    def _count(self) -> None:
        """Count what has ended and make the rule again; the lock is held."""
        if self._finished:
            rows, full = self._rows()
            self._learned.record(rows, full)
            self._finished = []
        self._learned.refresh()
        self._wait = self._learned.until_next()

    def _rows(self) -> tuple[Observations, Any]:
        stages = len(self._learned.stages)
        codes = np.full((len(self._finished), stages), NOT_CALLED, dtype=np.int64)
        confidences = np.full((len(self._finished), stages), np.nan)
        for at, one in enumerate(self._finished):
            codes[at, : len(one.codes)] = one.codes
            confidences[at, : len(one.confidences)] = one.confidences
        labels = list(self._labels)
        if len(labels) >= MOST_LABELS:  # codes beyond stand for rare ones, by their group
            labels += [f"\x00rare {at}" for at in range(stages)]
        full = np.asarray([one.full for one in self._finished], dtype=np.bool_)
        return Observations(tuple(labels), codes, confidences), full

    # ---- reading and keeping ------------------------------------------------------------------

    @property
    def counts(self) -> Transitions | None:
        """What has been counted so far; None before the first bins are cut."""
        with self._lock:
            if self._finished and self._learned.counts is not None:
                self._count()
            return self._learned.counts

    def explain(self, round: Round) -> list[Decision]:
        """What the rule says of each situation that a round went through."""
        rule = self._learned.rule
        if not isinstance(rule, Rule):
            return []
        keys = [] if round.path is None else round.path.keys[: len(self._learned.stages) - 1]
        return [rule.decide(stage, key) for stage, key in enumerate(keys)]

    def to_form(self) -> dict[str, Any] | None:
        """What a snapshot holds; None before the first bins are cut."""
        counts = self.counts
        return None if counts is None else json.loads(json.dumps(counts.to_dict()))

    def restore(self, form: Mapping[str, Any] | None) -> None:
        """Go on from what `to_form` gave."""
        if form is None:
            return
        counts = Transitions.from_dict(form)
        with self._lock:
            self._finished = []
            self._learned.counts, self._learned.round = counts, counts.rounds
            self._learned.settled = True
            self._learned.refresh()
            self._wait = self._learned.until_next()


def read_rule(given: Rule | str | Path_ | None) -> Rule | None:
    """A rule, or the one in a file that `stopwise fit` wrote."""
    if given is None or isinstance(given, Rule):
        return given
    if not isinstance(given, str | Path_):
        raise fail("rule", given, "a Rule or the file that stopwise fit wrote")
    try:
        text = Path_(given).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StopwiseError(f"rule {given}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StopwiseError(f"rule {given}: cannot be read ({error})") from None
    return Rule.from_json(text)
