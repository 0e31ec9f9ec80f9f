"""Which files of an append table are combined: sizes in, groups out."""

from __future__ import annotations

import pytest

from storage_lib.file_store.append.append_compaction import SmallFileCompaction
from tests.support.data_file_metas import file_meta

TARGET = 100


def picked(sizes: str, *, full: bool, only_neighbours: bool = False) -> str:
    """Return groups of sizes, in append order: ``"10 10 | 20 20"``."""
    files = [
        file_meta(f"f{index}", size=int(size), sequence=(index, index)) for index, size in enumerate(sizes.split())
    ]
    strategy = SmallFileCompaction(target_file_size=TARGET, min_file_count=3, only_neighbours=only_neighbours)
    units = strategy.pick(list(reversed(files)), full=full)
    assert all(unit.output_level == 0 for unit in units)
    return " | ".join(" ".join(str(file.file_size) for file in unit.files) for unit in units)


@pytest.mark.parametrize(
    ("sizes", "due", "full"),
    [
        ("", "", ""),
        ("10", "", ""),
        ("10 11", "", "10 11"),
        ("10 11 12", "10 11 12", "10 11 12"),
        # A group that reaches the target is due, regardless of its number of files.
        ("49 48 47", "49 48 47", "49 48 47"),
        # The group ends there, and the next begins.
        ("40 41 42 10 11", "40 41 42", "40 41 42 | 10 11"),
        # A file larger than all newer ones must wait until these have caught up.
        ("40 10 10", "", "40 10 10"),
        ("40 10 10 10", "10 10 10", "40 10 10 10"),
        ("30 10 10 10", "30 10 10 10", "30 10 10 10"),
        ("40 20 5 3 1 1", "", "40 20 5 3 1 1"),
        # Files of at least half the target size are left alone.
        ("50 60 100 200", "", ""),
        ("10 50 11 50 12", "10 11 12", "10 11 12"),
    ],
)
def test_small_files_are_joined_up_to_the_target_and_large_ones_never(sizes: str, due: str, full: str) -> None:
    assert picked(sizes, full=False) == due
    assert picked(sizes, full=True) == full


@pytest.mark.parametrize(
    ("sizes", "due", "full"),
    [
        ("10 50 11 50 12", "", ""),
        ("10 11 50 12 13 14", "12 13 14", "10 11 | 12 13 14"),
        ("40 41 42 50 10 11", "40 41 42", "40 41 42 | 10 11"),
    ],
)
def test_in_a_bucket_whose_order_counts_only_neighbours_are_joined(sizes: str, due: str, full: str) -> None:
    assert picked(sizes, full=False, only_neighbours=True) == due
    assert picked(sizes, full=True, only_neighbours=True) == full


def test_many_small_commits_rewrite_a_row_a_few_times_only() -> None:
    strategy = SmallFileCompaction(target_file_size=1_000_000, min_file_count=5, only_neighbours=True)
    files, rewritten = [], 0
    for n in range(2000):
        files.append(file_meta(f"f{n}", size=100, sequence=(n, n)))
        for unit in strategy.pick(files, full=False):
            size = sum(file.file_size for file in unit.files)
            rewritten += size
            first = min(file.min_sequence_number for file in unit.files)
            files = [file for file in files if file not in unit.files]
            files.append(file_meta(f"joined {n}", size=size, sequence=(first, n)))
    assert rewritten < 12 * 2000 * 100
    assert len(files) < 20
