"""Picks of universal, leveled and full compaction, as text cases."""

from __future__ import annotations

import re

import pytest

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.compaction.full_after_commits import FullAfterCommits
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.compaction.level0_at_once import Level0AtOnce
from storage_lib.file_store.merge_tree.compaction.leveled_compaction import LeveledCompaction
from storage_lib.file_store.merge_tree.compaction.universal_compaction import UniversalCompaction
from storage_lib.file_store.merge_tree.levels import Levels, levels_of
from tests.support.case_file import load_cases
from tests.support.data_file_metas import compare_numbers, file_meta

UNIVERSAL = load_cases("universal_compaction.txt")
FULL = load_cases("full_compaction.txt")
LEVELED = load_cases("leveled_compaction.txt")


@pytest.mark.parametrize("case", UNIVERSAL, ids=[case["case"] for case in UNIVERSAL])
def test_universal_compaction_picks(case: dict[str, str]) -> None:
    trigger, amplification, ratio = map(int, case["options"].split())
    strategy = UniversalCompaction(
        compaction_trigger=trigger, max_size_amplification_percent=amplification, size_ratio_percent=ratio
    )

    assert _drawn(strategy.pick(_levels(case["runs"]))) == case["pick"]


@pytest.mark.parametrize("case", FULL, ids=[case["case"] for case in FULL])
def test_full_compaction_picks(case: dict[str, str]) -> None:
    assert _drawn(FullCompaction().pick(_levels(case["runs"]))) == case["pick"]


@pytest.mark.parametrize("case", LEVELED, ids=[case["case"] for case in LEVELED])
def test_leveled_compaction_picks(case: dict[str, str]) -> None:
    trigger, base, multiplier = map(int, case["options"].split())
    strategy = LeveledCompaction(level0_trigger=trigger, level_base_bytes=base, level_multiplier=multiplier)
    files = []
    for age, text in enumerate(reversed(case["files"].split())):
        level, low, high, size = re.fullmatch(r"(\d+):(\d+)-(\d+):(\d+)", text).groups()  # type: ignore[union-attr]
        files.append(file_meta(text, int(low), int(high), level=int(level), size=int(size), sequence=(age, age)))

    unit = strategy.pick(levels_of(files, level_count=6, comparable_key=compare_numbers))

    picked = "none" if unit is None else f"{' '.join(file.file_name for file in unit.files)} -> {unit.output_level}"
    assert picked == case["pick"]


def test_a_bucket_is_compacted_fully_after_so_many_files_of_level_0() -> None:
    strategy = FullAfterCommits(strategy=UniversalCompaction(compaction_trigger=5), file_count=2)

    assert _drawn(strategy.pick(_levels("0:1 0:1 5:1000"))) == "1 1 1000 -> 5 drop"
    assert _drawn(strategy.pick(_levels("0:1 5:1000"))) == "none"
    assert _drawn(strategy.pick(_levels("1:1 2:1 3:1 4:1 5:1"))) == "1 1 1 1 1 -> 5 drop"


def test_level_0_goes_first_where_the_strategy_would_take_deeper_files_only() -> None:
    strategy = Level0AtOnce(strategy=LeveledCompaction(level0_trigger=4, level_base_bytes=10))

    assert _drawn(strategy.pick(_levels("0:1 4:1000 5:1000"))) == "1 -> 3"


def test_level_0_is_merged_at_once_where_it_may_not_wait() -> None:
    strategy = Level0AtOnce(strategy=UniversalCompaction(compaction_trigger=3))

    assert _drawn(strategy.pick(_levels("0:1 5:1000"))) == "1 -> 4"
    assert _drawn(strategy.pick(_levels("0:1 1:10 5:1000"))) == "1 10 -> 1"
    assert _drawn(strategy.pick(_levels("0:1 0:1 0:1 3:1 5:1000"))) == "1 1 1 1 -> 4"
    assert _drawn(strategy.pick(_levels("4:1 5:1000"))) == "none"


def _levels(runs: str) -> Levels:
    files = []
    for age, text in enumerate(reversed(runs.split())):
        level, size = text.split(":")
        deletes = 1 if size.endswith("d") else 0
        files.append(
            file_meta(f"f{age}", level=int(level), size=int(size.rstrip("d")), sequence=(age, age), deletes=deletes)
        )
    return levels_of(files, level_count=6, comparable_key=compare_numbers)


def _drawn(unit: CompactionUnit | None) -> str:
    if unit is None:
        return "none"
    sizes = " ".join(str(file.file_size) for file in unit.files)
    return f"{sizes} -> {unit.output_level}" + ("" if unit.older_keys else " drop")
