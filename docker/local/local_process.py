"""Server process on this machine, started detached, identified and stopped by its pid.

``identity``, a unique word of the command line such as the path of the server's folder, distinguishes the process from
a later one with the same pid. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.error import URLError
from urllib.request import urlopen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["LOOPBACK", "LocalProcess", "LocalServer", "free_port", "is_answered", "is_free"]

LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 30_000)
PROC = Path("/proc")
PF_EXITING, PF_KTHREAD = 0x4, 0x200000  # of linux/sched.h
EXEC_SECONDS_MAX = 10
# Starts the command that follows two arguments, the log file and the identity, and prints its process id. The server
# is not our child, so that waiting for its end works in the same way from every process.
LAUNCH = """
identity=$1; shift
exec 3<&0
"$@" </dev/null >"$0" 2>&1 3<&- &
server=$!
echo "$server"
"""
# The guard reads from a pipe whose other end only this process holds. When this process ends for any reason, the guard
# reads the end of the pipe and kills the server, if that process still has this identity.
GUARD = """
{ read -r _ <&3; ps -ww -o command= -p "$server" | grep -qF -- "$identity" && kill -9 "$server"; } >/dev/null 2>&1 &
"""


class LocalProcess:
    """A server whose pid file and log are in ``home``. Ends when this process ends, unless ``outlives_us``."""

    def __init__(self, home: Path, identity: str, *, name: str, outlives_us: bool = False) -> None:
        self.log_file = home / f"{name}.log"
        self._pid_file = home / f"{name}.pid"
        self._identity = identity
        self._outlives_us = outlives_us
        self._guarding_pipe: int | None = None

    @property
    def pid(self) -> int | None:
        """The server's process id, even if another process started it in ``home``; None while it is down."""
        if not self._pid_file.exists():
            return None
        pid = int(self._pid_file.read_text())
        return pid if self._identity in _command_of(pid) else None

    def launch(self, *command: object, env: dict[str, str] | None = None) -> None:
        """Start the server; it may not answer yet."""
        script = LAUNCH if self._outlives_us else LAUNCH + GUARD
        reading, writing = os.pipe()
        with os.fdopen(reading) as pipe:
            # Its own session: Ctrl-C in the terminal reaches only this process, which then stops the server cleanly.
            launched = subprocess.run(
                ["sh", "-c", script, str(self.log_file), self._identity, *(str(word) for word in command)],
                stdin=pipe,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                check=True,
                env={**os.environ, **(env or {})},
            )
        self._pid_file.write_text(launched.stdout.strip())
        self._guarding_pipe = writing

    def run_until(
        self,
        answers: Callable[[], bool],
        command: Iterable[object],
        *,
        timeout: float,
        what: str,
        error: Callable[[str], Exception],
        env: dict[str, str] | None = None,
    ) -> None:
        """Start the server and return once ``answers()`` is true; raises as ``wait_until`` does after ``timeout`` s."""
        # Taken before the launch, which may take long on a busy machine.
        deadline = time.monotonic() + timeout
        self.launch(*command, env=env)
        self.wait_until(answers, deadline=deadline, what=what, error=error)

    def wait_until(
        self, answers: Callable[[], bool], *, deadline: float, what: str, error: Callable[[str], Exception]
    ) -> None:
        """Return once ``answers()`` is true; raise if the server ends or the ``deadline`` (monotonic) passes.

        The ``error`` names ``what`` and the failure, and ends with the server's last output; the server is killed.
        """
        while not answers():
            ended = self.pid is None
            if not ended and time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            self.end(signal.SIGKILL, 30)
            happened = "ended right after its start" if ended else "did not answer in time"
            raise error(f"{what} {happened}. The end of {self.log_file}:\n{self.last_words()}")

    def end(self, how: signal.Signals, timeout: float) -> None:
        """Send the signal, and SIGKILL after ``timeout`` seconds. Does nothing if the server is down."""
        for sent in (how, signal.SIGKILL):
            pid = self.pid
            if pid is None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)
            deadline = time.monotonic() + timeout
            while _is_there(pid) and time.monotonic() < deadline:
                time.sleep(0.02)
        if self._guarding_pipe is not None:
            os.close(self._guarding_pipe)
            self._guarding_pipe = None
        self._pid_file.unlink(missing_ok=True)

    def last_words(self, lines: int = 15) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])


class LocalServer(ABC):
    """A server that is one ``LocalProcess``; as a context manager it runs during the block."""

    _process: LocalProcess

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The server's process id, even if another process started it in its folder; None while it is down."""
        return self._process.pid

    @abstractmethod
    def start(self) -> Self:
        """Start the server and return once it answers."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the server. Does nothing if it is down."""


def _command_of(pid: int) -> str:
    """Return the process's command line; empty if there is none. Polled often, so it avoids ``ps`` on Linux."""
    if (PROC / "self" / "stat").exists():
        try:
            deadline = time.monotonic() + EXEC_SECONDS_MAX
            while True:
                # Looked up before the read: the limit may pass between the two, and what is read must be newer.
                is_late = time.monotonic() > deadline
                command = (PROC / str(pid) / "cmdline").read_bytes()
                # Late: an unrelated process with this pid may have erased its command line.
                if command or is_late or not _becomes_another_program(pid):
                    break
                time.sleep(0.001)
        except OSError:
            return ""
        return command.replace(b"\0", b" ").decode(errors="replace")
    listing = ("ps", "-ww", "-o", "command=", "-p", str(pid))
    return subprocess.run(listing, capture_output=True, text=True, check=False).stdout


def _becomes_another_program(pid: int) -> bool:
    """Return whether a process without a command line is in its exec: neither exiting nor a kernel thread."""
    flags = int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[6])
    return not flags & (PF_EXITING | PF_KTHREAD)


def _is_there(pid: int) -> bool:
    """Return whether a thread of the process remains: an exiting process has no command line, but still holds ports.

    A zombie holds none, unless ``ps`` marks it with ``l``: then other threads of it are still exiting.
    """
    state = subprocess.run(("ps", "-o", "stat=", "-p", str(pid)), capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not (state.startswith("Z") and "l" not in state)


def is_answered(url: str) -> bool:
    """Return whether an HTTP server on this machine answers a request for ``url`` with success."""
    try:
        with urlopen(url, timeout=1):  # noqa: S310 - our own address
            return True
    except (URLError, OSError):
        return False


def is_free(port: int) -> bool:
    """Return whether no process listens on a port of the loopback address."""
    with socket.socket() as probe:
        # As servers do: a port with connections in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port(*but: int) -> int:
    """Return a free port other than ``but``, below the ephemeral range that the system assigns to clients.

    A client that keeps reconnecting to a stopped server on an ephemeral port may be assigned that very port, connect to
    itself, and so occupy the port when the server restarts.
    """
    start = uuid.uuid4().int
    return next(
        candidate
        for offset in range(len(PORTS))
        if (candidate := PORTS[(start + offset) % len(PORTS)]) not in but and is_free(candidate)
    )
