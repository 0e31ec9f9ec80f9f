"""When a commit conflicts with concurrent commits; the cases are in tests/cases/conflict.txt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storage_lib.errors import CommitConflictError, InvalidInputError, StorageError
from storage_lib.file_store.committing.conflict import check_no_conflict
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.planning.live_files import LiveFiles
from tests.support.case_file import load_cases
from tests.support.data_file_metas import compare_numbers
from tests.support.manifest_entries import entry

CASES = load_cases("conflict.txt")


def parse(text: str, total_buckets: int) -> list[ManifestEntry]:
    entries = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, level, keys = each.split()
        low, high = keys.split("..")
        kind = "DELETE" if name.startswith("-") else "ADD"
        entries.append(
            entry(name.lstrip("+-"), kind, low=int(low), high=int(high), level=int(level), total_buckets=total_buckets)
        )
    return entries


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_conflict_rules(case: dict[str, str]) -> None:
    live = LiveFiles.empty().apply(parse(case["live"], 4))
    changes = parse(case["changes"], int(case.get("buckets", "4")))
    # A DELETE repeats its file's values, including the old bucket count.
    changes = [replace(each, total_buckets=4) if each.kind is FileKind.DELETE else each for each in changes]

    def check() -> None:
        check_no_conflict(
            live,
            changes,
            comparable_key=compare_numbers,
            is_overwrite=case.get("overwrite") == "yes",
            subject="table t: commit on top of snapshot 3",
        )

    if case["outcome"] == "ok":
        check()
        return
    with pytest.raises(StorageError) as raised:
        check()
    assert case["outcome"] in str(raised.value)
    assert "table t: commit on top of snapshot 3" in str(raised.value)
    expected = InvalidInputError if "already" in case["outcome"] else CommitConflictError
    assert type(raised.value) is expected


def test_other_buckets_and_partitions_do_not_matter() -> None:
    elsewhere = [entry("x", level=5, high=9, bucket=1), entry("y", level=5, high=9, partition=b"p")]
    live = LiveFiles.empty().apply(elsewhere)
    check_no_conflict(
        live,
        [entry("a", level=5, low=1, high=9, bucket=0)],
        comparable_key=compare_numbers,
        is_overwrite=False,
        subject="t",
    )
