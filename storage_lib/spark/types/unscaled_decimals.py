"""Decimals of up to 18 digits on their way from Spark's rows to Arrow, as the integers that they are in both.

An UnsafeRow holds such a decimal as its unscaled value, in the slot of a BIGINT. Spark's conversion to Arrow makes a
``BigDecimal`` of each, which takes as long as the conversion of all other columns of a table. Read as a BIGINT, the
values reach Arrow as they are, and become decimals again without a look at any of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.types import DataType, DecimalType, LongType, StructField, StructType

from storage_lib.spark.types.jvm_decimal import LONG_DIGITS_MAX

Digits = tuple[int, int]
"""Precision and scale of a decimal."""
_LONG_AS_DECIMAL = pa.decimal128(19, 0)


def with_numbers(rows: StructType) -> tuple[StructType, dict[int, Digits]]:
    """Return the type of UnsafeRows of type ``rows`` with numbers for decimals, and the decimals' digits by position.

    Decimals of more digits, and those inside of nested types, stay decimals.
    """
    digits: dict[int, Digits] = {}
    fields = []
    for position, field in enumerate(rows.fields):
        kind: DataType = field.dataType
        if isinstance(kind, DecimalType) and kind.precision <= LONG_DIGITS_MAX:
            digits[position] = (kind.precision, kind.scale)
            kind = LongType()
        fields.append(StructField(field.name, kind, field.nullable, field.metadata))
    return StructType(fields), digits


def with_decimals(batch: pa.RecordBatch, digits: Mapping[int, Digits]) -> pa.RecordBatch:
    """Return the batch with the numbers at these positions as decimals, whose unscaled values they are."""
    if not digits:
        return batch
    arrays, fields = list(batch.columns), list(batch.schema)
    for position, (precision, scale) in digits.items():
        decimal = pa.decimal128(precision, scale)
        arrays[position] = arrays[position].cast(_LONG_AS_DECIMAL).view(decimal)
        fields[position] = fields[position].with_type(decimal)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, batch.schema.metadata))
