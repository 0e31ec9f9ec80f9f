"""Rows by a number that a function of some columns gives each, and partitions by such a number.

Before Spark 4.1 there are neither functions of Arrow arrays nor partitions by number. There Spark passes whole rows
through the function, and a column of integers whose hashes are the numbers takes the place of the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.types import IntegerType, StructField, StructType

from storage_lib.spark.versions.spark_feature import installed_since

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["numbered", "partitioned_by_number", "spark_hash_of_int", "without_number"]

_NUMBER = "_dynamic_table_number"
_WORD = 0xFFFFFFFF
_SEED = 42


def numbered(
    df: DataFrame, columns: Sequence[Column], function: Callable[[pa.Array], pa.Array]
) -> tuple[DataFrame, Column]:
    """Return the rows, maybe with a column more, and a column (int) that ``function`` computes of a struct.

    The struct has the ``columns``. ``partitioned_by_number`` and ``without_number`` remove the
    additional column.
    """
    if installed_since(4, 1):
        from pyspark.sql.pandas.functions import arrow_udf

        # Spark infers the kind of function from its annotations; its stubs require a constant that it warns about.
        return df, arrow_udf(function, "int")(sql.struct(*columns))  # type: ignore[call-overload]
    struct = StructType([*df.schema.fields, StructField(_NUMBER, IntegerType())])

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = batch.column(batch.num_columns - 1)
            yield pa.RecordBatch.from_arrays([*batch.columns[:-1], function(keys)], names=struct.names)

    # mapInArrow does not find columns whose names have dots.
    given = df.select("*", sql.struct(*columns)).toDF(*(f"c{number}" for number in range(len(struct.fields))))
    return given.mapInArrow(add, struct), sql.col(_NUMBER)


def partitioned_by_number(df: DataFrame, number: Column, count: int) -> DataFrame:
    """Put the rows with ``number`` n, an int that is not negative, into partition n modulo ``count``."""
    if installed_since(4, 1):
        return df.repartitionById(count, number)
    places = sql.array(*(sql.lit(each) for each in _integers_of_partitions(count)))
    place = sql.element_at(places, sql.pmod(number, sql.lit(count)).cast("int") + 1)
    return without_number(df.repartition(count, place))


def without_number(df: DataFrame) -> DataFrame:
    """Return the rows without the column that ``numbered`` may have added."""
    return df.drop(_NUMBER)


@cache
def _integers_of_partitions(count: int) -> tuple[int, ...]:
    """Return an integer for each of ``count`` partitions, by whose hash Spark puts a row there."""
    found: dict[int, int] = {}
    integer = 0
    while len(found) < count:
        found.setdefault(spark_hash_of_int(integer) % count, integer)
        integer += 1
    return tuple(found[each] for each in range(count))


def spark_hash_of_int(value: int) -> int:
    """Return Spark's ``hash`` of one int: Murmur3 of 32 bits, seed 42, by Austin Appleby."""
    mixed = _rotated(value * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    hashed = (_rotated(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _WORD
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _WORD
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _WORD
    hashed ^= hashed >> 16
    return hashed - (hashed >> 31 << 32)


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
