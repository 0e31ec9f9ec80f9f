"""A checkpoint of a Delta log: the state of a version as one Parquet file with a row for each action."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from storage_lib.errors import CorruptFileError
from storage_lib.iceberg.delta.delta_actions import NO_LOG, LogState, add_action, applied_actions

_NOTE_KEY = b"dynamicTable"
_TEXTS = pa.map_(pa.string(), pa.string())
_SCHEMA = pa.schema(
    [
        pa.field(
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.field("element", pa.string()))),
                    ("writerFeatures", pa.list_(pa.field("element", pa.string()))),
                ]
            ),
        ),
        pa.field(
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.field("element", pa.string()))),
                    ("configuration", _TEXTS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        pa.field(
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("tags", _TEXTS),
                    (
                        "deletionVector",
                        pa.struct(
                            [
                                ("storageType", pa.string()),
                                ("pathOrInlineDv", pa.string()),
                                ("offset", pa.int32()),
                                ("sizeInBytes", pa.int32()),
                                ("cardinality", pa.int64()),
                            ]
                        ),
                    ),
                ]
            ),
        ),
        pa.field(
            "remove", pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
        ),
        pa.field("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
    ]
)


def encode_checkpoint(state: LogState) -> tuple[bytes, int]:
    """Return the checkpoint of a state, and how many actions it has."""
    layout = state.layout
    actions: list[dict[str, Any]] = (
        [] if layout is None else [{"protocol": layout.protocol()}, {"metaData": layout.metadata()}]
    )
    actions += [{"add": add_action(each, changes_rows=False)} for each in state.files.values()]
    schema = _SCHEMA.with_metadata({_NOTE_KEY: _note(state)})
    table = pa.Table.from_pylist([_with_pairs(each) for each in actions], schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="snappy")
    return sink.getvalue().to_pybytes(), len(actions)


def is_checkpoint_of(data: bytes, state: LogState) -> bool:
    """Return whether this library wrote a checkpoint, of a version that shows the snapshot of ``state``.

    Raises ``CorruptFileError``.
    """
    try:
        found = pq.read_schema(pa.BufferReader(data)).metadata or {}
    except (pa.ArrowException, OSError) as error:
        message = f"version {state.version} of a Delta log has a checkpoint that is no Parquet file: {error!r}"
        raise CorruptFileError(message) from error
    return bool(found.get(_NOTE_KEY) == _note(state))


def _note(state: LogState) -> bytes:
    return f"{state.version} {state.snapshot_id} {state.identity}".encode()


def decode_checkpoint(data: bytes, version: int, source: str) -> LogState:
    """Return the state in a checkpoint; which snapshot it shows is not told there. Raises ``CorruptFileError``."""
    try:
        table = pq.read_table(pa.BufferReader(data), columns=["protocol", "metaData", "add"])
        return applied_actions(NO_LOG, version, table.to_pylist(maps_as_pydicts="strict"))
    except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
        message = f"{source} is not a valid checkpoint of a Delta log: {error!r}"
        raise CorruptFileError(message) from error


def _with_pairs(value: Any) -> Any:
    """Return a nested value with the pairs of its maps, as Arrow takes them."""
    if not isinstance(value, dict):
        return value
    return {
        name: list(each.items())
        if name in ("options", "configuration", "partitionValues", "tags")
        else _with_pairs(each)
        for name, each in value.items()
    }
