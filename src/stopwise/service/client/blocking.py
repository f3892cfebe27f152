"""Calls that wait: plain HTTP from the standard library, tried again where that is safe."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from stopwise.checks import names_settings, names_settings_of
from stopwise.service.client.errors import ServiceError

_AGAIN = (502, 503, 504)


@names_settings_of("begin", "evidence", "explain", "label", "report", "verdict", "call")
class Client:
    """Calls a service and waits.

    Every call may be sent again without counting twice, so failures of the connection are retried.

    Args:
        url: of the service, such as http://127.0.0.1:8600.
        key: with the scopes that the calls need; None while the service has no keys.
        timeout: of one try, in seconds.
        tries: how often a call is tried.

    >>> Client("http://127.0.0.1:1", tries=1).cascades()
    Traceback (most recent call last):
    ...
    stopwise.service.client.errors.ServiceError: http://127.0.0.1:1/api/v1: cannot be reached ...
    """

    @names_settings
    def __init__(
        self, url: str, key: str | None = None, *, timeout: float = 30.0, tries: int = 3
    ) -> None:
        self._base = url.rstrip("/") + "/api/v1"
        self._key = key
        self._timeout = timeout
        self._tries = tries
        # No proxy of the environment and no redirect: a key goes where it was meant to go.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())

    def begin(
        self,
        cascade: str,
        *,
        segment: str = "",
        conversation: str = "",
        features: Mapping[str, Any] | None = None,
    ) -> ServiceRound:
        """Open a round; `features` are what is known of the item, for a policy per item."""
        body = {"segment": segment, "conversation": conversation, "features": features}
        sent = {name: value for name, value in body.items() if value}
        form = self.call("POST", f"{_path(cascade)}/rounds", sent, once=True)
        return ServiceRound(self, cascade, form)

    def round(self, cascade: str, round_id: str) -> ServiceRound:
        """A round that was begun elsewhere and is still open: for whoever reports to it later."""
        name = urllib.parse.quote(round_id, safe="")
        form = self.call("GET", f"{_path(cascade)}/rounds/{name}")
        if form.get("state") != "open":
            raise ServiceError(409, "this round has ended", "round_ended")
        return ServiceRound(self, cascade, form)

    def cascades(self) -> list[dict[str, Any]]:
        """Every cascade in a line."""
        found: list[dict[str, Any]] = self.call("GET", "/cascades")["cascades"]
        return found

    def evidence(self, cascade: str, segment: str | None = None) -> dict[str, Any]:
        """Pairs seen and in disagreement."""
        return self._read(cascade, "evidence", segment)

    def report(self, cascade: str, segment: str | None = None) -> dict[str, Any]:
        """Counts, spending, savings, health."""
        return self._read(cascade, "report", segment)

    def verdict(self, cascade: str, segment: str | None = None) -> dict[str, Any]:
        """Certain, or not knowable without labels."""
        return self._read(cascade, "verdict", segment)

    def explain(self, cascade: str, segment: str | None = None) -> dict[str, Any]:
        """Law, costs, pairs against thresholds."""
        return self._read(cascade, "explain", segment)

    def audit(self, cascade: str) -> dict[str, Any]:
        """What the labels settle, and what to label next."""
        return self._read(cascade, "audit", None)

    def mode(self, cascade: str) -> dict[str, Any]:
        """The mode, and what another one would change."""
        return self._read(cascade, "mode", None)

    def set_mode(self, cascade: str, mode: str, reason: str) -> dict[str, Any]:
        """Switch a cascade to shadow, advise or enforce."""
        return self.call("PUT", f"{_path(cascade)}/mode", {"mode": mode, "reason": reason})

    def label(self, cascade: str, round_id: str, correct: list[str], note: str = "") -> None:
        """Say which stages' answers of a round are right; an empty list if none is."""
        body = {"round": round_id, "correct": correct, "note": note}
        self.call("POST", f"{_path(cascade)}/labels", body)

    def log(self, cascade: str) -> bytes:
        """The rounds as CSV, as `stopwise analyze` reads it."""
        return self._send("GET", f"{_path(cascade)}/log", None, {})

    def _read(self, cascade: str, what: str, segment: str | None) -> dict[str, Any]:
        query = "" if segment is None else "?" + urllib.parse.urlencode({"segment": segment})
        return self.call("GET", f"{_path(cascade)}/{what}{query}")

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, once: bool = False
    ) -> dict[str, Any]:
        """Any call; `once` names it, so that a retry does not begin a second round."""
        headers = {"idempotency-key": uuid.uuid4().hex} if once else {}
        form: dict[str, Any] = json.loads(self._send(method, path, body, headers))
        return form

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: dict[str, str]
    ) -> bytes:
        headers = {"accept": "application/json", **headers}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        for left in range(self._tries - 1, -1, -1):
            request = urllib.request.Request(
                self._base + path, data=data, headers=headers, method=method
            )
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    reply: bytes = response.read()
                    return reply
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _AGAIN or not left:
                        raise _refusal(error) from None
            except OSError as error:
                if not left:
                    message = f"{self._base}: cannot be reached ({type(error).__name__})"
                    raise ServiceError(0, message) from None
            time.sleep(0.1 * 2 ** (self._tries - 1 - left))
        raise AssertionError("the last try returns or raises")


@names_settings_of("fail", "observe")
class ServiceRound:
    """An open round of a service; leaving its `with` block ends it, or abandons it on an error.

    Attributes:
        id: its name, the same in the log and on the pages.
        stages: the names of the stages to call. Where the policy decides per item, it grows while
            outputs are reported; a loop over it calls them all.
        depth, probability: as drawn.
        answer, stage, cost: once it has ended.

    >>> class Recorded(Client):  # in the place of a service
    ...     def call(self, method, path, body=None, *, once=False):
    ...         drawn = {"round": "r1", "stages": ["small"], "depth": 0, "probability": 1.0}
    ...         return {**drawn, "mode": "enforce", "answer": "spam", "stage": "small", "cost": 2.0}
    >>> with Recorded("http://127.0.0.1:8600").begin("triage") as round:
    ...     for stage in round.stages:
    ...         round.observe(stage, "spam")
    >>> round.answer, round.stage, round.cost
    ('spam', 'small', 2.0)
    """

    def __init__(self, client: Client, cascade: str, form: Mapping[str, Any]) -> None:
        self._client = client
        self._path = f"{_path(cascade)}/rounds/{form['round']}"
        self.id: str = form["round"]
        self.stages: list[str] = form["stages"]
        self.depth: int = form["depth"]
        self.probability: float = form["probability"]
        self.mode: str = form["mode"]
        self.answer: Any = None
        self.stage: str | None = None
        self.cost: float | None = None
        self.ended = False

    def observe(
        self,
        stage: str,
        output: Any,
        *,
        cost: float | None = None,
        seconds: float | None = None,
        confidence: float | None = None,
    ) -> None:
        """Report an output, None for an abstention, and how sure the stage says it is."""
        way = {"abstained": True} if output is None else {"output": output}
        sure = {} if confidence is None else {"confidence": confidence}
        self._report({"stage": stage, **way, **sure}, cost, seconds)

    def fail(self, stage: str, why: str, *, cost: float | None = None) -> None:
        """Report that a stage failed."""
        self._report({"stage": stage, "failed": why[:200]}, cost, None)

    def _report(self, body: dict[str, Any], cost: float | None, seconds: float | None) -> None:
        if cost is not None:
            body["cost"] = cost
        if seconds is not None:
            body["seconds"] = seconds
        self._renew(self._client.call("POST", f"{self._path}/outputs", body))

    def go_deeper(self) -> list[str]:
        """Allow one stage more; the stages to call now."""
        self._renew(self._client.call("POST", f"{self._path}/deeper", {}))
        return self.stages

    def _renew(self, form: Mapping[str, Any]) -> None:
        # The same list, so that a loop over it comes to what is added.
        self.stages += form["stages"][len(self.stages) :]
        self.depth = form["depth"]

    def end(self) -> Any:
        """Count the round; its answer."""
        return self._close("end")

    def abandon(self) -> None:
        """Give it up; what it saw is counted."""
        self._close("abandon")

    def _close(self, how: str) -> Any:
        form = self._client.call("POST", f"{self._path}/{how}", {})
        self.answer, self.stage, self.cost = form["answer"], form["stage"], form["cost"]
        self.ended = True
        return self.answer

    def __enter__(self) -> ServiceRound:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.ended:
            self._close("end" if kind is None else "abandon")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **named: Any) -> None:
        return None


def _path(cascade: str) -> str:
    return f"/cascades/{urllib.parse.quote(cascade, safe='')}"


def _refusal(error: urllib.error.HTTPError) -> ServiceError:
    try:
        said = json.loads(error.read())["error"]
        return ServiceError(error.code, str(said["message"]), said.get("code"))
    except (ValueError, KeyError, TypeError, OSError):
        return ServiceError(error.code, f"the service answered {error.code}")
