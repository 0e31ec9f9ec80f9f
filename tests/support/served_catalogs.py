"""Servers of catalogs for tests: in this process, without a socket, and as the command in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage_lib.catalog.catalog import Catalog
from storage_lib.io.environment import Clock, SystemClock
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    import httpx

    from storage_lib.serve.vending.vending import Vending

TOKENS = {"reports": "reports-0123456789abcdef", "loader": "loader-0123456789abcdef", "past": "past-0123456789abcdef"}
CLIENTS = f"""
[[client]]
name = "reports"
token = "{TOKENS["reports"]}"
read = ["shop"]

[[client]]
name = "loader"
token = "{TOKENS["loader"]}"
read = ["shop"]
write = ["staging"]

[[client]]
name = "past"
token = "{TOKENS["past"]}"
write = ["*"]
expires = 2020-01-01T00:00:00Z
"""


def client_file(directory: Path, text: str = CLIENTS) -> Path:
    """Write a file of clients that only its owner may read."""
    path = directory / "clients.toml"
    path.touch(0o600)
    path.write_text(text)
    return path


class ServedInProcess:
    """The server's application, called directly. Without ``clients``, as on this machine only."""

    def __init__(
        self,
        catalog: Catalog,
        clients: Path | None = None,
        clock: Clock | None = None,
        vending: Vending | None = None,
    ) -> None:
        from storage_lib.serve.access.client_file import ClientFile
        from storage_lib.serve.access.server_access import LocalAccess, TokenAccess
        from storage_lib.serve.serving_app import serving_app

        used = clock or SystemClock()
        access = LocalAccess() if clients is None else TokenAccess(ClientFile(clients), used)
        self.app = serving_app(catalog, access, used, vending=vending)

    def ask(self, method: str, path: str, client: str | None = "reports", **more: Any) -> httpx.Response:
        """Return the answer to one request of a client (None: without a token)."""
        (answer,) = self.ask_all([(method, path, client, more)])
        return answer

    def ask_all(self, asked: Sequence[tuple[str, str, str | None, dict[str, Any]]]) -> list[httpx.Response]:
        """Return the answers to several requests, one after the other."""
        import httpx

        async def run() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            answers = []
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                for method, path, client, more in asked:
                    headers = {} if client is None else {"Authorization": f"Bearer {TOKENS.get(client, client)}"}
                    others = more.get("headers", {})
                    pairs = others if isinstance(others, list) else [*others.items()]
                    given = {**more, "headers": [*headers.items(), *pairs]}
                    answers.append(await http.request(method, path, **given))
            return answers

        return asyncio.run(run())


@contextmanager
def serving(warehouse: Path | str, *arguments: str, log: Path, options_file: Path | None = None) -> Iterator[str]:
    """Run ``dynamic-table serve`` on a free port, and yield its address; stop it as a user would."""
    leading = ["-w", str(warehouse), *([] if options_file is None else ["-O", str(options_file)])]
    command = [sys.executable, "-m", "storage_lib.cli.app"]
    program = f"import sys; sys.argv = {command[2:]!r} + sys.argv[1:]; from storage_lib.cli.app import app; app()"
    with log.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *leading, "serve", "--port", "0", *arguments],
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        wait_until(_announced(log, process))
        yield next(word for word in log.read_text().split() if word.endswith("/iceberg")).removesuffix("/iceberg")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _announced(log: Path, process: subprocess.Popen[bytes]) -> Callable[[], bool]:
    def announced() -> bool:
        assert process.poll() is None, log.read_text()
        return "/metrics\n" in log.read_text()

    return announced
