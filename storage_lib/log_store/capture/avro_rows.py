"""Reads the rows in Avro records, each by the schema that it was written with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.log_store.capture.row_images import RowImages, merged_images, no_images
from storage_lib.log_store.capture.written_rows import images_of
from storage_lib.log_store.codec.avro_records import by_schema, fields_of, record_written
from storage_lib.log_store.conversion.avro_value_type import value_type

if TYPE_CHECKING:
    from storage_lib.format.avro_types import AvroSchema
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry


def avro_images(
    table: CapturedTable, registry: SchemaRegistry, records: pa.Array, names: Sequence[str] | None = None
) -> RowImages:
    """Return the columns ``names`` (default: all) of records (binary without nulls) that are rows themselves."""
    parts = [(np.zeros(0, np.int64), no_images(table.columns, 0))]
    for each in by_schema(records):
        record, types = record_written(registry, each.number)
        wanted = [name for name in (names or table.columns.names) if name in types]
        found = each.fields(record, wanted)
        everywhere = np.ones(len(each.indices), bool)
        parts.append((each.indices, row_images(table, found, types, everywhere)))
    return merged_images(parts if len(parts) == 1 else parts[1:])


def row_images(
    table: CapturedTable, found: Mapping[str, pa.Array], types: Mapping[str, AvroSchema], is_there: np.ndarray
) -> RowImages:
    """Return the images of the columns of the table that were found."""
    columns = {name: (found[name], value_type(types[name])) for name in table.columns.names if name in found}
    return images_of(table, columns, is_there, {})


def side_images(table: CapturedTable, side: pa.Array, of: AvroSchema) -> RowImages:
    """Return the images of one side of an envelope: a struct, or null where the record has no such side."""
    if pa.types.is_null(side.type):
        return no_images(table.columns, len(side))
    types = fields_of(of)
    found = {name: side.field(name) for name in table.columns.names if name in types}
    return row_images(table, found, types, side.is_valid().to_numpy(zero_copy_only=False))
