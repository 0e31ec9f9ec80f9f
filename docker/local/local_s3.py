"""S3 server on this machine without Docker: versitygw over a folder, loopback only.

    with LocalS3(folder) as s3:
        s3.create_bucket("lake")
        open_catalog("s3://lake/warehouse", s3.options)

The program comes from `make servers`. Standard library only.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from local_process import LOOPBACK, LocalProcess, LocalServer, free_port

if TYPE_CHECKING:
    from typing import Self

__all__ = ["LocalS3", "LocalS3Error", "S3NotSetUpError"]

PROGRAM = Path(__file__).resolve().parents[2] / ".local" / "s3" / "bin" / "versitygw"
REGION = "us-east-1"


class LocalS3Error(RuntimeError):
    """The server did not start; the message ends with its output."""


class S3NotSetUpError(LocalS3Error):
    """The program is missing; `make servers` builds it."""


class LocalS3(LocalServer):
    """S3 server in ``home`` on a free port; ends with the process that started it. Not thread-safe."""

    def __init__(self, home: str | os.PathLike[str], *, program: Path = PROGRAM) -> None:
        self.home = Path(home).resolve()
        self._program = program
        self._data = self.home / "data"
        self._process = LocalProcess(self.home, str(self._data), name="s3")
        self._port: int | None = None
        # Valid for this server only; users who may inspect its process can read them.
        self.access_key, self.secret_key = "local", "local-secret"

    @property
    def endpoint(self) -> str:
        """URL of the server."""
        if self._port is None:
            msg = f"The S3 server in {self.home} has not been started, so it has no address."
            raise LocalS3Error(msg)
        return f"http://{LOOPBACK}:{self._port}"

    @property
    def options(self) -> dict[str, str]:
        """Options for ``open_catalog``."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": REGION,
            "s3.access-key": self.access_key,
            "s3.secret-key": self.secret_key,
        }

    def start(self, *, timeout: float = 120) -> Self:
        """Start the server, on its previous port if it had one, and return once it answers."""
        if not self._program.exists():
            msg = f"There is no {self._program}. Run `make servers`."
            raise S3NotSetUpError(msg)
        self._data.mkdir(parents=True, exist_ok=True)
        self._port = self._port or free_port()
        address = ("--port", f"{LOOPBACK}:{self._port}", "--region", REGION, "--quiet")
        secrets = {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}
        command = (self._program, *address, "posix", self._data)
        self._process.run_until(
            self._answers, command, timeout=timeout, what="The S3 server", error=LocalS3Error, env=secrets
        )
        return self

    def stop(self) -> None:
        """Stop the server; its data remains. Does nothing if it is down."""
        self._process.end(signal.SIGTERM, 10)

    def create_bucket(self, name: str) -> None:
        """Create a bucket: a folder of this server."""
        (self._data / name).mkdir(exist_ok=True)

    def _answers(self) -> bool:
        try:
            with urlopen(self.endpoint, timeout=1):  # noqa: S310 - our own address
                return True
        except HTTPError:
            return True  # it asks for a signature, so it runs
        except (URLError, OSError):
            return False
