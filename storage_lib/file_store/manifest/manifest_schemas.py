"""Avro schemas of manifests and manifest lists as this library writes them (docs/format.md, 1.5 to 1.7).

Files of other writers are read with their own schemas. Other readers rely on the order, the names and the null-first
unions.
"""

from __future__ import annotations

import json

NAMESPACE = "org.apache.paimon.avro.generated"
FORMAT_VERSION = 2


def _optional(avro_type: object) -> object:
    return ["null", avro_type]


def _field(name: str, avro_type: object) -> dict[str, object]:
    if isinstance(avro_type, list):
        return {"name": name, "type": avro_type, "default": None}
    return {"name": name, "type": avro_type}


def _record(name: str, fields: list[dict[str, object]]) -> dict[str, object]:
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


def _stats(name: str) -> dict[str, object]:
    return _record(
        name,
        [
            _field("_MIN_VALUES", "bytes"),
            _field("_MAX_VALUES", "bytes"),
            _field("_NULL_COUNTS", _optional({"type": "array", "items": ["null", "long"]})),
        ],
    )


_STRINGS = {"type": "array", "items": "string"}

MANIFEST_SCHEMA = json.dumps(
    _record(
        "record",
        [
            _field("_VERSION", "int"),
            _field("_KIND", "int"),
            _field("_PARTITION", "bytes"),
            _field("_BUCKET", "int"),
            _field("_TOTAL_BUCKETS", "int"),
            _field(
                "_FILE",
                _record(
                    "record__FILE",
                    [
                        _field("_FILE_NAME", "string"),
                        _field("_FILE_SIZE", "long"),
                        _field("_ROW_COUNT", "long"),
                        _field("_MIN_KEY", "bytes"),
                        _field("_MAX_KEY", "bytes"),
                        _field("_KEY_STATS", _stats("record__FILE__KEY_STATS")),
                        _field("_VALUE_STATS", _stats("record__FILE__VALUE_STATS")),
                        _field("_MIN_SEQUENCE_NUMBER", "long"),
                        _field("_MAX_SEQUENCE_NUMBER", "long"),
                        _field("_SCHEMA_ID", "long"),
                        _field("_LEVEL", "int"),
                        _field("_EXTRA_FILES", _STRINGS),
                        _field("_CREATION_TIME", _optional({"type": "long", "logicalType": "timestamp-millis"})),
                        _field("_DELETE_ROW_COUNT", _optional("long")),
                        _field("_EMBEDDED_FILE_INDEX", _optional("bytes")),
                        _field("_FILE_SOURCE", _optional("int")),
                        _field("_VALUE_STATS_COLS", _optional(_STRINGS)),
                        _field("_EXTERNAL_PATH", _optional("string")),
                        _field("_FIRST_ROW_ID", _optional("long")),
                        _field("_WRITE_COLS", _optional(_STRINGS)),
                    ],
                ),
            ),
        ],
    ),
    separators=(",", ":"),
)
"""One manifest entry: six top-level fields in exactly this order, ``_FILE`` not a union."""

MANIFEST_LIST_SCHEMA = json.dumps(
    _record(
        "record",
        [
            _field("_VERSION", "int"),
            _field("_FILE_NAME", "string"),
            _field("_FILE_SIZE", "long"),
            _field("_NUM_ADDED_FILES", "long"),
            _field("_NUM_DELETED_FILES", "long"),
            _field("_PARTITION_STATS", _stats("record__PARTITION_STATS")),
            _field("_SCHEMA_ID", "long"),
            _field("_MIN_BUCKET", _optional("int")),
            _field("_MAX_BUCKET", _optional("int")),
            _field("_MIN_LEVEL", _optional("int")),
            _field("_MAX_LEVEL", _optional("int")),
            _field("_MIN_ROW_ID", _optional("long")),
            _field("_MAX_ROW_ID", _optional("long")),
        ],
    ),
    separators=(",", ":"),
)
"""One manifest of a list; row ids are preserved only for tables whose other writers track rows."""

INDEX_FORMAT_VERSION = 1

INDEX_MANIFEST_SCHEMA = json.dumps(
    _record(
        "record",
        [
            _field("_VERSION", "int"),
            _field("_KIND", "int"),
            _field("_PARTITION", "bytes"),
            _field("_BUCKET", "int"),
            _field("_INDEX_TYPE", "string"),
            _field("_FILE_NAME", "string"),
            _field("_FILE_SIZE", "long"),
            _field("_ROW_COUNT", "long"),
            _field(
                "_DELETIONS_VECTORS_RANGES",
                _optional(
                    {
                        "type": "array",
                        "items": _optional(
                            _record(
                                "record__DELETIONS_VECTORS_RANGES",
                                [
                                    _field("f0", "string"),
                                    _field("f1", "int"),
                                    _field("f2", "int"),
                                    _field("_CARDINALITY", _optional("long")),
                                ],
                            )
                        ),
                    }
                ),
            ),
            _field("_EXTERNAL_PATH", _optional("string")),
        ],
    ),
    separators=(",", ":"),
)
"""One index file; for deletion vectors, with the range of each vector in it."""
