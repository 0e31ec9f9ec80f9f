"""The memory of a sync does not grow with the number of its tables."""

from __future__ import annotations

import subprocess
import sys

import pytest

MORE_MB = 64
"""Less than a quarter of the bytes of the records that 180 more tables have."""


@pytest.mark.deep
def test_two_hundred_tables_need_hardly_more_memory_than_twenty() -> None:
    few, many = growth(20), growth(200)

    assert many < few + MORE_MB, (few, many)


def growth(tables: int) -> int:
    """Return the growth in MB in a process of its own."""
    command = [sys.executable, "-m", "tests.sync.many_tables", str(tables), "2000"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
