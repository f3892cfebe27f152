"""PostgreSQL that is killed, stopped or cut off while rounds are written."""

import time
from contextlib import suppress

import kill_test
import pytest

from stopwise.live import Learner, PostgresStore, StoreError
from store_kinds import STAGES


def test_killed_at_random_moments_with_postgres(postgres, tmp_path):
    """A few kills; `benchmarks/kill_test.py` does 300."""
    url = postgres.new_database()
    kill_test.kill_often(tmp_path / "postgres", url, kills=6, seed=1)


def test_a_database_that_is_stopped_at_once_loses_nothing(postgres, play):
    if not postgres.ours:
        pytest.skip("the server that STOPWISE_TEST_POSTGRES names is not ours to stop")
    settings = {"keep_rounds": True, "patience": 3.0}
    url = postgres.new_database()
    learner = Learner(STAGES, seed=1, store=PostgresStore(url, durability="behind", **settings))
    play(learner, 100)
    postgres.stop("immediate")
    play(learner, 50)
    with pytest.raises(StoreError):
        learner.flush()
    assert learner.store_status.queued >= 50
    postgres.start()
    deadline = time.monotonic() + 60
    while learner.store_status.queued and time.monotonic() < deadline:
        time.sleep(0.05)
    evidence = learner.evidence()
    learner.close()
    again = Learner(STAGES, seed=1, store=PostgresStore(url, **settings))
    assert (again.rounds, again.evidence()) == (150, evidence)
    again.close()
    assert len(list(PostgresStore(url).read_rounds())) == 150


def test_a_connection_that_is_cut_counts_every_round_once(postgres, play):
    import psycopg

    url = postgres.new_database()
    learner = Learner(STAGES, seed=1, store=PostgresStore(url, keep_rounds=True))
    with psycopg.connect(postgres.url, autocommit=True) as other:
        for _ in range(10):
            play(learner, 3)
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'stopwise'"
            )
            with suppress(StoreError):
                play(learner, 1)
    learner.flush()
    assert learner.store_status.failures > 0
    assert learner.rounds == 40
    evidence = learner.evidence()
    learner.close()
    again = Learner(STAGES, seed=1, store=PostgresStore(url))
    assert (again.rounds, again.evidence()) == (40, evidence)
    again.close()
