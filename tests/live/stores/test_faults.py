"""Three processes on one PostgreSQL under faults; `benchmarks/fault_test.py` does many more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fault_test
import pytest


@pytest.mark.parametrize("durability", ["round", "behind"])
def test_connections_cut_during_commit_count_every_round_once(
    postgres: Any, tmp_path: Path, durability: Any
) -> None:
    if not postgres.ours:
        pytest.skip("the server that STOPWISE_TEST_POSTGRES names has no socket of ours")
    fault_test.cut_during_commit(postgres, tmp_path, durability, 5)


def test_processes_that_are_killed_beside_others_lose_nothing_acknowledged(
    postgres: Any, tmp_path: Path
) -> None:
    fault_test.killed(postgres, tmp_path, "round", 2)


def test_a_server_stopped_at_once_under_three_processes_loses_nothing(
    postgres: Any, tmp_path: Path
) -> None:
    if not postgres.ours:
        pytest.skip("the server that STOPWISE_TEST_POSTGRES names is not ours to stop")
    fault_test.stopped_at_once(postgres, tmp_path, "round", 1)
