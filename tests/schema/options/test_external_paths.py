"""External data directories, parsed from options."""

from __future__ import annotations

from collections import Counter

import pytest

from storage_lib import InvalidInputError
from storage_lib.schema.options.external_paths import (
    PATHS_OPTION,
    SPECIFIC_FS_OPTION,
    STRATEGY_OPTION,
    WEIGHTS_OPTION,
    declared_directories,
    external_paths_of,
    external_url,
    io_path,
    with_root_path,
)
from storage_lib.schema.options.option_precedence import merged_options

TWO = {PATHS_OPTION: "s3://fast/t, file:///slow//t/"}


@pytest.mark.parametrize(
    ("text", "url", "path"),
    [
        ("file:///data/t", "file:/data/t", "/data/t"),
        ("file:/data//t/", "file:/data/t", "/data/t"),
        ("file://localhost/a b/%20", "file:/a b/%20", "/a b/%20"),
        ("s3://lake/t/", "s3://lake/t", "s3://lake/t"),
        ("s3://lake", "s3://lake", "s3://lake"),
        ("hdfs://namenode:9000/t", "hdfs://namenode:9000/t", "hdfs://namenode:9000/t"),
    ],
)
def test_a_directory_is_spelled_as_hadoop_spells_paths(text: str, url: str, path: str) -> None:
    assert external_url(text, PATHS_OPTION) == url
    assert io_path(url) == path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/data/t", "has no scheme"),
        ("data", "has no scheme"),
        ("file:/data/../etc", "'.' or '..'"),
        ("s3://lake/./t", "'.' or '..'"),
        ("file:///", "root of the disk"),
        ("file://other/data", "not an absolute local path"),
        ("file:data", "not an absolute local path"),
        ("s3:///t", "names no server or bucket"),
        ("hdfs:/t", "names no server or bucket"),
    ],
)
def test_what_names_no_directory_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"option {PATHS_OPTION}: .*{said}"):
        external_url(text, PATHS_OPTION)


def test_without_a_strategy_new_files_stay_in_the_table() -> None:
    assert external_paths_of(TWO).url_of("bucket-0", "data-0.parquet", 0) is None
    assert declared_directories(TWO) == ("s3://fast/t", "file:/slow/t")


def test_files_go_to_one_directory_after_the_other() -> None:
    paths = external_paths_of({**TWO, STRATEGY_OPTION: "Round-Robin"})

    assert [paths.url_of("dt=a/bucket-1", f"data-{index}.orc", index) for index in range(3)] == [
        "s3://fast/t/dt=a/bucket-1/data-0.orc",
        "file:/slow/t/dt=a/bucket-1/data-1.orc",
        "s3://fast/t/dt=a/bucket-1/data-2.orc",
    ]


def test_entropy_spreads_files_over_directories_of_binary_digits() -> None:
    paths = external_paths_of({PATHS_OPTION: "s3://lake/t", STRATEGY_OPTION: "entropy-inject"})
    urls = [paths.url_of("bucket-0", f"data-{index}.orc", index) or "" for index in range(50)]

    lengths = {tuple(map(len, url.removeprefix("s3://lake/t/bucket-0/").split("/")[:-1])) for url in urls}
    assert lengths == {(4, 4, 4, 8)}
    assert len({url.rpartition("/")[0] for url in urls}) > 40


def test_weights_say_how_many_files_a_directory_gets() -> None:
    paths = external_paths_of({**TWO, STRATEGY_OPTION: "weight-robin", WEIGHTS_OPTION: "9, 1"})

    counts = Counter((paths.url_of("bucket-0", f"data-{index}.orc", index) or "")[:2] for index in range(1000))
    assert 850 < counts["s3"] < 950
    assert counts["s3"] + counts["fi"] == 1000


def test_a_specific_file_system_takes_its_own_directories() -> None:
    given = {**TWO, STRATEGY_OPTION: "specific-fs", SPECIFIC_FS_OPTION: "S3"}

    assert external_paths_of(given).directories == ("s3://fast/t",)
    with pytest.raises(InvalidInputError, match=r"whose scheme is .*=oss, and there is none"):
        external_paths_of({**given, SPECIFIC_FS_OPTION: "oss"})


@pytest.mark.parametrize("weights", ["1", "1,2,3", "1,0", "1,-2", "a,b", ""])
def test_weights_are_positive_and_one_for_each_directory(weights: str) -> None:
    with pytest.raises(InvalidInputError, match="a positive integer for each of the 2 directories"):
        external_paths_of({**TWO, STRATEGY_OPTION: "weight-robin", WEIGHTS_OPTION: weights})


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'fastest'; it has to be one of none, specific-fs, round-robin"):
        external_paths_of({**TWO, STRATEGY_OPTION: "fastest"})


def test_a_root_path_becomes_a_directory_of_the_tables_own() -> None:
    assert with_root_path({"file.root-path": "/data/", "bucket": "2"}, "shop.orders") == {
        "bucket": "2",
        PATHS_OPTION: "file:/data/shop.db/orders",
        STRATEGY_OPTION: "round-robin",
    }
    assert with_root_path({"file.root-path": "s3://lake"}, "shop.orders")[PATHS_OPTION] == "s3://lake/shop.db/orders"
    with pytest.raises(InvalidInputError, match="give the one or the other"):
        with_root_path({"file.root-path": "/data", **TWO}, "shop.orders")
    with pytest.raises(InvalidInputError, match="has no scheme"):
        with_root_path({"file.root-path": "data"}, "shop.orders")


def test_options_of_directories_are_one_choice() -> None:
    connection = {"file.root-path": "/cold", "bucket": "2"}

    assert merged_options(table=TWO, connection=connection) == {**TWO, "bucket": "2"}
    assert merged_options(table={"bucket": "3"}, session={"table-storage.file.root-path": "/warm"}, connection=TWO) == {
        "bucket": "3",
        "file.root-path": "/warm",
    }
