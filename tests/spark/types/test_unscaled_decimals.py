"""Decimals that pass from Spark to Arrow as numbers."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import ArrayType, DecimalType, LongType, StringType, StructType

from storage_lib.spark.types.unscaled_decimals import with_decimals, with_numbers

RANDOM = np.random.default_rng(11)


def test_decimals_of_up_to_18_digits_become_numbers_and_all_else_stays() -> None:
    rows = StructType()
    rows.add("id", LongType(), nullable=False).add("short", DecimalType(12, 2)).add("longest", DecimalType(18, 18))
    rows.add("wide", DecimalType(19, 2), metadata={"comment": "kept"})
    rows.add("nested", ArrayType(DecimalType(5, 1))).add("text", StringType())

    numbers, digits = with_numbers(rows)

    assert digits == {1: (12, 2), 2: (18, 18)}
    assert [field.dataType for field in numbers] == [
        LongType(),
        LongType(),
        LongType(),
        DecimalType(19, 2),
        ArrayType(DecimalType(5, 1)),
        StringType(),
    ]
    assert [(field.name, field.nullable, field.metadata) for field in numbers] == [
        (field.name, field.nullable, field.metadata) for field in rows
    ]


@pytest.mark.parametrize(("precision", "scale"), [(1, 0), (12, 2), (18, 0), (18, 18), (9, 9)])
def test_numbers_become_the_decimals_with_these_unscaled_values(precision: int, scale: int) -> None:
    most = 10**precision - 1
    values = [0, 1, -1, most, -most, None, *RANDOM.integers(-most, most, 1000, endpoint=True).tolist(), None]
    numbers = pa.array([7, *values], pa.int64()).slice(1)
    batch = pa.record_batch([pa.array(range(len(values))), numbers], names=["id", "amount"])

    found = with_decimals(batch, {1: (precision, scale)})

    assert found.schema == pa.schema([("id", pa.int64()), ("amount", pa.decimal128(precision, scale))])
    expected = [None if value is None else Decimal(value).scaleb(-scale) for value in values]
    assert found.column("amount").to_pylist() == expected
    found.validate(full=True)


def test_a_batch_without_such_decimals_is_the_same_object() -> None:
    batch = pa.record_batch({"id": [1, 2]})

    assert with_decimals(batch, {}) is batch
