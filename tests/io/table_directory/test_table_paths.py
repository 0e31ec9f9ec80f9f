from __future__ import annotations

import pytest

from storage_lib.io.table_directory.table_paths import TablePaths

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
    ("name", "bucket"),
    [("bucket-0", 0), ("bucket-12", 12), ("bucket-postpone", -2), ("dt=1", None), ("bucket-a", None)],
)
def test_bucket_directories_are_told_from_others(name: str, bucket: int | None) -> None:
    assert TablePaths.bucket_of_directory(name) == bucket
