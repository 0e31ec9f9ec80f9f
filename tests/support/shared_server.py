"""A server that all of pytest's processes share: started by the first that needs it, ended after the last has ended.

A process that uses the server holds a shared lock on a file until it ends, however it ends. The guard, a process of its
own, waits for the exclusive lock, which it gets when there is no user left, and then kills the server. A process that
comes later waits for the guard and starts the server again.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    import pytest

__all__ = ["Shareable", "common_folder", "shared_server", "unique_name"]


class Shareable(Protocol):
    """A server that is made from its folder, recognizes itself there, and outlives the process that started it."""

    home: Path

    @property
    def pid(self) -> int | None:
        """The server's process id, even if another process started it in its folder; None while it is down."""

    def start(self) -> Self:
        """Start the server unless it already runs in its folder, and return once it answers."""

    def kill(self) -> None:
        """Kill the server."""


Server = TypeVar("Server", bound=Shareable)


def common_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which this run of pytest keeps what its processes share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def unique_name(tmp_path: Path) -> str:
    """Return a name for what a test makes on a shared server, from the folder that only this test has.

    pytest shortens the name of the test and counts per process: both parts are needed.
    """
    return f"{tmp_path.parent.name}-{tmp_path.name}"


@contextmanager
def shared_server(server: Server) -> Iterator[Server]:
    """Use the server during the block, with all processes that do so in the same folder.

    Its class must be importable, since the guard makes the server from its folder as well.
    """
    server.home.mkdir(parents=True, exist_ok=True)
    users = server.home / "users.lock"
    with users.open("w") as user:
        fcntl.flock(user, fcntl.LOCK_SH)
        with (server.home / "start.lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if server.pid is None:
                start_guard(server, users)
                server.start()
        yield server


def start_guard(server: Shareable, users: Path) -> None:
    """Start the guard as no child of this process, and in its own session, which Ctrl-C in the terminal spares."""
    kind = type(server)
    subprocess.run(
        ("sh", "-c", '"$0" "$@" &', sys.executable, __file__, users, kind.__module__, kind.__name__, server.home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
        check=True,
    )


def guard_until_unused(users: str, module: str, kind: str, home: str) -> None:
    """Kill the server of a folder once no process uses it."""
    with Path(users).open() as last:
        fcntl.flock(last, fcntl.LOCK_EX)
        getattr(import_module(module), kind)(home).kill()


if __name__ == "__main__":
    guard_until_unused(*sys.argv[1:])
