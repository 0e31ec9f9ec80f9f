"""Columns of a query's answer as Spark types them, compared with those of the materialized table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from storage_lib.errors import InvalidInputError
from storage_lib.spark.materialized.weighted_rows import WEIGHT
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable


def answer_rows(table: DynamicTable, rows: DataFrame) -> DataFrame:
    """Return the table's columns of ``rows``, and ``_weight``.

    Raises ``InvalidInputError`` if the answer has other columns or types, as after a change of a source's columns.
    """
    stored = {field.name: field.dataType.simpleString() for field in struct_of(table.schema).fields}
    found = {field.name: field.dataType.simpleString() for field in rows.schema.fields if field.name != WEIGHT}
    if stored != found:
        name = next(name for name in [*stored, *found] if stored.get(name) != found.get(name))
        message = (
            f"table {table.name}: column {name} of its query's answer is {found.get(name, 'missing')} now, and the "
            f"table's is {stored.get(name, 'missing')}: columns of a source have changed. Cast the column in the query "
            "(ALTER MATERIALIZED TABLE ... AS SELECT, storage_lib.spark.set_query), or recreate the table"
        )
        raise InvalidInputError(message)
    return rows.select(*map(quoted, stored), WEIGHT)


@contextmanager
def refusals_of_spark(table: str) -> Iterator[None]:
    """Raise ``InvalidInputError`` for a query that Spark refuses in the body."""
    try:
        yield
    except AnalysisException as error:
        message = f"table {table}: Spark refuses its query: {error}"
        raise InvalidInputError(message) from error
