"""Avro schemas of manifests and manifest lists, with the field ids of the specification."""

from __future__ import annotations

from typing import Any

from storage_lib.schema.options.table_options import IcebergVersion


def entry_schema(partition: dict[str, Any], version: IcebergVersion) -> dict[str, Any]:
    """Return the schema of a manifest's entries; ``partition`` is the record of a partition."""
    file_fields = [
        _required(134, "content", "int"),
        _required(100, "file_path", "string"),
        _required(101, "file_format", "string"),
        _required(102, "partition", partition),
        _required(103, "record_count", "long"),
        _required(104, "file_size_in_bytes", "long"),
        _optional(108, "column_sizes", _map("k117_v118", 117, 118, "long")),
        _optional(109, "value_counts", _map("k119_v120", 119, 120, "long")),
        _optional(110, "null_value_counts", _map("k121_v122", 121, 122, "long")),
        _optional(137, "nan_value_counts", _map("k138_v139", 138, 139, "long")),
        _optional(125, "lower_bounds", _map("k126_v127", 126, 127, "bytes")),
        _optional(128, "upper_bounds", _map("k129_v130", 129, 130, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}),
        _optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}),
        _optional(140, "sort_order_id", "int"),
        _optional(143, "referenced_data_file", "string"),
    ]
    if version is IcebergVersion.V3:
        file_fields += [
            _optional(142, "first_row_id", "long"),
            _optional(144, "content_offset", "long"),
            _optional(145, "content_size_in_bytes", "long"),
        ]
    fields = [
        _required(0, "status", "int"),
        _optional(1, "snapshot_id", "long"),
        _optional(3, "sequence_number", "long"),
        _optional(4, "file_sequence_number", "long"),
        _required(2, "data_file", {"type": "record", "name": "r2", "fields": file_fields}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


def _required(field_id: int, name: str, of: Any) -> dict[str, Any]:
    return {"name": name, "type": of, "field-id": field_id}


def _optional(field_id: int, name: str, of: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", of], "default": None, "field-id": field_id}


def _map(name: str, key_id: int, value_id: int, value: str) -> dict[str, Any]:
    pair = {
        "type": "record",
        "name": name,
        "fields": [_required(key_id, "key", "int"), _required(value_id, "value", value)],
    }
    return {"type": "array", "logicalType": "map", "items": pair}


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
}


def list_schema(version: IcebergVersion) -> dict[str, Any]:
    """Return the schema of a manifest list's entries."""
    fields = [
        _required(500, "manifest_path", "string"),
        _required(501, "manifest_length", "long"),
        _required(502, "partition_spec_id", "int"),
        _required(517, "content", "int"),
        _required(515, "sequence_number", "long"),
        _required(516, "min_sequence_number", "long"),
        _required(503, "added_snapshot_id", "long"),
        _required(504, "added_files_count", "int"),
        _required(505, "existing_files_count", "int"),
        _required(506, "deleted_files_count", "int"),
        _required(512, "added_rows_count", "long"),
        _required(513, "existing_rows_count", "long"),
        _required(514, "deleted_rows_count", "long"),
        _optional(507, "partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}),
        _optional(519, "key_metadata", "bytes"),
    ]
    if version is IcebergVersion.V3:
        fields.append(_optional(520, "first_row_id", "long"))
    return {"type": "record", "name": "manifest_file", "fields": fields}
