"""Running rounds: what results do to a round, which answer it ends with, and why."""
