"""MinIO, an S3 server that also makes temporary credentials (STS) and enforces their policies.

`make servers` does not build it, which takes Go a quarter of an hour:
`CGO_ENABLED=0 go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c`. Its tests run where `minio` is on
the path and its Python package is installed.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Self
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from local_process import LOOPBACK, LocalProcess, LocalServer, free_port
from tests.support.extras import is_installed

PROGRAM = shutil.which("minio")
ROLE = "arn:aws:iam::000000000000:role/any"
"""MinIO does not look at the role: its credentials have the rights of who asks, and of the policy."""
_ROOT, _ROOT_SECRET = "root", "root-secret"
_USER, _USER_SECRET = "server", "server-secret"
"""Root can't ask for temporary credentials."""

needs_minio = pytest.mark.skipif(
    PROGRAM is None or not is_installed("minio"),
    reason="there is no MinIO here: build it with Go, and `pip install minio` (tests/support/minio_server.py)",
)


class MinioError(RuntimeError):
    """The server did not start."""


class MinioServer(LocalServer):
    """MinIO in ``home`` with a bucket ``lake`` and a user that may do everything with files."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._address = f"{LOOPBACK}:{free_port()}"
        self._process = LocalProcess(home, str(home / "data"), name="minio")

    @property
    def endpoint(self) -> str:
        return f"http://{self._address}"

    @property
    def options(self) -> dict[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key": _USER,
            "s3.secret-key": _USER_SECRET,
            "s3.path-style-access": "true",
        }

    def start(self, *, timeout: float = 120) -> Self:
        assert PROGRAM is not None
        data = self._home / "data"
        data.mkdir(parents=True)
        secrets = {"MINIO_ROOT_USER": _ROOT, "MINIO_ROOT_PASSWORD": _ROOT_SECRET, "MINIO_BROWSER": "off"}
        command = (PROGRAM, "server", data, "--address", self._address, "--quiet")
        self._process.run_until(self._answers, command, timeout=timeout, what="MinIO", error=MinioError, env=secrets)
        self._make_bucket_and_user()
        return self

    def stop(self) -> None:
        self._process.end(signal.SIGTERM, 10)

    def _make_bucket_and_user(self) -> None:
        from minio import Minio, MinioAdmin
        from minio.credentials.providers import StaticProvider

        root = Minio(endpoint=self._address, access_key=_ROOT, secret_key=_ROOT_SECRET, secure=False)
        root.make_bucket(bucket_name="lake")
        admin = MinioAdmin(endpoint=self._address, credentials=StaticProvider(_ROOT, _ROOT_SECRET), secure=False)
        admin.user_add(access_key=_USER, secret_key=_USER_SECRET)
        admin.attach_policy(policies=["readwrite"], user=_USER)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.endpoint}/minio/health/live", timeout=1):  # noqa: S310  our own address
                return True
        except (HTTPError, URLError, OSError):
            return False
