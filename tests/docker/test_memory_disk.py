"""The tests' files are in memory if possible, and otherwise on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.memory_disk import memory_disk


def said(tmp_path: Path, available: int) -> Path:
    path = tmp_path / "meminfo"
    path.write_text(f"MemTotal: 99 kB\nMemAvailable:   {available} kB\n")
    return path


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="this system's files bear no attributes")
def test_a_disk_with_room_is_taken_and_keeps_nothing_of_the_question(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()

    assert memory_disk(disk, said(tmp_path, 2), room=1024) == disk
    assert list(disk.iterdir()) == []


def test_without_memory_to_spare_the_files_go_to_the_disk(tmp_path: Path) -> None:
    assert memory_disk(tmp_path, said(tmp_path, 1), room=1024) is None


def test_a_machine_without_such_a_disk_does_without(tmp_path: Path) -> None:
    assert memory_disk(tmp_path / "nowhere", said(tmp_path, 2), room=1024) is None
    assert memory_disk(tmp_path, tmp_path / "nowhere", room=1024) is None
