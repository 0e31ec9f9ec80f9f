"""Append-only tables in bucket-unaware mode: ``(dt STRING, id BIGINT, item STRING)``, partitioned by dt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import parse_data_type


def append_schema(
    options: Mapping[str, str] | None = None,
    *,
    columns: str = "dt STRING; id BIGINT; item STRING",
    partition_keys: Sequence[str] = ("dt",),
) -> TableSchema:
    """Return a schema without a primary key; ``bucket`` is -1 unless given."""
    typed = [column.strip().split(" ", 1) for column in columns.split(";")]
    return new_table_schema(
        [(name, parse_data_type(spelled)) for name, spelled in typed],
        partition_keys=partition_keys,
        options={"bucket": "-1", "write-mode": "append-only", "partition.legacy-name": "false", **(options or {})},
        time_millis=0,
    )
