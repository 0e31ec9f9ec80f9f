"""Check that Spark can evaluate a table's computed columns and watermark, before the table is created or altered.

Otherwise the statement would succeed, and every later read of the table would fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType, TimestampNTZType, TimestampType

from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.schema.options.event_time import watermarks
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.spark.types.spark_schema import spark_type_of
from storage_lib.sql.definition.virtual_columns import computed_columns
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.text.query_tables import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.schema.types.data_types import DataType


def check_virtual_columns(
    spark: SparkSession, table: str, columns: Sequence[tuple[str, DataType]], options: Mapping[str, str]
) -> None:
    """Raise ``InvalidInputError`` naming a computed column that Spark can't evaluate, or an invalid watermark."""
    computed, late = computed_columns(options), watermarks(options)
    if not computed and not late:
        return
    struct = StructType([StructField(name, spark_type_of(of)) for name, of in columns])
    empty = spark.createDataFrame([], struct)
    types = {each.name: each.dataType for each in struct.fields}
    for name, expression in computed.items():
        if name in types:
            message = f"table {table}: column {name!r} already exists, so it can't be computed as well"
            raise InvalidInputError(message)
        types[name] = _evaluated(empty, table, name, expression).schema[-1].dataType
    for column in late:
        if column not in types:
            message = f"table {table}: WATERMARK FOR {column}: unknown column{did_you_mean(column, types)}"
            raise InvalidInputError(message)
        if not isinstance(types[column], TimestampType | TimestampNTZType):
            message = (
                f"table {table}: WATERMARK FOR {column}: column {column!r} is "
                f"{types[column].simpleString().upper()}; a watermark follows a TIMESTAMP or a TIMESTAMP_LTZ"
            )
            raise InvalidInputError(message)


def _evaluated(empty: DataFrame, table: str, name: str, expression: str) -> DataFrame:
    try:
        with errors_in_words():
            df = empty.selectExpr("*", f"({expression}) AS {quoted(name)}")
    except (StorageError, PySparkException) as error:
        message = f"table {table}: computed column {name!r} AS ({expression}): {error}"
        raise InvalidInputError(message) from error
    if len(df.columns) != len(empty.columns) + 1:
        message = f"table {table}: computed column {name!r} AS ({expression}) is {len(df.columns)} columns, not one"
        raise InvalidInputError(message)
    return df
