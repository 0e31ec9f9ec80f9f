"""A Python for Spark's own processes that has imported before it is started: a launcher, and a server that forks.

    JVM ── launcher -m pyspark.… ──▶ server: fork ──▶ the module, with the launcher's environment, input and output
            waits for the end ◀──────────────────────

Spark starts a new Python for each streaming query and for each step of planning, and each spends two seconds of
processor time on imports that are the same every time. Python's tasks themselves do not come this way: their daemon
(``storage_lib.spark.runtime.warm_daemon``) is part of the product.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["shared_warm_python", "warm_python"]

STARTED = ("pyspark.daemon", "pyspark.sql.streaming.python_streaming_source_runner")
IMPORTED = (
    *STARTED,
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "storage_lib.spark.insert_stream.commit_source",
    "storage_lib.spark.data_source.table_source",
)
# No site, no environment: it takes a hundredth of a second.
LAUNCHER = """#!{python} -IS
import sys
if sys.argv[1:2] == ["-m"] and sys.argv[2] in {started!r}:
    import os, json, socket
    with socket.socket(socket.AF_UNIX) as server:
        server.connect({address!r})
        request = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
        socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(request)
        ended = server.recv(1)
    sys.exit(ended[0] if ended else 1)
import os
os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""


@cache
def shared_warm_python() -> Path:
    """Return the launcher of the server that this process started first; both end with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    # Not below pytest's folder: the address of a socket has at most 107 characters.
    return stack.enter_context(warm_python(Path(stack.enter_context(TemporaryDirectory(prefix="warm-python-")))))


@contextmanager
def warm_python(directory: Path) -> Iterator[Path]:
    """Run the server, and yield the path of a launcher in ``directory`` that takes the place of ``python``."""
    address, launcher = directory / "warm", directory / "python"
    launcher.write_text(LAUNCHER.format(python=sys.executable, address=str(address), started=STARTED))
    launcher.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm_python", str(address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        assert server.stdout.readline() == b"listening\n"
        yield launcher
        server.stdin.close()


def serve(address: str) -> None:
    """Fork a process for each launcher, until the standard input ends."""
    for name in IMPORTED:
        import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        print("listening", flush=True)
        while 0 not in select.select([0, listening.fileno()], [], [])[0]:
            launcher, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                run_for(launcher)
            launcher.close()


def run_for(launcher: socket.socket) -> None:
    """Run the launcher's module in this process, and tell the launcher the exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, descriptors, _, _ = socket.recv_fds(launcher, 4, 3)
    with launcher.makefile("rb") as stream:
        (module, *arguments), environment, folder = json.loads(stream.read(int.from_bytes(length, "big")))
    for place, descriptor in enumerate(descriptors):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    sys.modules.pop(module, None)
    status = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  as Python does at the end of a module
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    launcher.send(bytes([status & 255]))
    os._exit(status & 255)


if __name__ == "__main__":
    serve(sys.argv[1])
