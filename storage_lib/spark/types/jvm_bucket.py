"""The bucket of a row as an expression that Spark's JVM evaluates, for keys of integers, dates and strings.

Spark's ``hash`` of bytes is Paimon's bucket hash: Murmur3 by 4-byte words, seed 42, over the bucket key as a BinaryRow
(docs/format.md, 1.10). This module builds the key's bytes: eight bytes of header, eight for each column, then the
strings that do not fit into those, each padded to a multiple of eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, DateType, IntegerType, LongType, StringType

from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.spark.types.jvm_bytes import LONG_BYTES, big_endian, little_endian
from storage_lib.spark.types.predicate_column import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.schema.types.data_field import DataField

_SPELLED: dict[TypeRoot, DataType] = {
    TypeRoot.INTEGER: IntegerType(),
    TypeRoot.BIGINT: LongType(),
    TypeRoot.DATE: DateType(),
    TypeRoot.VARCHAR: StringType(),
}
# With more columns, the header is longer than one slot.
_COLUMNS_MAX = 56
_INLINE_BYTES_MAX = 7
_INLINE_MARK = 0x80
_WORD = 0xFFFFFFFF
_HALF_BITS = 32
_ZERO = b"\0"


def jvm_bucket(rows: StructType, schema: TableSchema) -> Column | None:
    """Return a column with the bucket (int) of rows of this type; None if only ``bucket_of`` can compute it."""
    fields = schema.bucket_key_fields
    by_hash = schema.options.get("bucket-function.type", "default").lower() == "default"
    if schema.counts_values or not by_hash or not 0 < len(fields) <= _COLUMNS_MAX or schema.bucket_count < 1:
        return None
    types = {field.name: field.dataType for field in rows.fields}
    if any(field.type.root not in _SPELLED or types.get(field.name) != _SPELLED[field.type.root] for field in fields):
        return None
    row = sql.concat(*_binary_row(fields))
    # As in Java, the remainder has the sign of the dividend.
    return sql.abs(sql.hash(row) % sql.lit(schema.bucket_count)).cast("int")


def _binary_row(fields: Sequence[DataField]) -> list[Column]:
    """Return the parts of the row in binary, in order. Nulls get any bucket: the write refuses them by name."""
    slots, texts = [], []
    end = sql.lit((1 + len(fields)) * LONG_BYTES)
    for field in fields:
        value = quoted(field.name)
        if field.type.root is TypeRoot.VARCHAR:
            text = sql.coalesce(value, sql.lit("")).cast("binary")
            length = sql.octet_length(text)
            padded = sql.ceil(length / sql.lit(LONG_BYTES)).cast("int") * LONG_BYTES
            is_inline = length <= _INLINE_BYTES_MAX
            mark = sql.substring(big_endian(length.cast("bigint") + _INLINE_MARK), LONG_BYTES, 1)
            inline = sql.concat(sql.rpad(text, sql.lit(_INLINE_BYTES_MAX), sql.lit(_ZERO)), mark)
            place = sql.shiftleft(end.cast("bigint"), _HALF_BITS).bitwiseOR(length.cast("bigint"))
            slots.append(sql.when(is_inline, inline).otherwise(little_endian(place)))
            texts.append(sql.when(is_inline, sql.lit(b"")).otherwise(sql.rpad(text, padded, sql.lit(_ZERO))))
            end = end + sql.when(is_inline, sql.lit(0)).otherwise(padded)
        elif field.type.root is TypeRoot.BIGINT:
            slots.append(little_endian(sql.coalesce(value, sql.lit(0)).cast("bigint")))
        else:
            number = sql.unix_date(value) if field.type.root is TypeRoot.DATE else value
            whole = sql.coalesce(number, sql.lit(0)).cast("bigint").bitwiseAND(sql.lit(_WORD))
            slots.append(little_endian(whole))
    return [sql.lit(bytes(LONG_BYTES)), *slots, *texts]
