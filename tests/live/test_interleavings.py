"""Random interleavings of rounds, failures, abstentions, saves and loads, with a model beside."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from stopwise import Evidence
from stopwise.live import Learner, RoundLog, SqliteStore, read_rounds

STAGES = {"a": 0, "b": 0.2, "c": 0.1}
OUTPUT = st.sampled_from(["x", "y", None])
PICK = st.integers(0, 99)


class Interleavings(RuleBasedStateMachine):
    """The model is a list of finished prefixes; the learner must agree with it at all times."""

    @initialize(
        kind=st.sampled_from(["log", "sqlite", "snapshot"]),
        policy=st.sampled_from(["uss-ts", "uss-ucb", "fixed", "uss-ts-literal"]),
        seed=st.integers(0, 1000),
    )
    def start(self, kind, policy, seed):
        self.folder = Path(tempfile.mkdtemp())
        self.kind, self.policy, self.seed = kind, policy, seed
        self.learner = self.build()
        self.open = []
        self.finished: dict[str, list[Any]] = {"": [], "s": []}
        self.saved = None

    def build(self):
        store: Any = None
        if self.kind == "log":
            store = RoundLog(self.folder / "rounds.jsonl", keep_outputs=True)
        elif self.kind == "sqlite":
            store = SqliteStore(self.folder / "rounds.db", writer="w", keep_outputs=True)
        return Learner(STAGES, self.policy, seed=self.seed, store=store)

    def finish(self, round, prefix):
        self.open = [entry for entry in self.open if entry[0] is not round]
        self.finished[round.segment].append(prefix)

    @rule(segment=st.sampled_from(["", "", "s"]))
    def begin(self, segment):
        round = self.learner.begin(segment)
        assert 0 < round.probability <= 1 + 1e-12
        self.open.append((round, []))

    @precondition(lambda self: self.open)
    @rule(pick=PICK, output=OUTPUT, fails=st.booleans())
    def tell(self, pick, output, fails):
        round, prefix = self.open[pick % len(self.open)]
        if len(prefix) > round.depth:
            outcome = round.end()
            given = [one for one in prefix if one is not None]
            assert outcome.answer == (given[-1] if given else None)
            self.finish(round, prefix)
        elif fails and output == "y":
            round.fail(RuntimeError())
            prefix.append(None)
        else:
            round.observe(output)
            prefix.append(output)

    @precondition(lambda self: self.open)
    @rule(pick=PICK)
    def abandon(self, pick):
        round, prefix = self.open[pick % len(self.open)]
        round.abandon()
        self.finish(round, prefix)

    @precondition(lambda self: self.open)
    @rule(pick=PICK)
    def forget(self, pick):
        round, prefix = self.open[pick % len(self.open)]
        self.finish(round, prefix)

    @precondition(lambda self: self.kind == "snapshot")
    @rule()
    def save(self):
        self.learner.save(self.folder / "s.json")
        self.saved = {name: list(prefixes) for name, prefixes in self.finished.items()}

    @precondition(lambda self: self.kind != "snapshot" or self.saved is not None)
    @rule()
    def restart(self):
        """The process dies: open rounds are gone, and what came after the last save."""
        for round, _ in self.open:
            round.ended = True
        self.open = []
        if self.kind == "snapshot":
            self.finished = {name: list(prefixes) for name, prefixes in self.saved.items()}
            self.learner = self.build()
            self.learner.load(self.folder / "s.json")
            return
        assert self.learner.rounds >= 0  # rounds that were forgotten are counted before it dies
        decisions = self.next_decisions() if not self.open else None
        self.learner.close()
        self.learner = self.build()
        again = self.next_decisions()
        assert [one[0] for one in decisions] == [one[0] for one in again]

    def next_decisions(self):
        p = self.learner.probabilities()
        return [(round(share, 9),) for share in p]

    @invariant()
    def evidence_is_that_of_the_model(self):
        if not hasattr(self, "learner"):
            return
        for segment, prefixes in self.finished.items():
            assert self.learner.evidence(segment) == Evidence.from_prefixes(3, prefixes)
        assert self.learner.rounds == sum(map(len, self.finished.values()))

    @invariant()
    def evidence_is_what_the_log_says(self):
        if getattr(self, "kind", "snapshot") == "snapshot":
            return
        self.learner.flush()  # rounds that were forgotten are written, but nobody waits for them
        if self.kind == "log":
            records = list(read_rounds(self.folder / "rounds.jsonl"))
        else:
            records = list(self.learner._books.queue.store.read_rounds())
        for segment in ("", "s"):
            logged = [record.outputs for record in records if record.segment == segment]
            assert Evidence.from_prefixes(3, logged) == self.learner.evidence(segment)

    def teardown(self):
        if hasattr(self, "learner"):
            for round, _ in self.open:
                round.ended = True
            self.learner.close()
            shutil.rmtree(self.folder)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
