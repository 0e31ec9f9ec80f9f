"""Views of version 2 of Iceberg's format, with position delete files, and what a change of the version does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from storage_lib import DynamicTable, InvalidInputError, SetOption, open_catalog
from storage_lib.catalog.catalog import Catalog
from storage_lib.io.local.local_file_io import LocalFileIO
from tests.support.extras import needs
from tests.support.iceberg_readers import READERS, canonical, metadata_of, needs_readers, read_view
from tests.support.view_reader import newest_metadata, records, shown_rows, table_rows

VERSION = "metadata.iceberg.format-version"
COLUMNS = {"id": "BIGINT NOT NULL", "p": "STRING NOT NULL", "n": "INT"}
PATH_ID, POSITION_ID = 2147483546, 2147483545


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return open_catalog(str(tmp_path / "lake"))


def a_table(catalog: Catalog, version: str, **options: str) -> DynamicTable:
    """Create a table with a view and three snapshots: two data files, the first of which has two hidden rows."""
    given = {"metadata.iceberg.storage": "table-location", VERSION: version, "log.system": "none", "write-only": "true"}
    table = catalog.create_table(
        "d.t", COLUMNS, primary_key=["id", "p"], partition_by=["p"], options={**given, **options}
    )
    table.append([{"id": each, "p": "a b", "n": each} for each in range(5)])
    table.upsert([{"id": 1, "p": "a b", "n": 10}])
    table.delete([{"id": 3, "p": "a b"}])
    return table


def metadata(table: DynamicTable) -> dict[str, Any]:
    """Return the newest metadata; check that its current snapshot has the table's rows."""
    files = table.environment.file_io
    found = newest_metadata(files, f"{table.location}/metadata")
    assert shown_rows(files, found) == table_rows(table.to_arrow())
    return found


def entries(path: str) -> list[dict[str, Any]]:
    return records(LocalFileIO(), path)


def test_hidden_rows_of_a_data_file_are_in_one_position_delete_file(catalog: Catalog) -> None:
    table = a_table(catalog, "2")

    (manifest,) = (each for each in entries(metadata(table)["snapshots"][-1]["manifest-list"]) if each["content"] == 1)
    files = [each["data_file"] for each in entries(manifest["manifest_path"])]
    oldest = next(each for each in files if each["record_count"] == 2)
    schema = pq.read_schema(oldest["file_path"])
    assert {each["file_format"] for each in files} == {"PARQUET"}
    assert [(each.name, int(each.metadata[b"PARQUET:field_id"]), each.nullable) for each in schema] == [
        ("file_path", PATH_ID, False),
        ("pos", POSITION_ID, False),
    ]
    assert pq.read_table(oldest["file_path"]).to_pylist() == [
        {"file_path": oldest["referenced_data_file"], "pos": place} for place in (1, 3)
    ]
    path = oldest["referenced_data_file"].encode()
    for bounds, place in (("lower_bounds", 1), ("upper_bounds", 3)):
        assert {each["key"]: each["value"] for each in oldest[bounds]} == {
            PATH_ID: path,
            POSITION_ID: place.to_bytes(8, "little"),
        }


def test_version_2_has_no_ids_of_rows(catalog: Catalog) -> None:
    found = metadata(a_table(catalog, "2"))

    assert found["format-version"] == 2
    assert "next-row-id" not in found
    assert not any("first-row-id" in each for each in found["snapshots"])
    for manifest in entries(found["snapshots"][-1]["manifest-list"]):
        assert "first_row_id" not in manifest
        assert not any("first_row_id" in each["data_file"] for each in entries(manifest["manifest_path"]))


@needs("pyiceberg")
@needs_readers
def test_a_change_of_the_version_begins_the_view_again(catalog: Catalog, tmp_path: Path) -> None:
    table = a_table(catalog, "3", **{"metadata.delta.enabled": "true"})
    for version, first in (("2", 3), ("3", 4)):
        table = table.alter(SetOption(VERSION, version))

        found = metadata(table)
        assert found["format-version"] == int(version)
        assert [each["snapshot-id"] for each in found["snapshots"]] == [first]
        for reader in READERS:
            seen = read_view(reader, metadata_of(table, first), tmp_path)
            assert canonical(seen, [*COLUMNS]) == canonical(table.to_arrow(), [*COLUMNS])
        table.upsert([{"id": 4, "p": "a b", "n": first}])
        assert [each["snapshot-id"] for each in metadata(table)["snapshots"]] == [first, first + 1]
        assert table.describe()["delta log shows"] == f"snapshot {first + 1}"


@pytest.mark.parametrize("option", [(VERSION, "2"), ("metadata.iceberg.storage", "hadoop-catalog")])
def test_a_process_that_opened_the_table_before_publishes_in_the_altered_view(
    catalog: Catalog, option: tuple[str, str]
) -> None:
    before = a_table(catalog, "3", **{"metadata.delta.enabled": "true"})
    table = before.alter(SetOption(*option))

    before.upsert([{"id": 0, "p": "a b", "n": 7}])

    assert table.inspect.health().view_lag == 0
    assert table.describe()["delta log shows"] == "snapshot 4"
    table.upsert([{"id": 2, "p": "a b", "n": 8}])
    before.upsert([{"id": 0, "p": "a b", "n": 9}])
    found = json.loads(Path(metadata_of(table, 6)).read_text())
    files = table.environment.file_io
    assert found["format-version"] == int(table.options.iceberg_version)
    assert [each["snapshot-id"] for each in found["snapshots"]] == [3, 4, 5, 6]
    for number in (3, 4, 5, 6):
        assert shown_rows(files, found, number) == table_rows(table.to_arrow(snapshot_id=number))


def test_a_view_that_waits_for_a_compaction_has_the_former_version_until_then(catalog: Catalog) -> None:
    columns = {"id": "BIGINT NOT NULL", "n": "INT"}
    options = {"metadata.iceberg.storage": "table-location", "merge-engine": "partial-update", "write-only": "true"}
    table = catalog.create_table("d.t", columns, primary_key=["id"], options=options)
    for number in range(2):
        table.append([{"id": 1, "n": number}])

    table = table.alter(SetOption(VERSION, "2"))
    shown = json.loads(Path(metadata_of(table, 1)).read_text())
    table.compact(full=True)

    assert shown["format-version"] == 3
    assert metadata(table)["format-version"] == 2
    assert table.inspect.health().view_lag == 0


def test_a_branch_does_not_change_the_version(catalog: Catalog) -> None:
    table = a_table(catalog, "3")
    table.tags.create("start")
    table.branches.create("b", tag="start")

    with pytest.raises(InvalidInputError, match=f"option {VERSION} cannot be changed on a branch"):
        table.branches.open("b").alter(SetOption(VERSION, "2"))


@pytest.mark.parametrize("version", ["1", "4", "v2", ""])
def test_another_version_is_refused(catalog: Catalog, version: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"{VERSION}.*it has to be 2 or 3"):
        a_table(catalog, version)
