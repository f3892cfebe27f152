from __future__ import annotations

import hashlib
import re
import stat
from contextlib import closing
from pathlib import Path

import pytest
from service_helpers import Maker
from typer.testing import CliRunner

from stopwise.checks import StopwiseError
from stopwise.cli import build_app
from stopwise.service.config.reading import config_of
from stopwise.service.core import Service
from stopwise.service.database.connection import SqliteDatabase
from stopwise.service.database.keys import Keys
from stopwise.service.serving import refuse_open_door


def test_a_key_is_shown_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "k.db")
    keys = Keys(database)
    key, text = keys.create("app", ["infer"])
    assert text.startswith(f"sk-sw-{key.id}-")
    secret = text.rsplit("-", 1)[1]
    assert database.rows("SELECT hash FROM keys") == [
        (hashlib.sha256(secret.encode()).hexdigest(),)
    ]
    database.close()
    assert secret.encode() not in (tmp_path / "k.db").read_bytes()
    assert stat.S_IMODE((tmp_path / "k.db").stat().st_mode) == 0o600


def test_forged_keys_are_nobody(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "k.db")
    keys = Keys(database)
    key, text = keys.create("app", ["infer"])
    other, _ = keys.create("other", ["admin"])
    keys.renew()
    assert keys.find(text) == key
    secret = text.rsplit("-", 1)[1]
    for forged in (
        "", "sk-sw-", f"sk-sw-{key.id}-", f"sk-sw-{key.id}-{'0' * 48}", secret,
        f"sk-sw-{other.id}-{secret}", text.upper(), text + "0", text[:-1], f"{key.id}-{secret}",
        "sk-sw-\ud800-x", f"sk-sw-{key.id}-é",
    ):  # fmt: skip
        assert keys.find(forged) is None, forged
    keys.revoke(key.id)
    keys.renew()
    assert keys.find(text) is None
    with pytest.raises(StopwiseError, match="no such key"):
        keys.revoke(key.id)
    database.close()


def test_names_and_scopes_are_checked(tmp_path: Path) -> None:
    with closing(SqliteDatabase(tmp_path / "k.db")) as database:
        keys = Keys(database)
        with pytest.raises(StopwiseError, match="'infer', 'read', 'label' or 'admin'"):
            keys.create("x", ["root"])
        with pytest.raises(StopwiseError, match="name"):
            keys.create("  ", ["infer"])


def test_scopes_over_http(make: Maker) -> None:
    client, service = make(api_only=True)
    assert client.get("/metrics").status_code == 200  # this machine, no key yet
    _, infer = service.keys.create("app", ["infer"])
    _, read = service.keys.create("eye", ["read"])
    _, admin = service.keys.create("boss", ["admin"])
    service.keys.renew()

    def status(text: str | None) -> int:
        headers = {} if text is None else {"authorization": f"Bearer {text}"}
        return client.get("/metrics", headers=headers).status_code

    assert status(None) == 401
    assert status("sk-sw-000000000000-" + "0" * 48) == 401
    assert status(infer) == 403
    assert status(read) == 200
    assert status(admin) == 200
    body = client.get("/metrics").json()
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["code"] == "invalid_api_key"


def test_revoking_the_last_key_opens_nothing(make: Maker) -> None:
    client, service = make(api_only=True)
    key, text = service.keys.create("boss", ["admin"])
    service.keys.renew()
    service.keys.revoke(key.id)
    service.keys.renew()
    assert client.get("/metrics").status_code == 401
    headers = {"authorization": f"Bearer {text}"}
    assert client.get("/metrics", headers=headers).status_code == 401
    assert client.get("/ui/keys", follow_redirects=False).status_code != 200


def test_without_a_key_only_this_machines_names_are_answered(make: Maker) -> None:
    client, _ = make(api_only=True)
    other = client.get("/metrics", headers={"host": "evil.example:8600"})
    assert other.status_code == 403
    assert client.get("/metrics", headers={"host": "localhost:8600"}).status_code == 200


def test_nothing_listens_beyond_loopback_without_a_key(tmp_path: Path) -> None:
    form = {
        "server": {"listen": "0.0.0.0:8600", "store": "sqlite:///s.db"},
        "cascades": {
            "c": {
                "mistake_cost": 1,
                "stages": [{"name": "a", "cost": 1}, {"name": "b", "cost": 2}],
            }
        },
    }
    service = Service(config_of(form, tmp_path))
    with pytest.raises(StopwiseError, match="no key exists"):
        refuse_open_door(service)
    service.keys.create("app", ["infer"])
    service.keys.renew()
    refuse_open_door(service)
    service.database.close()


CONFIG = """
[server]
store = "sqlite:///s.db"
[cascades.c]
mistake_cost = 1
stages = [{ name = "a", cost = 1 }, { name = "b", cost = 2 }]
"""


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(CONFIG)
    run = CliRunner()
    made = run.invoke(build_app(), ["keys", "create", str(path), "--name", "app"])
    assert made.exit_code == 0
    text = made.stdout.strip()
    assert text.startswith("sk-sw-")
    listed = run.invoke(build_app(), ["keys", "list", str(path)])
    key_id = text.split("-")[2]
    assert key_id in listed.stdout
    assert text not in listed.stdout
    assert "active" in listed.stdout
    gone = run.invoke(build_app(), ["keys", "revoke", str(path), key_id])
    assert gone.exit_code == 0
    assert "revoked" in run.invoke(build_app(), ["keys", "list", str(path)]).stdout
    with pytest.raises(StopwiseError, match="'create', 'list' or 'revoke'"):
        run.invoke(build_app(), ["keys", "remove", str(path)], catch_exceptions=False)


def test_sessions(make: Maker) -> None:
    client, service = make(api_only=True)
    assert client.get("/ui/").status_code == 200
    key, text = service.keys.create("me", ["read"])
    service.keys.renew()
    away = client.get("/ui/", follow_redirects=False)
    assert away.status_code == 303
    assert away.headers["location"] == "/ui/login?then=/ui/"
    own = {"sec-fetch-site": "same-origin"}
    bad = client.post("/ui/login", data={"key": "sk-sw-x-y"}, headers=own)
    assert bad.status_code == 401
    entered = client.post(
        "/ui/login", data={"key": text, "then": "//evil.example"}, headers=own,
        follow_redirects=False,
    )  # fmt: skip
    assert entered.headers["location"] == "/ui/"
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/ui/").status_code == 200
    # A session is for the pages alone.
    assert client.get("/metrics").status_code == 401
    # Another site cannot log in or out for somebody.
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}, {}):
        assert client.post("/ui/logout", headers=headers).status_code == 403
    service.keys.revoke(key.id)
    service.keys.create("other", ["read"])
    service.keys.renew()
    assert client.get("/ui/", follow_redirects=False).status_code == 303


def test_pages_carry_the_policy(make: Maker) -> None:
    client, _ = make(api_only=True)
    response = client.get("/ui/")
    assert "default-src 'self'" in response.headers["content-security-policy"]
    assert "style=" not in response.text
    assert not re.search(r"<script(?![^>]*\bsrc=\"/ui/static/)", response.text)
    assert "support" in response.text
    css = client.get("/ui/static/style.css")
    assert css.status_code == 200
    assert "max-age" in css.headers["cache-control"]
    assert client.get("/ui/static/../routes.py").status_code == 404


def test_health(make: Maker) -> None:
    client, service = make(api_only=True)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").status_code == 200
    service.recorder.errors = 1
    assert client.get("/readyz").status_code == 503
    service.recorder.errors = 0
