"""PostgreSQL on this machine without Docker, loopback only, with fsync off.

    with LocalPostgres(folder) as postgres:
        open_catalog(folder, {"metastore": "sql", "uri": postgres.uri})

The programs are the system's; `make servers` reports how to install them. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from local_process import LOOPBACK, LocalProcess, LocalServer, free_port, is_free

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

__all__ = ["LocalPostgres", "LocalPostgresError", "PostgresNotSetUpError", "find_programs"]

DEBIANS = Path("/usr/lib/postgresql")
NEEDED = ("initdb", "postgres", "pg_isready")
USER = "dynamic"
# PostgreSQL refuses to run as root. In that case run it as user nobody, who can't enter root's folders.
AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
NOBODY = 65534


class LocalPostgresError(RuntimeError):
    """PostgreSQL did not start; the message ends with its output."""


class PostgresNotSetUpError(LocalPostgresError):
    """The programs are missing."""


class LocalPostgres(LocalServer):
    """Temporary database server on ``port`` (default: a free one); ``settings`` override the default ones.

    Not thread-safe.
    """

    def __init__(
        self,
        home: str | os.PathLike[str],
        *,
        settings: Mapping[str, str] | None = None,
        programs: Path | None = None,
        port: int | None = None,
    ) -> None:
        self.home = Path(home).resolve()
        self._wanted_port = port
        self._settings = dict(settings or {})
        self._programs = programs
        self._data: Path | None = None
        self._process = LocalProcess(self.home, f"dynamic-tables.home={self.home}", name="postgres")
        self._port: int | None = None

    @property
    def uri(self) -> str:
        """URI of the database, for ``open_catalog``."""
        return f"postgresql://{USER}@{LOOPBACK}:{self.port}/postgres"

    @property
    def port(self) -> int:
        """The server's port; known once it has been started."""
        if self._port is None:
            msg = f"PostgreSQL in {self.home} has not been started, so it has no address."
            raise LocalPostgresError(msg)
        return self._port

    def start(self, *, timeout: float = 120) -> Self:
        """Start the server, with its previous port and data if any, and return once it answers."""
        programs = self._programs or find_programs()
        if programs is None or not all((programs / name).exists() for name in NEEDED):
            msg = "There is no PostgreSQL on this machine. Run `make servers`, which says how to get it."
            raise PostgresNotSetUpError(msg)
        self.home.mkdir(parents=True, exist_ok=True)
        if self._port is None and self._wanted_port is not None and not is_free(self._wanted_port):
            msg = f"Port {self._wanted_port} is in use, so PostgreSQL can't listen there; choose another port."
            raise LocalPostgresError(msg)
        self._port = self._port or self._wanted_port or free_port()
        if self._data is None:
            self._data = Path(tempfile.mkdtemp(prefix="dynamic-tables-postgres-"))
            if os.geteuid() == 0:
                os.chown(self._data, NOBODY, NOBODY)
            make = ("-D", str(self._data), "-U", USER, "--auth=trust", "-E", "UTF8", "--locale=C", "-N")
            made = subprocess.run(
                [*_as_who(), str(programs / "initdb"), *make], capture_output=True, text=True, check=False, cwd="/"
            )
            if made.returncode != 0:
                msg = f"initdb failed: {made.stderr.strip() or made.stdout.strip()}"
                raise LocalPostgresError(msg)
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self._port),
            "unix_socket_directories": "",
            "fsync": "off",
            "shared_buffers": "32MB",
            "max_connections": "60",
            "dynamic-tables.home": str(self.home),
            **self._settings,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        asking = [str(programs / "pg_isready"), "-q", "-h", LOOPBACK, "-p", str(self._port)]
        self._process.run_until(
            lambda: subprocess.run(asking, check=False).returncode == 0,
            (*_as_who(), programs / "postgres", "-D", self._data, *words),
            timeout=timeout,
            what="PostgreSQL",
            error=LocalPostgresError,
        )
        return self

    def stop(self) -> None:
        """Stop the server; its data remains for the next start. Does nothing if it is down."""
        self._process.end(signal.SIGINT, 10)

    def __exit__(self, *error: object) -> None:
        """Stop the server and delete its data."""
        super().__exit__(*error)
        if self._data is not None:
            shutil.rmtree(self._data)
            self._data = None


def find_programs() -> Path | None:
    """Return the folder of the system's PostgreSQL programs, on Debian the newest; None if not installed."""
    for place in (*sorted(DEBIANS.glob("*/bin"), key=_release, reverse=True), *_on_path()):
        if all((place / name).exists() for name in NEEDED):
            return place
    return None


def _on_path() -> list[Path]:
    postgres = shutil.which("postgres")
    return [] if postgres is None else [Path(postgres).resolve().parent]


def _release(place: Path) -> int:
    release = place.parent.name
    return int(release) if release.isdecimal() else 0


def _as_who() -> tuple[str, ...]:
    return AS_NOBODY if os.geteuid() == 0 else ()
