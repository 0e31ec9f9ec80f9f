"""Sections and runs of overlapping files, as text cases and as properties."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_lib.file_store.merge_tree.interval_partition import interval_partition
from tests.support.case_file import load_cases
from tests.support.data_file_metas import compare_numbers, file_meta

CASES = load_cases("interval_partition.txt")


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_sections_are_as_drawn(case: dict[str, str]) -> None:
    files = [
        file_meta(name, int(low), int(high)) for name, low, high in re.findall(r"(\w+)\[(\d+) (\d+)\]", case["files"])
    ]

    sections = interval_partition(files, compare_numbers)

    drawn = " ; ".join(" | ".join(" ".join(file.file_name for file in run.files) for run in runs) for runs in sections)
    assert drawn == case["sections"]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=25))
def test_runs_are_sorted_sections_are_disjoint_and_no_run_is_too_many(intervals: list[tuple[int, int]]) -> None:
    files = [file_meta(f"f{index}", low, low + width) for index, (low, width) in enumerate(intervals)]

    sections = interval_partition(files, compare_numbers)

    assert sorted(file.file_name for runs in sections for run in runs for file in run.files) == sorted(
        file.file_name for file in files
    )
    ends = [max(file.max_key for run in runs for file in run.files) for runs in sections]
    begins = [min(file.min_key for run in runs for file in run.files) for runs in sections]
    assert all(end < begin for end, begin in zip(ends, begins[1:], strict=False))
    for runs in sections:
        for run in runs:
            assert all(earlier.max_key < later.min_key for earlier, later in pairwise(run.files))
        overlap_max = max(
            sum(file.min_key <= point.min_key <= file.max_key for run in runs for file in run.files)
            for run in runs
            for point in run.files
        )
        assert len(runs) == overlap_max
