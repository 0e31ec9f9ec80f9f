from __future__ import annotations

import pytest

from storage_lib.io.table_paths import TablePaths

PATHS = TablePaths("/warehouse/db.db/orders")


def test_the_layout_is_that_of_the_format() -> None:
    below = {
        PATHS.schema_path(0): "schema/schema-0",
        PATHS.snapshot_path(12): "snapshot/snapshot-12",
        PATHS.manifest_path("manifest-list-u-0"): "manifest/manifest-list-u-0",
        PATHS.index_path("index-u-0"): "index/index-u-0",
        PATHS.tag_path("v1"): "tag/tag-v1",
        PATHS.consumer_path("me"): "consumer/consumer-me",
        PATHS.statistics_directory: "statistics",
        PATHS.data_file_path("", 3, "data-u-0.parquet"): "bucket-3/data-u-0.parquet",
        PATHS.data_file_path("dt=2024-05-14/", 0, "data-u-0.parquet"): "dt=2024-05-14/bucket-0/data-u-0.parquet",
        PATHS.bucket_directory("", -2): "bucket-postpone",
        PATHS.partition_directory("dt=1/"): "dt=1",
    }
    assert {path.removeprefix("/warehouse/db.db/orders/") for path in below} == set(below.values())
    assert PATHS.partition_directory("") == "/warehouse/db.db/orders"


def test_new_names_are_spelled_as_readers_expect() -> None:
    assert TablePaths.new_data_file_name("u", 3, "parquet") == "data-u-3.parquet"
    assert TablePaths.new_manifest_name("u", 0) == "manifest-u-0"
    assert TablePaths.new_manifest_list_name("u", 1) == "manifest-list-u-1"


@pytest.mark.parametrize(
    ("name", "lease", "of_lease", "waiting"),
    [
        ("lease-7", 7, 7, False),
        ("beat-7", None, 7, False),
        ("released-12", None, 12, False),
        ("waiting-abc", None, None, True),
        ("lease-x", None, None, False),
        ("lease-", None, None, False),
        ("lease-²", None, None, False),
        (".lease-7.0a.tmp", None, None, False),
    ],
)
def test_files_of_the_lease_directory_are_told_apart(
    name: str,
    lease: int | None,
    of_lease: int | None,
    waiting: bool,  # noqa: FBT001
) -> None:
    assert TablePaths.lease_number(name) == lease
    assert TablePaths.lease_file_number(name) == of_lease
    assert TablePaths.is_waiting_name(name) is waiting


def test_lease_paths_come_back_as_what_they_were() -> None:
    for path in (PATHS.lease_path(3), PATHS.lease_beat_path(3), PATHS.lease_released_path(3)):
        directory, _, name = path.rpartition("/")
        assert directory == PATHS.lease_directory
        assert TablePaths.lease_file_number(name) == 3
    assert PATHS.waiting_path_of(PATHS.waiting_path("x").rpartition("/")[2]) == PATHS.waiting_path("x")


@pytest.mark.parametrize(
    ("name", "bucket"),
    [("bucket-0", 0), ("bucket-12", 12), ("bucket-postpone", -2), ("dt=1", None), ("bucket-a", None)],
)
def test_bucket_directories_are_told_from_others(name: str, bucket: int | None) -> None:
    assert TablePaths.bucket_of_directory(name) == bucket
