"""Tables without a primary key that count equal rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import parse_data_type


def counted_schema(
    options: Mapping[str, str] | None = None,
    *,
    columns: str = "id BIGINT; item STRING",
    partition_keys: Sequence[str] = (),
) -> TableSchema:
    """Return a schema with one bucket unless ``options`` say otherwise."""
    typed = [column.strip().split(" ", 1) for column in columns.split(";")]
    return new_table_schema(
        [(name, parse_data_type(spelled)) for name, spelled in typed],
        partition_keys=partition_keys,
        options={"bucket": "1", "merge-engine": "value-count", "partition.legacy-name": "false", **(options or {})},
        time_millis=0,
    )
