"""MariaDB on this machine without Docker, loopback only, with a binary log of rows that Debezium can follow.

    with LocalMariadb(folder) as mariadb:
        mariadb.query("SELECT 1")

The programs are the system's, or those of Debian's packages unpacked below ``.local/mariadb``; `make servers` reports
how to get them. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from local_process import LOOPBACK, LocalProcess, LocalServer, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

__all__ = ["LocalMariadb", "LocalMariadbError", "MariadbNotSetUpError", "find_mariadb"]

UNPACKED = Path(__file__).resolve().parents[2] / ".local" / "mariadb"
PLACES = (UNPACKED / "usr", Path("/usr"), Path("/usr/local"), Path("/opt/homebrew"))
NEEDED = ("sbin/mariadbd", "bin/mariadb", "bin/mariadb-install-db")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu")


class LocalMariadbError(RuntimeError):
    """MariaDB did not start; the message ends with its output."""


class MariadbNotSetUpError(LocalMariadbError):
    """The programs are missing."""


class LocalMariadb(LocalServer):
    """Temporary database server, whose user ``root`` has no password. Not thread-safe."""

    def __init__(self, home: str | os.PathLike[str], *, settings: Mapping[str, str] | None = None) -> None:
        self.home = Path(home).resolve()
        self._settings = dict(settings or {})
        self._data: Path | None = None
        self._process = LocalProcess(self.home, f"--pid-file={self.home}", name="mariadb")
        self._port: int | None = None

    @property
    def port(self) -> int:
        """The server's port; known once it has been started."""
        if self._port is None:
            msg = f"MariaDB in {self.home} has not been started, so it has no address."
            raise LocalMariadbError(msg)
        return self._port

    def client(self, *options: str) -> list[str]:
        """Return the command of the client program, as user ``root``."""
        program = _programs() / "bin" / "mariadb"
        address = ("--protocol=tcp", f"--host={LOOPBACK}", f"--port={self.port}", "--user=root")
        return [str(program), "--no-defaults", *address, "--default-character-set=utf8mb4", *options]

    def query(self, text: str, *, database: str = "mysql") -> list[list[str]]:
        """Run statements, and return the rows of all of them as text, as the client prints it: NULL for a null."""
        ran = subprocess.run(
            self.client("--batch", "--skip-column-names", f"--database={database}"),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env=self.environment(),
        )
        if ran.returncode != 0:
            msg = f"MariaDB refused {text[:500]!r}: {ran.stderr.strip()}"
            raise LocalMariadbError(msg)
        return [line.split("\t") for line in ran.stdout.splitlines()]

    @staticmethod
    def environment() -> dict[str, str]:
        """Return the environment in which the programs find their libraries."""
        found = [str(UNPACKED / each) for each in LIBRARIES if (UNPACKED / each).exists()]
        path = os.pathsep.join([*found, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
        return {**os.environ, **({"LD_LIBRARY_PATH": path} if path else {})}

    def start(self, *, timeout: float = 120) -> Self:
        """Start the server, with its previous port and data if any, and return once it answers."""
        base = _programs()
        self.home.mkdir(parents=True, exist_ok=True)
        self._port = self._port or free_port()
        who = ("--user=root",) if os.geteuid() == 0 else ()
        if self._data is None:
            self._data = Path(tempfile.mkdtemp(prefix="dynamic-tables-mariadb-"))
            make = ("--no-defaults", f"--basedir={base}", f"--datadir={self._data}", *who)
            how = ("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
            made = subprocess.run(
                [str(base / "bin" / "mariadb-install-db"), *make, *how],
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
                env=self.environment(),
            )
            if made.returncode != 0:
                msg = f"mariadb-install-db failed: {made.stderr.strip()}\n{made.stdout.strip()}"
                raise LocalMariadbError(msg)
        settings = {
            "basedir": str(base),
            "datadir": str(self._data),
            "bind-address": LOOPBACK,
            "port": str(self._port),
            "socket": str(self._data / "socket"),
            "pid-file": str(self.home / "server.pid"),
            "server-id": "1",
            "log-bin": "binlog",
            "binlog-format": "ROW",
            "binlog-row-image": "FULL",
            "character-set-server": "utf8mb4",
            "default-time-zone": "+00:00",
            "innodb-flush-log-at-trx-commit": "0",
            "innodb-buffer-pool-size": "32M",
            **self._settings,
        }
        words = [f"--{name}={value}" for name, value in settings.items()]
        asking = self.client("--execute=SELECT 1")
        self._process.run_until(
            lambda: subprocess.run(asking, check=False, capture_output=True, env=self.environment()).returncode == 0,
            (base / "sbin" / "mariadbd", "--no-defaults", *who, "--skip-name-resolve", *words),
            timeout=timeout,
            what="MariaDB",
            error=LocalMariadbError,
            env=self.environment(),
        )
        return self

    def stop(self) -> None:
        """Stop the server; its data remains for the next start. Does nothing if it is down."""
        self._process.end(signal.SIGTERM, 20)

    def __exit__(self, *error: object) -> None:
        """Stop the server and delete its data."""
        super().__exit__(*error)
        if self._data is not None:
            shutil.rmtree(self._data)
            self._data = None


def find_mariadb() -> Path | None:
    """Return the folder above the programs' folders, None if they are not installed."""
    return next((place for place in PLACES if all((place / name).exists() for name in NEEDED)), None)


def _programs() -> Path:
    found = find_mariadb()
    if found is None:
        msg = "There is no MariaDB on this machine. Run `make servers`, which says how to get it."
        raise MariadbNotSetUpError(msg)
    return found
