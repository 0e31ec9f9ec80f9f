"""A Python for Spark's processes that has imported before it is started: a launcher, and a server that forks.

    JVM ── launcher -m pyspark.daemon … ──▶ server: fork ──▶ the module, with the launcher's environment, input, output
            waits for the end, and ends it ◀──────────────────

Spark starts a Python for each streaming source and for each kind of step in planning, one after the other, and each
spends one to two seconds of processor time on the same imports. ``spark.python.daemon.module`` (``warm_daemon``) only
names the daemon of tasks. The server imports once, while the JVM starts.

The process of a streaming source has to connect to the JVM within 10 s of its start, a limit that can't be configured,
and without it the stream ends. A busy machine needs longer for the imports. So the launcher connects, which takes it
milliseconds, and passes the connection on; after that the JVM waits as long as it takes.

Any other command, and any after the server has ended, runs in an ordinary Python.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

__all__ = ["FORKED", "can_fork", "warm_python"]

FORKED = (
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "storage_lib.spark.runtime.warm_daemon",
)
"""The modules that the server runs."""

_IMPORTED = (
    *FORKED,
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.worker",
    "storage_lib.spark.data_source.table_source",
    "storage_lib.spark.insert_stream.commit_source",
)
_SEED = "PYTHONHASHSEED"
_BUFFER_BYTES = "SPARK_BUFFER_SIZE"
_BEGUN = b"b"
# No site, no environment: it takes a hundredth of a second.
_LAUNCHER = """#!{python} -IS
import os, sys
def jvm_connection():
    import socket
    port, secret = (os.environ.get("PYTHON_WORKER_FACTORY_" + each, "") for each in ("PORT", "SECRET"))
    if not (port.isdecimal() and secret):
        return []
    host = "::1" if os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true" else "127.0.0.1"
    jvm = socket.create_connection((host, int(port)))
    jvm.sendall(len(secret.encode()).to_bytes(4, "big") + secret.encode())
    with jvm.makefile("rb") as answer:
        if answer.read(int.from_bytes(answer.read(4), "big")) != b"ok":
            sys.exit("Spark's JVM does not accept the secret that it has given to this process")
    return [jvm]
def forked():
    import json, socket
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect({address!r})
        except OSError:
            return
        jvm = jvm_connection()
        try:
            request = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
            passed = [0, 1, 2, *(each.fileno() for each in jvm)]
            socket.send_fds(server, [len(request).to_bytes(4, "big")], passed)
            server.sendall(request)
            if server.recv(1) != {begun!r}:
                raise OSError("it has ended")
        except OSError as error:
            # The JVM accepts one connection, so an ordinary Python could not connect.
            if jvm:
                sys.exit(f"the server of Spark's Python processes does not answer: {{error}}")
            return
        for each in jvm:
            each.close()
        ended = server.recv(1)
        sys.exit(ended[0] if ended else 1)
if sys.argv[1:2] == ["-m"] and sys.argv[2:3] and sys.argv[2] in {forked!r}:
    forked()
os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""


def can_fork() -> bool:
    """Return whether the system has what the server needs; Linux has."""
    return sys.platform == "linux" and hasattr(fcntl, "F_SETSIG")


@cache
def warm_python() -> str:
    """Start the server, once, and return the path of the launcher, which takes the place of ``python``.

    The server ends, and deletes the launcher, when this process has ended, however it ends. Does not wait for its
    imports: a launcher does. Raises ``OSError`` if it can't be started.
    """
    # Not below a directory with a long name: the address of a socket has at most 107 characters.
    directory = Path(tempfile.mkdtemp(prefix="warm-python-"))
    launcher, address = directory / "python", str(directory / "server")
    text = _LAUNCHER.format(python=sys.executable, address=address, begun=_BEGUN, forked=FORKED)
    launcher.write_text(text)
    launcher.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        server = subprocess.Popen(  # noqa: S603  this module, by this Python
            [sys.executable, "-m", __name__, str(listening.fileno()), str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listening.fileno()],
            # As Spark sets it for a worker: hashes of texts are the same in all of them.
            env={**os.environ, _SEED: os.environ.get(_SEED, "0")},
        )
    atexit.register(_end, server, directory, os.getpid())
    return str(launcher)


# A forked process has a server of its own, because this one ends with its parent.
os.register_at_fork(after_in_child=warm_python.cache_clear)


def _end(server: subprocess.Popen[bytes], directory: Path, owner: int) -> None:
    if os.getpid() == owner:
        server.terminate()
        server.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _serve(listening: socket.socket) -> None:
    """Fork a process for each launcher, until the standard input ends."""
    # As for Spark's own processes: an interrupt of the terminal is the driver's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in _IMPORTED:
        import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while 0 not in select.select([0, listening.fileno()], [], [])[0]:
        launcher, _ = listening.accept()
        if _fork() == 0:
            listening.close()
            _run_for(launcher)
        launcher.close()


def _fork() -> int:
    """Fork without the warning that Python 3.12 and later print about threads.

    The server has started none. The idle ones are of the libraries it has imported: NumPy, Arrow and Polars.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"This process .*is multi-threaded, use of fork\(\)", DeprecationWarning)
        return os.fork()


def _run_for(launcher: socket.socket) -> None:
    """Run the launcher's module in this process, and tell the launcher the exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, descriptors, _, _ = socket.recv_fds(launcher, 4, 4)
    with launcher.makefile("rb") as stream:
        (module, *arguments), environment, folder = json.loads(stream.read(int.from_bytes(length, "big")))
    for place, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    added = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [each for each in added if each and each not in sys.path]
    sys.argv[1:] = arguments
    # Spark ends a process by ending its launcher, which closes the connection.
    fcntl.fcntl(launcher, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(launcher, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(launcher, fcntl.F_SETFL, fcntl.fcntl(launcher, fcntl.F_GETFL) | os.O_ASYNC)
    launcher.send(_BEGUN)
    status = 0
    try:
        if descriptors[3:]:
            _talk(module, socket.socket(fileno=descriptors[3]))
        else:
            sys.modules.pop(module, None)
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  as Python does at the end of a module
        sys.excepthook(*sys.exc_info())
        status = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(OSError):
        launcher.send(bytes([status & 255]))
    os._exit(status & 255)


def _talk(module: str, jvm: socket.socket) -> None:
    """Run the module as it does by itself once it has connected."""
    with jvm, jvm.makefile("rwb", int(os.environ.get(_BUFFER_BYTES, "65536"))) as stream:
        stream.write(struct.pack("!i", os.getpid()))
        stream.flush()
        import_module(module).main(stream, stream)


def _main(descriptor: str, directory: str) -> None:
    _serve(socket.socket(fileno=int(descriptor)))
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
