"""A thin typed client of the API, blocking or not. Needs nothing but the standard library.

    client = Client("http://127.0.0.1:8600", key="sk-sw-...")
    with client.begin("triage") as round:
        for stage in round.stages:
            round.observe(stage, answer_of(stage))
    print(round.answer)

`AsyncClient` has the same methods, to be awaited.
"""

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names
from stopwise.service.client.awaited import AsyncClient, AsyncServiceRound
from stopwise.service.client.blocking import Client, ServiceRound
from stopwise.service.client.errors import ServiceError

__all__ = ["AsyncClient", "AsyncServiceRound", "Client", "ServiceError", "ServiceRound"]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, {})
