"""Manifest lists say which partitions a manifest has, so that readers leave out whole manifests, and never a row."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from storage_lib import DynamicTable, open_catalog
from storage_lib.iceberg.encode.partition_summary import partition_summaries
from tests.iceberg.drawn_views import SCALARS, VALUES
from tests.iceberg.test_view_statistics import OPERATORS, is_kept
from tests.support.iceberg_readers import (
    canonical,
    filtered_by_duckdb,
    manifests_read_by_pyiceberg,
    metadata_of,
    needs_readers,
    planned_by_pyiceberg,
)
from tests.support.iceberg_spark import counted_by_spark, needs_spark_of_iceberg
from tests.support.view_reader import newest_metadata, records

OPTIONS = {"metadata.iceberg.storage": "table-location", "log.system": "none", "write-only": "true"}
TYPES = [of for of in (*SCALARS, "BOOLEAN", "FLOAT", "DOUBLE") if of != "BYTES"]
"""Types of partition columns; values of BYTES have no name as a directory."""


def table_of(directory: Path, **columns: str) -> DynamicTable:
    """Create an append-only table that is partitioned by columns."""
    options = {**OPTIONS, "write-mode": "append-only"}
    return open_catalog(str(directory / "lake")).create_table(
        "d.t", {"id": "BIGINT", **columns}, partition_by=[*columns], options=options
    )


def summary_of(of: str, directory: Path, *values: object) -> Any:
    found = partition_summaries(table_of(directory, p=of).schema, [{"p": value} for value in values])
    return None if found is None else (found[0]["contains_null"], found[0]["lower_bound"], found[0]["upper_bound"])


@pytest.mark.parametrize(
    ("of", "values", "summary"),
    [
        ("STRING", ["b", "a", None], (True, b"a", b"b")),
        ("STRING", [None], (True, None, None)),
        ("STRING", ["a", "\ue000"], None),
        ("CHAR(3)", ["a"], None),
        ("BIGINT", [2, -(2**63)], (False, struct.pack("<q", -(2**63)), struct.pack("<q", 2))),
        # As bytes, the negative one would be the higher one.
        ("DECIMAL(9, 2)", [b"\xff\xff\xff\x80", b"\x00\x00\x00\x80"], (False, b"\x80", b"\x00\x80")),
        ("DOUBLE", [0.0], (False, struct.pack("<d", -0.0), struct.pack("<d", 0.0))),
        ("DOUBLE", [1.0, float("nan")], None),
        ("BOOLEAN", [True], (False, b"\1", b"\1")),
    ],
)
def test_bounds_of_partitions_are_single_values_of_iceberg(
    of: str, values: list[object], summary: object, tmp_path: Path
) -> None:
    assert summary_of(of, tmp_path, *values) == summary


def test_a_table_without_partitions_has_no_summaries(tmp_path: Path) -> None:
    table = table_of(tmp_path)

    assert partition_summaries(table.schema, [{}]) is None


@needs_readers
def test_readers_leave_out_manifests_of_other_partitions_by_each_type(tmp_path: Path) -> None:
    columns = {f"p{place}": of for place, of in enumerate(TYPES)}
    table = table_of(tmp_path, **columns)
    made = [{"id": n, **{name: VALUES[of](n) for name, of in columns.items()}} for n in (1, 2, 5)]
    made.append({"id": 9, **dict.fromkeys(columns)})
    for row in made:
        table.append([row])
    metadata = metadata_of(table, len(made))

    for name, of in columns.items():
        value = made[1][name]
        for operator in (*OPERATORS, "is null", "is not null"):
            if of == "BOOLEAN" and operator not in ("=", "!=", "is null", "is not null"):
                continue
            condition = (name, operator, value if operator in OPERATORS else None)
            kept = [is_kept(row[name], operator, value) for row in made]
            _, found = planned_by_pyiceberg(metadata, tmp_path, condition)
            expected = [row["id"] for row, stays in zip(made, kept, strict=True) if stays]
            found_ids = [each for each in sorted(found.column("id").to_pylist()) if operator != "!=" or each != 9]
            assert found_ids == expected, (of, operator)
            if operator not in ("!=", "is not null"):
                assert manifests_read_by_pyiceberg(metadata, condition) == sum(kept), (of, operator)
            some, all_ = filtered_by_duckdb(metadata, condition)
            assert some == all_, (of, operator)


@pytest.mark.deep
@needs_spark_of_iceberg
@pytest.mark.timeout(900)
def test_spark_finds_the_row_of_each_partition_by_each_type(tmp_path: Path) -> None:
    columns = {f"p{place}": of for place, of in enumerate(TYPES) if of != "BOOLEAN"}
    table = table_of(tmp_path, **columns)
    made: list[dict[str, Any]] = [{name: VALUES[of](n) for name, of in columns.items()} for n in (1, 2, 5)]
    made.append(dict.fromkeys(columns))
    for place, row in enumerate(made):
        table.append([{"id": place, **row}])

    spelled = {"TIMESTAMP(6)": "TIMESTAMP_NTZ", "TIMESTAMP(4)": "TIMESTAMP_NTZ", "VARCHAR(30)": "STRING"}
    for name, of in columns.items():
        as_spark = "TIMESTAMP" if "ZONE" in of else spelled.get(of, of)
        value = made[1][name]
        for operator in ("=", ">", "<=", "is null"):
            condition = operator if operator == "is null" else f"{operator} CAST('{value}' AS {as_spark})"
            expected = sum(is_kept(row[name], operator, value) for row in made)
            assert counted_by_spark(table, f"{name} {condition}") == expected, (of, condition)


@needs_readers
def test_manifests_with_deleted_rows_and_those_written_again_have_summaries(tmp_path: Path) -> None:
    table = open_catalog(str(tmp_path / "lake")).create_table(
        "d.t", {"id": "BIGINT", "p": "INT", "n": "INT"}, primary_key=["p", "id"], partition_by=["p"], options=OPTIONS
    )
    for n in range(30):
        table.append([{"id": n, "p": n % 3, "n": n}, {"id": n - 1, "p": (n - 1) % 3, "n": -n}])
    table.compact(full=True)
    table.append([{"id": 0, "p": 0, "n": 7}])
    files = table.environment.file_io
    newest = newest_metadata(files, f"{table.location}/metadata")
    manifests = records(files, newest["snapshots"][-1]["manifest-list"])

    assert {each["content"] for each in manifests} == {0, 1}
    for each in manifests:
        values = [entry["data_file"]["partition"]["p"] for entry in records(files, each["manifest_path"])]
        (summary,) = each["partitions"]
        bounds = struct.pack("<i", min(values)), struct.pack("<i", max(values))
        assert (summary["lower_bound"], summary["upper_bound"], summary["contains_null"]) == (*bounds, False)
    metadata = metadata_of(table, newest["current-snapshot-id"])
    for value in range(3):
        files_read, found = planned_by_pyiceberg(metadata, tmp_path, ("p", "=", value))
        assert canonical(found, ["id", "n"]) == canonical(table.to_arrow(filter=f"p = {value}"), ["id", "n"])
        assert files_read < len(newest["snapshots"])
