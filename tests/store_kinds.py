"""The three stores, each as a restart would open it."""

from stopwise.live import Learner, PostgresStore, RoundLog, SqliteStore

STAGES = {"a": 0.0, "b": 0.1, "c": 0.1}


class Kind:
    """Opens stores of one kind, all the same one."""

    def __init__(self, name, folder, url):
        self.name = name
        self.folder = folder
        self.url = url

    @property
    def shared(self):
        return self.name != "log"

    def store(self, **settings):
        if self.name == "log":
            settings.pop("keep_rounds", None)
            settings.pop("writer", None)
            return RoundLog(self.folder / "rounds.jsonl", **settings)
        if self.name == "sqlite":
            return SqliteStore(self.folder / "rounds.db", **settings)
        return PostgresStore(self.url, **settings)

    def learner(self, policy="uss-ts", *, stages=STAGES, seed=1, learner=None, **settings):
        return Learner(stages, policy, seed=seed, store=self.store(**settings), **(learner or {}))


def play_rounds(learner, number, segment="", outputs=("x", "x", "y")):
    """Rounds with these outputs; returns their depths."""
    depths = []
    for _ in range(number):
        with learner.begin(segment) as round:
            for stage in range(round.depth + 1):
                round.observe(outputs[stage])
        depths.append(round.depth)
    return depths
