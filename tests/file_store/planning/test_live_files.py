"""The files of one snapshot, followed from commit to commit."""

from __future__ import annotations

from dataclasses import replace

from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.planning.live_files import LiveFiles
from tests.support.manifest_entries import UNPARTITIONED, entry


def deleted(each: ManifestEntry) -> ManifestEntry:
    return replace(each, kind=FileKind.DELETE)


def names(live: LiveFiles) -> set[str]:
    return {each.file.file_name for each in live}


def test_adds_and_deletes_follow_each_other() -> None:
    a, b, c = entry("a"), entry("b"), entry("c", level=5)
    first = LiveFiles.empty().apply([a, b])
    second = first.apply([deleted(a), deleted(b), c])
    assert (names(first), names(second)) == ({"a", "b"}, {"c"})
    assert len(second) == 1


def test_the_value_before_is_not_changed() -> None:
    first = LiveFiles.empty().apply([entry("a"), entry("b", bucket=1)])
    first.apply([deleted(entry("a")), entry("c", bucket=1), entry("d", partition=b"p")])
    assert names(first) == {"a", "b"}


def test_a_move_to_another_level_keeps_the_name() -> None:
    live = LiveFiles.empty().apply([entry("a")]).apply([deleted(entry("a")), entry("a", level=5)])
    assert [each.file.level for each in live] == [5]
    assert live.holds(entry("a", level=5))
    assert not live.holds(entry("a"))


def test_deletes_may_come_before_their_adds_in_a_list_of_all_entries() -> None:
    assert names(LiveFiles.empty().apply([deleted(entry("a")), entry("b"), entry("a")])) == {"b"}


def test_a_delete_of_an_unknown_file_is_passed_over() -> None:
    assert len(LiveFiles.empty().apply([deleted(entry("a"))])) == 0


def test_empty_buckets_and_partitions_are_gone() -> None:
    a, b = entry("a", bucket=2), entry("b", partition=b"p")
    live = LiveFiles.empty().apply([a, b])
    assert (set(live.partitions), set(live.buckets_of(UNPARTITIONED))) == ({UNPARTITIONED, b"p"}, {2})
    emptied = live.apply([deleted(a)])
    assert set(emptied.partitions) == {b"p"}
    assert emptied.bucket_count(UNPARTITIONED) is None
    assert emptied.bucket_count(b"p") == 4


def test_a_bucket_that_was_emptied_can_be_filled_again() -> None:
    live = LiveFiles.empty().apply([entry("a")]).apply([deleted(entry("a"))]).apply([entry("b"), entry("c")])
    assert names(live) == {"b", "c"}
    assert names(live.apply([deleted(entry("b")), deleted(entry("c")), entry("d")])) == {"d"}
