"""Fixtures of all tests: stores of every kind, and one PostgreSQL server for each process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from postgres_server import Server

    from store_kinds import Kind


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server that is started once; tests make databases of their own in it."""
    import postgres_server

    with postgres_server.server() as server:
        yield server


def _kind(name: str, folder: Path, request: pytest.FixtureRequest) -> Kind:
    from store_kinds import Kind

    url = None
    if name == "postgres":
        url = request.getfixturevalue("postgres").new_database()
    return Kind(name, folder, url)


@pytest.fixture(params=["log", "sqlite", "postgres"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """Each kind of store."""
    return _kind(request.param, tmp_path, request)


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """Each kind of store that processes may share."""
    return _kind(request.param, tmp_path, request)


@pytest.fixture
def play() -> Any:
    """Runs rounds."""
    from store_kinds import play_rounds

    return play_rounds
