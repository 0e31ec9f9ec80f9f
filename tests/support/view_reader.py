"""Reads a table's Iceberg view by the specification, without code of the library, on any storage."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from storage_lib.io.file_io import FileIO

ID = b"PARQUET:field_id"


def newest_metadata(files: FileIO, directory: str) -> dict[str, Any]:
    """Return the metadata that a reader of Iceberg's Hadoop tables finds: by the hint, and then upwards."""
    number = int(files.read_bytes(f"{directory}/version-hint.text"))
    while files.exists(f"{directory}/v{number + 1}.metadata.json"):
        number += 1
    found: dict[str, Any] = json.loads(files.read_bytes(f"{directory}/v{number}.metadata.json"))
    return found


def shown_rows(files: FileIO, metadata: dict[str, Any], snapshot_id: int | None = None) -> list[str]:
    """Return the rows of a snapshot (default: the current one) as sorted text."""
    wanted = metadata["current-snapshot-id"] if snapshot_id is None else snapshot_id
    if wanted == -1:
        return []
    (snapshot,) = (each for each in metadata["snapshots"] if each["snapshot-id"] == wanted)
    schema_id = metadata["current-schema-id"] if snapshot_id is None else snapshot["schema-id"]
    (schema,) = (each for each in metadata["schemas"] if each["schema-id"] == schema_id)
    data, deletes = {}, {}
    for manifest in records(files, snapshot["manifest-list"]):
        for entry in records(files, manifest["manifest_path"]):
            file = entry["data_file"]
            if manifest["content"] == 0:
                assert file["file_path"] not in data
                data[file["file_path"]] = file
            else:
                assert file["referenced_data_file"] not in deletes
                deletes[file["referenced_data_file"]] = file
    assert deletes.keys() <= data.keys()
    rows = []
    for path, file in data.items():
        table = _columns(files, path, schema)
        assert table.num_rows == file["record_count"]
        hidden = _positions(files, deletes[path]) if path in deletes else BitMap64()
        rows += [row for place, row in enumerate(table.to_pylist()) if place not in hidden]
    return sorted(map(repr, rows))


def table_rows(rows: pa.Table) -> list[str]:
    """Return a table's rows in the same form."""
    return sorted(map(repr, rows.to_pylist()))


def records(files: FileIO, path: str) -> list[dict[str, Any]]:
    """Return the entries of a manifest list or a manifest."""
    return [dict(each) for each in fastavro.reader(io.BytesIO(files.read_bytes(path)))]  # type: ignore[arg-type]


def _columns(files: FileIO, path: str, schema: dict[str, Any]) -> pa.Table:
    table = pq.read_table(pa.BufferReader(files.read_bytes(path)))
    by_id = {int(each.metadata[ID]): table.column(place) for place, each in enumerate(table.schema)}
    missing = pa.nulls(table.num_rows)
    return pa.table({each["name"]: by_id.get(each["id"], missing) for each in schema["fields"]})


def _positions(files: FileIO, deletes: dict[str, Any]) -> BitMap64:
    data = files.read_bytes(deletes["file_path"])
    assert len(data) == deletes["file_size_in_bytes"]
    if deletes["file_format"] == "PARQUET":
        table = pq.read_table(pa.BufferReader(data))
        assert set(table["file_path"].to_pylist()) == {deletes["referenced_data_file"]}
        found = BitMap64(table["pos"].to_pylist())
    else:
        blob = data[deletes["content_offset"] :][: deletes["content_size_in_bytes"]]
        found = BitMap64.deserialize(blob[8:-4])
    assert len(found) == deletes["record_count"]
    return found
