"""Memory of a process with its children."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO

from benchmarks.spark_engine.memory_peak import memory_of, sampled_memory

ALLOCATED = 100 << 20
CHILD = f"rows = bytearray({ALLOCATED}); rows[:] = b'1' * len(rows); print('allocated', flush=True); input()"
PARENT = f"""
import subprocess, sys
print("idle", flush=True)
input()
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE)
input()
child.communicate(b"\\n")
print(child.pid, flush=True)
input()
"""


def test_memory_of_children_counts_and_the_peak_outlives_them() -> None:
    # The memory of this process, which has run other tests, may shrink meanwhile; that of a new one does not.
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"idle\n"
        before = memory_of(parent.pid)
        with sampled_memory(parent.pid) as peak:
            go_on(parent.stdin)
            assert parent.stdout.readline() == b"allocated\n"
            assert memory_of(parent.pid) > before + ALLOCATED
            with sampled_memory(parent.pid) as while_it_lives:
                pass
            go_on(parent.stdin)
            child = int(parent.stdout.readline())
        go_on(parent.stdin)
    assert while_it_lives.bytes > before + ALLOCATED
    assert peak.bytes > 0
    assert memory_of(child) == 0


def test_a_process_that_does_not_exist_has_no_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert memory_of(ended.pid) == 0
    assert memory_of(os.getpid()) > 0


def go_on(stdin: IO[bytes]) -> None:
    """Let a process continue that waits for a line."""
    stdin.write(b"\n")
    stdin.flush()
