"""Avro records in Confluent's wire format: a zero byte, the schema's id (4 bytes, big-endian), the record.

Usually all records of a batch have the same schema; after a schema change, each record is read by its own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.errors import NotFoundError
from storage_lib.log_store.codec.avro_cursor import AvroCursor, with_names_spelled_out

if TYPE_CHECKING:
    from storage_lib.format.avro_types import AvroSchema
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    from storage_lib.schema.encoding.varint_columns import Bytes, Int64s

_MAGIC = 0
_HEAD_BYTES = 5


@dataclass(frozen=True, slots=True)
class WrittenAlike:
    """Records of a batch that were written with schema ``number``; ``indices`` are their places in the batch."""

    number: int
    indices: Int64s
    data: Bytes
    starts: Int64s
    ends: Int64s

    def fields(self, record: AvroSchema, wanted: Collection[str]) -> dict[str, pa.Array]:
        """Read as ``AvroCursor.fields`` does; also raise ``ValueError`` for a record that is longer than its bytes."""
        cursor = AvroCursor(self.data, self.starts)
        found = cursor.fields(record, wanted)
        if (cursor.positions > self.ends).any():
            message = "the bytes end before the record does"
            raise ValueError(message)
        return found


def head_of(number: int) -> bytes:
    """Return the header of a record written with schema ``number``."""
    return bytes([_MAGIC]) + number.to_bytes(_HEAD_BYTES - 1, "big")


def by_schema(values: pa.Array) -> list[WrittenAlike]:
    """Group the records of a binary array without nulls by schema. Raises ``ValueError`` for any other value."""
    offset_bytes, content = values.buffers()[1:]
    offsets = np.frombuffer(offset_bytes, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data, starts, ends = np.frombuffer(content or b"", np.uint8), offsets[:-1], offsets[1:]
    if not len(starts):
        return []
    if (ends - starts < _HEAD_BYTES).any() or (data[starts] != _MAGIC).any():
        message = "does not begin with 0 and a schema id, the wire format of schema registries"
        raise ValueError(message)
    heads = np.lib.stride_tricks.sliding_window_view(data, _HEAD_BYTES)[starts][:, 1:]
    numbers = np.ascontiguousarray(heads).view(">u4").ravel().astype(np.int64)
    return [
        WrittenAlike(int(number), np.flatnonzero(mine), data, starts[mine] + _HEAD_BYTES, ends[mine])
        for number in np.unique(numbers)
        for mine in (numbers == number,)
    ]


def in_order(parts: Sequence[tuple[Int64s, Sequence[pa.Array]]]) -> list[pa.Array]:
    """Merge the columns of a batch's parts, of which there is at least one, in the order of the batch."""
    if len(parts) == 1:
        return list(parts[0][1])
    order = pa.array(np.argsort(np.concatenate([indices for indices, _ in parts]), kind="stable"))
    return [pa.concat_arrays(list(columns)).take(order) for columns in zip(*(each for _, each in parts), strict=True)]


@lru_cache(maxsize=256)
def record_written(registry: SchemaRegistry, number: int) -> tuple[AvroSchema, Mapping[str, AvroSchema]]:
    """Return a schema's record type and its fields' types. Raises ``ValueError`` if the registry has no such record."""
    try:
        schema = registry.schema(number)
    except NotFoundError as error:
        raise ValueError(str(error)) from error
    record = with_names_spelled_out(json.loads(schema))
    fields = fields_of(record)
    if not fields:
        message = f"schema {number} is not a record with fields"
        raise ValueError(message)
    return record, fields


def fields_of(of: AvroSchema) -> Mapping[str, AvroSchema]:
    """Return the field types of a record, or of the record in a union; empty for other types."""
    for each in of if isinstance(of, list) else [of]:
        if isinstance(each, Mapping) and each["type"] == "record":
            return {field["name"]: field["type"] for field in each["fields"]}
    return {}
