"""Memory of a process with its children."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.spark_engine.memory_peak import memory_of, sampled_memory

ALLOCATES = "rows = bytearray(100 << 20); rows[:] = b'1' * len(rows); print('ready', flush=True); input()"


def test_memory_of_children_counts_and_the_peak_outlives_them() -> None:
    before = memory_of(os.getpid())
    with sampled_memory(os.getpid()) as peak:
        child = subprocess.Popen([sys.executable, "-c", ALLOCATES], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert memory_of(os.getpid()) > before + (100 << 20)
        with sampled_memory(os.getpid()) as while_it_lives:
            pass
        child.communicate(b"\n")
    assert while_it_lives.bytes > before + (100 << 20)
    assert peak.bytes > 0
    assert memory_of(child.pid) == 0
