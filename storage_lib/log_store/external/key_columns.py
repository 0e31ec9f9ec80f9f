"""Names of the columns that a record's key has, for a table that is created from records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.codec.avro_records import by_schema, record_written

if TYPE_CHECKING:
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry

_AVRO = b"\x00"


def key_columns(key: bytes, registry: SchemaRegistry | None) -> tuple[str, ...]:
    """Return the names of the key's columns. Raises ``InvalidInputError`` for a key that has no names."""
    try:
        if key.startswith(_AVRO) and registry is not None:
            (written,) = by_schema(pa.array([key], pa.binary()))
            _, fields = record_written(registry, written.number)
            return tuple(fields)
        value = json.loads(key)
        if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
            value = value["payload"]
        if isinstance(value, dict) and value:
            return tuple(value)
    except ValueError as error:
        message = f"the record's key {key[:100]!r} can't be read: {error}. Create the table with its key"
        raise InvalidInputError(message) from error
    message = f"the record's key {key[:100]!r} does not name its columns. Create the table with its key"
    raise InvalidInputError(message)
