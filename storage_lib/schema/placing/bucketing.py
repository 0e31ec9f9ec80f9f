"""Assign rows to partitions and buckets, identically to other engines (docs/format.md, 1.10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.encoding.binary_columns import encode_rows
from storage_lib.schema.encoding.binary_row import EMPTY_ROW, decode_row
from storage_lib.schema.encoding.canonical_rows import canonical_rows
from storage_lib.schema.encoding.murmur import hash_rows
from storage_lib.schema.table_schema import DataField, TableSchema
from storage_lib.schema.types.data_types import TypeRoot, parse_data_type

_BYTES = parse_data_type("BYTES")
_RADIX_SORT_MAX = 1 << 16
_CODES_MAX = 1 << 31


def bucket_of(rows: pa.RecordBatch, schema: TableSchema, *, bucket_count: int | None = None) -> npt.NDArray[np.int32]:
    """Return the bucket of each row; ``rows`` hold at least the bucket key columns, in the schema's types.

    ``bucket_count`` overrides the table's, for a partition that was written with another one.
    Raises ``InvalidInputError`` if the table has no fixed number of buckets.
    """
    count = schema.bucket_count if bucket_count is None else bucket_count
    if schema.is_bucket_unaware and bucket_count is None:
        return np.zeros(rows.num_rows, dtype=np.int32)
    if count < 1:
        message = (
            f"the table has option bucket={count}, so its rows are assigned to buckets as they arrive; only tables "
            "with a fixed number of buckets can be written. Write it with the engine that made it"
        )
        raise InvalidInputError(message)
    if count == 1:
        return np.zeros(rows.num_rows, dtype=np.int32)
    columns = _columns(rows, schema.bucket_key_fields)
    function = schema.options.get("bucket-function.type", "default").lower()
    if schema.counts_values:
        # Equal rows must have the same bucket, so NaNs, both zeros and nested values are encoded canonically.
        hashes = hash_rows([canonical_rows(columns).cast(pa.binary())], [_BYTES])
        return np.abs(np.fmod(hashes, np.int32(count)))
    if function == "default":
        hashes = hash_rows(columns, [field.type for field in schema.bucket_key_fields])
        # As in Java, the remainder has the dividend's sign and is made positive afterwards.
        return np.abs(np.fmod(hashes, np.int32(count)))
    if function == "mod" and [field.type.root for field in schema.bucket_key_fields] in _MODULO_KEYS:
        return np.mod(columns[0].fill_null(0).to_numpy(), count).astype(np.int32)
    message = (
        f"option bucket-function.type={function} is not supported for writing; use a table with the default function"
    )
    raise InvalidInputError(message)


def key_hashes(rows: pa.RecordBatch, schema: TableSchema) -> npt.NDArray[np.int32]:
    """Hash each row's primary key without partition columns; dynamic buckets are assigned by it."""
    fields = schema.key_fields
    return hash_rows(_columns(rows, fields), [field.type for field in fields])


def partition_codes(rows: pa.RecordBatch, schema: TableSchema) -> tuple[list[bytes], npt.NDArray[np.int64]]:
    """Return the distinct partitions as bytes, and each row's index into them."""
    return _partitions(rows, schema.partition_fields)


def partition_hash(partition: bytes, schema: TableSchema) -> int:
    """Hash a serialized partition; 0 for an unpartitioned table."""
    fields = schema.partition_fields
    if not fields:
        return 0
    values = decode_row(partition, [field.type for field in fields])
    columns = [pa.array([value], field.type.arrow) for value, field in zip(values, fields, strict=True)]
    return int(hash_rows(columns, [field.type for field in fields])[0])


def group_rows(rows: pa.RecordBatch, schema: TableSchema) -> Iterator[tuple[bytes, int, npt.NDArray[np.int64]]]:
    """Group rows: yield ``(partition bytes, bucket, row numbers in input order)``, each pair once."""
    if not rows.num_rows:
        return
    buckets = bucket_of(rows, schema)
    partitions, codes = _partitions(rows, schema.partition_fields)
    count = len(schema.bucket_numbers)
    if len(partitions) * count == 1:
        yield partitions[0], 0, np.arange(rows.num_rows)
        return
    group = codes * count + buckets
    if len(partitions) * count <= _RADIX_SORT_MAX:
        group = group.astype(np.uint16)
    order = np.argsort(group, kind="stable")
    sorted_group = group[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_group[1:] != sorted_group[:-1])))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        code, bucket = divmod(int(sorted_group[start]), count)
        yield partitions[code], bucket, order[start:end]


_MODULO_KEYS = ([TypeRoot.INTEGER], [TypeRoot.BIGINT])


def _columns(rows: pa.RecordBatch, fields: Sequence[DataField]) -> list[pa.Array]:
    return [rows.column(field.name) for field in fields]


def _partitions(rows: pa.RecordBatch, fields: Sequence[DataField]) -> tuple[list[bytes], npt.NDArray[np.int64]]:
    """Return the distinct partitions as bytes, and each row's index into them."""
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    if not fields:
        return [EMPTY_ROW], codes
    columns = _columns(rows, fields)
    distinct = 1
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        distinct *= len(encoded.dictionary)
        if distinct > _CODES_MAX:
            values, codes = np.unique(codes, return_inverse=True)
            distinct = len(values)
    first_rows, codes = _first_rows(codes, distinct)
    taken = pa.array(first_rows)
    encoded_rows = encode_rows([column.take(taken) for column in columns], [field.type for field in fields])
    return encoded_rows.to_pylist(), codes


def _first_rows(codes: npt.NDArray[np.int64], distinct: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return one row for each code that occurs, and the codes renumbered without gaps."""
    if distinct > len(codes):
        _, first, renumbered = np.unique(codes, return_index=True, return_inverse=True)
        return first, renumbered
    any_row = np.full(distinct, -1, dtype=np.int64)
    any_row[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    occurs = any_row >= 0
    if occurs.all():
        return any_row, codes
    return any_row[occurs], (np.cumsum(occurs) - 1)[codes]
