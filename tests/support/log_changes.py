"""Builders for log tests: one-line schemas, changes as text, and a log read back as a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS

if TYPE_CHECKING:
    from storage_lib.log_store.log_store import LogBatch, LogStore


@dataclass(frozen=True)
class LoggedChange:
    """One change read from a log."""

    bucket: int
    kind: str
    row: tuple[object, ...]
    offset: int
    repairs: int | None


def log_schema(*, key: bool = True, buckets: int = 1) -> TableSchema:
    """Return a schema of ``id`` BIGINT and ``name`` STRING, with primary key ``id`` or none."""
    columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    keys = ("id",) if key else ()
    return new_table_schema(columns, primary_keys=keys, options={"bucket": str(buckets)}, time_millis=0)


def changes(schema: TableSchema, text: str) -> tuple[pa.RecordBatch, pa.Array]:
    """Parse ``"+I 1 a, -D 2 b"`` into rows and kinds; ``null`` is null."""
    parts = [part.split() for part in text.split(",")]
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([int(number) for _, number, _ in parts], pa.int64()),
            pa.array([None if name == "null" else name for _, _, name in parts], pa.string()),
        ],
        schema=schema.arrow_schema,
    )
    return rows, pa.array([ROW_KIND_SYMBOLS.index(kind) for kind, _, _ in parts], pa.int8())


def change_texts(batch: LogBatch) -> list[str]:
    """Format a batch's changes as text; the reverse of ``changes``."""
    return [
        f"{ROW_KIND_SYMBOLS[kind]} {row['id']} {'null' if row['name'] is None else row['name']}"
        for kind, row in zip(batch.kinds.to_pylist(), batch.rows.to_pylist(), strict=True)
    ]


def read_log(
    store: LogStore,
    start: LogOffsets | None = None,
    end: LogOffsets | None = None,
    buckets: tuple[int, ...] | None = None,
) -> list[LoggedChange]:
    """Return every change from ``start`` (default: the oldest retained)."""
    first = store.earliest_offsets() if start is None else start
    found: list[LoggedChange] = []
    for batch in store.read(first, end, buckets=buckets):
        found += [
            LoggedChange(batch.bucket, ROW_KIND_SYMBOLS[kind], tuple(row.values()), offset, repairs)
            for kind, row, offset, repairs in zip(
                batch.kinds.to_pylist(),
                batch.rows.to_pylist(),
                batch.offsets.to_pylist(),
                batch.repairs.to_pylist(),
                strict=True,
            )
        ]
    return found


def log_texts(store: LogStore, start: LogOffsets | None = None, end: LogOffsets | None = None) -> list[str]:
    """Return every change of every bucket as text, in the order read."""
    first = store.earliest_offsets() if start is None else start
    return [text for batch in store.read(first, end) for text in change_texts(batch)]
