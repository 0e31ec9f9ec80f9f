"""Metadata of the records of a batch, as columns of the table with one value per record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.codec.log_columns import LogColumns
from storage_lib.log_store.conversion.captured_json import read_type
from storage_lib.log_store.conversion.captured_value_type import ValueType
from storage_lib.log_store.conversion.captured_values import Converted
from storage_lib.log_store.metadata.metadata_column import MetadataColumn
from storage_lib.log_store.metadata.metadata_names import OFFSET, PARTITION, TIMESTAMP, TOPIC

if TYPE_CHECKING:
    from storage_lib.schema.encoding.varint_columns import Int64s

WrittenParts: TypeAlias = Mapping[str, tuple[pa.Array, ValueType]]
"""Parts of records by their paths, such as ``source.lsn``, with their types."""

_LACKS = (
    "it has no {name}, and sequence.field has column {column!r}: nobody can tell which row of the key is newer. Let "
    "the connector write it, or take the order from other metadata"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMetadata:
    """``columns`` by name; ``problems`` by record: the column whose value can't be taken, and why."""

    columns: Mapping[str, pa.Array] = field(default_factory=dict)
    problems: Mapping[int, tuple[str, str]] = field(default_factory=dict)


def written_parts(
    columns: Sequence[MetadataColumn], part_of: Callable[[str], ValueType | None] | None, *, is_flattened: bool
) -> dict[str, ValueType]:
    """Return by path the types of the parts that the columns are filled with, of those that records have.

    ``part_of`` returns the type of a part by the records' schema; None if they have none.
    """
    found: dict[str, ValueType] = {}
    for each in columns:
        for path in each.metadata.paths(is_flattened=is_flattened):
            of = each.metadata.written if part_of is None else part_of(path)
            if of is not None:
                found[path] = of
    return found


def with_parts(keys: Mapping[str, pa.DataType], parts: Mapping[str, ValueType]) -> dict[str, pa.DataType]:
    """Return the keys of JSON objects that have to be read, with their types, for ``keys`` and the parts."""
    found = dict(keys)
    for path, of in parts.items():
        outer, _, inner = path.partition(".")
        if not inner:
            found.setdefault(outer, read_type(of))
            continue
        fields = {each.name: each.type for each in found.get(outer, pa.struct([]))}
        fields.setdefault(inner, read_type(of))
        found[outer] = pa.struct(list(fields.items()))
    return found


def read_parts(values: Mapping[str, pa.Array], parts: Mapping[str, ValueType]) -> WrittenParts:
    """Return the parts of records whose keys are ``values``."""
    found: dict[str, tuple[pa.Array, ValueType]] = {}
    for path, of in parts.items():
        outer, _, inner = path.partition(".")
        found[path] = (pc.struct_field(values[outer], inner) if inner else values[outer], of)
    return found


def of_parts(
    columns: Sequence[MetadataColumn], parts: WrittenParts, count: int, *, is_flattened: bool
) -> dict[str, Converted]:
    """Return the columns that are not Kafka's for ``count`` records, null where a record lacks the part.

    Raises ``InvalidInputError`` if no value of a part's type can be one of its column.
    """
    return {
        each.field.name: _first(
            [each.converted(*parts[path]) for path in each.metadata.paths(is_flattened=is_flattened) if path in parts],
            pa.nulls(count, each.field.type.arrow),
        )
        for each in columns
        if each.metadata.path is not None
    }


def _first(found: Sequence[Converted], nothing: pa.Array) -> Converted:
    array = pc.coalesce(*(each.array for each in found), nothing) if found else nothing
    return Converted(array, tuple(refusal for each in found for refusal in each.refusals))


def record_metadata(
    columns: Sequence[MetadataColumn],
    records: LogColumns,
    topic: str,
    parts: Sequence[tuple[Int64s, Mapping[str, Converted]]],
) -> RecordMetadata:
    """Put together the metadata of all records: Kafka's, and by groups of records that of their values."""
    if not columns:
        return RecordMetadata()
    arrays: dict[str, pa.Array] = {}
    problems: dict[int, tuple[str, str]] = {}
    for each in columns:
        name = each.field.name
        groups = parts
        if each.metadata.path is None:
            groups = [(np.arange(len(records)), {name: _of_kafka(each, records, topic)})]
        arrays[name] = _spread(groups, name, each, len(records))
        for indices, converted in groups:
            for refusal in converted[name].refusals:
                for index in indices[refusal.mask].tolist():
                    problems.setdefault(index, (name, refusal.reason))
        if each.is_required:
            reason = _LACKS.format(name=each.metadata.name, column=name)
            for index in np.flatnonzero(arrays[name].is_null().to_numpy(zero_copy_only=False)).tolist():
                problems.setdefault(index, (name, reason))
    return RecordMetadata(columns=arrays, problems=problems)


def _spread(
    groups: Sequence[tuple[Int64s, Mapping[str, Converted]]], name: str, column: MetadataColumn, count: int
) -> pa.Array:
    """Return one value per record, null for records in no group."""
    nothing = pa.nulls(1, column.field.type.arrow)
    every = pa.concat_arrays([nothing, *(converted[name].array for _, converted in groups)])
    places = np.zeros(count, np.int64)
    start = 1
    for indices, _ in groups:
        places[indices] = np.arange(start, start + len(indices))
        start += len(indices)
    return every.take(pa.array(places))


def _of_kafka(column: MetadataColumn, records: LogColumns, topic: str) -> Converted:
    count = len(records)
    origin = records.origin
    match column.metadata:
        case each if each is TOPIC:
            values = pa.repeat(topic, count)
        case each if each is PARTITION:
            values = pa.nulls(count, pa.int64()) if origin is None else pa.array(origin.partitions, pa.int64())
        case each if each is OFFSET:
            values = pa.array(records.offsets if origin is None else origin.offsets, pa.int64())
        case each if each is TIMESTAMP:
            # Records of very old producers have none.
            values = pa.array(records.timestamps, pa.int64(), mask=records.timestamps < 0)
        case other:
            message = f"{other.name} is not metadata of Kafka"
            raise AssertionError(message)
    return column.converted(values, column.metadata.written)
