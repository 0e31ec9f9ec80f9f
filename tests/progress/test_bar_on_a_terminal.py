"""The bar of a program on a real pseudo-terminal, with a pipe as standard output."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
HOURS = 3600
PROGRAM = """\
import sys

import pyarrow as pa

from storage_lib import open_catalog
from storage_lib.progress import automatic_bar

automatic_bar.SHOWN_AFTER_SECONDS = float(sys.argv[1])
if sys.argv[2] == "without rich":
    sys.modules["rich"] = None
table = open_catalog("warehouse").create_table(
    "shop.orders",
    pa.schema([("id", pa.int64()), ("v", pa.string())]),
    primary_key=["id"],
    options={"bucket": "3", "log.system": "none", "write-only": "true"},
)
for version in "ab":
    table.append(pa.table({"id": range(30), "v": [version] * 30}))
assert "rich.console" not in sys.modules
print("compacted by", table.compact(progress=False if sys.argv[2] == "silent" else None).id)
"""


def run_on_terminal(tmp_path: Path, delay_seconds: float, how: str = "", **environment: str) -> tuple[str, str]:
    """Run the program; return its output to the terminal and to standard output."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(ours, 65536):
                seen.append(data)
        except OSError:
            return  # end of a pseudo-terminal on Linux

    reader = threading.Thread(target=read)
    reader.start()
    try:
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(delay_seconds), how],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm-256color", "COLUMNS": "90", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            check=True,
            timeout=300,
        )
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    return b"".join(seen).decode(), ran.stdout


def test_a_bar_counts_to_the_end_and_leaves_the_cursor_visible(tmp_path: Path) -> None:
    shown, printed = run_on_terminal(tmp_path, 0, NO_COLOR="1")

    assert "compact shop.orders" in shown
    assert "0 of 3 buckets" in shown
    assert "3 of 3 buckets" in shown
    assert shown.index(HIDE_CURSOR) < shown.index("3 of 3 buckets") < shown.rindex(SHOW_CURSOR)
    assert printed == "compacted by 3\n"


@pytest.mark.parametrize(
    ("delay_seconds", "how", "environment"),
    [(HOURS, "", {}), (0, "silent", {}), (0, "without rich", {}), (0, "", {"TERM": "dumb"})],
    ids=["a short operation", "progress=False", "the core package", "a dumb terminal"],
)
def test_nothing_is_written_to_the_terminal(
    delay_seconds: float, how: str, environment: dict[str, str], tmp_path: Path
) -> None:
    assert run_on_terminal(tmp_path, delay_seconds, how, **environment) == ("", "compacted by 3\n")


def test_nothing_is_written_to_a_pipe(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "0", ""],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "FORCE_COLOR": "1", "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )

    assert (ran.stdout, ran.stderr) == ("compacted by 3\n", "")
