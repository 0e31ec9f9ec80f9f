"""Which manifests are merged: few and small ones at a time, so that a commit's cost stays constant."""

from __future__ import annotations

from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta
from storage_lib.file_store.manifest.manifest_merge import ManifestMerge
from tests.support.manifest_entries import manifest

MEGABYTE = 1 << 20
MERGE = ManifestMerge(target_file_size=8 * MEGABYTE, merge_min_count=30, full_threshold_bytes=16 * MEGABYTE)


def small(count: int) -> list[ManifestFileMeta]:
    return [manifest(f"small-{index}", 1) for index in range(count)]


def test_few_manifests_stay_as_they_are() -> None:
    assert MERGE.choose(small(29)) == range(0)
    assert MERGE.choose([]) == range(0)


def test_thirty_small_ones_are_folded() -> None:
    assert MERGE.choose(small(30)) == range(30)


def test_a_larger_old_one_is_left_alone() -> None:
    assert MERGE.choose([manifest("old", 5000), *small(30)]) == range(1, 31)


def test_an_old_one_joins_once_the_new_ones_are_as_many() -> None:
    assert MERGE.choose([manifest("old", 30), *small(30)]) == range(31)


def test_manifests_of_the_target_size_are_not_rewritten() -> None:
    assert MERGE.choose([manifest("full", 10, size=9 * MEGABYTE), *small(40)]) == range(1, 41)


def test_everything_is_folded_when_many_deletes_have_piled_up() -> None:
    old = manifest("old", 30_000, size=9 * MEGABYTE)
    deletes = manifest("deletes", 30_000, size=9 * MEGABYTE, deleted=10_000)
    assert MERGE.choose([old, deletes, deletes]) == range(3)


def test_few_deletes_do_not_make_a_commit_rewrite_a_large_table() -> None:
    old = [manifest(f"old-{index}", 30_000, size=9 * MEGABYTE) for index in range(100)]
    assert MERGE.choose([*old, manifest("deletes", 200, size=MEGABYTE, deleted=100)]) == range(0)


def test_over_many_commits_entries_are_rewritten_a_logarithmic_number_of_times() -> None:
    """Each commit adds one manifest of four entries; merged manifests keep all of them."""
    manifests: list[ManifestFileMeta] = []
    rewritten = most_at_once = longest = 0
    commits = 4000
    for index in range(commits):
        chosen = MERGE.choose(manifests)
        if chosen:
            entries = sum(manifests[position].num_entries for position in chosen)
            rewritten += entries
            most_at_once = max(most_at_once, entries)
            manifests = [*manifests[: chosen.start], manifest(f"fold-{index}", entries), *manifests[chosen.stop :]]
        manifests.append(manifest(f"new-{index}", 4))
        longest = max(longest, len(manifests))
    assert rewritten / (4 * commits) < 10
    assert longest <= 31


def test_the_manifests_of_one_fold_count_as_one() -> None:
    run = [manifest(f"manifest-x-run-{index}", 1000) for index in range(40)]
    assert MERGE.choose(run) == range(0)
    assert MERGE.choose([*run, *small(28)]) == range(0)
    assert MERGE.choose([*run, *small(29)]) == range(40, 69)
    other = [manifest(f"manifest-y-run-{index}", 1000) for index in range(40)]
    assert MERGE.choose([*run, *other, *small(28)]) == range(80, 108)


def test_a_run_of_the_target_size_is_not_rewritten_though_its_manifests_are_small() -> None:
    run = [manifest(f"manifest-x-run-{index}", 1000, size=MEGABYTE) for index in range(9)]
    assert MERGE.choose([*run, manifest("new", 20, size=MEGABYTE), *small(30)]) == range(9, 40)


def test_few_large_manifests_are_folded_once_a_reader_of_one_partition_has_much_to_look_at() -> None:
    wide = [manifest(f"wide-{index}", 4000) for index in range(6)]
    assert MERGE.choose(wide[:5]) == range(0)
    assert MERGE.choose(wide) == range(6)
    assert MERGE.choose([manifest("old", 100_000), *wide[:5]]) == range(1, 6)
