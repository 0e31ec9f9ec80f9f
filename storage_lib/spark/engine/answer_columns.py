"""Columns of a query's answer as Spark types them, for a new table or compared with those of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sql

from storage_lib.errors import InvalidInputError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import Moment
from storage_lib.materialized.engine import AnswerColumn
from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.spark.engine.source_views import source_views
from storage_lib.spark.engine.weighted_frames import net_rows
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import arrow_schema_of, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.table.dynamic_table import DynamicTable


def typed_columns(spark: SparkSession, name: str, bound: BoundQuery) -> list[AnswerColumn]:
    """Return the columns of the answer, typed over empty sources, with their nullability; see ``Engine``."""

    def empty(source: str, _: Moment) -> DataFrame:
        return spark.createDataFrame([], struct_of(bound.sources[source].schema))

    token = system_environment().new_name()
    with active_session(spark), source_views(spark, token, empty) as views, refusals_of_spark(name):
        answer = spark.sql(bound.compiled.full(views, Moment.AFTER))
        net_rows(answer.withColumn(WEIGHT, sql.lit(1)))
    types = [field.dataType.simpleString() for field in answer.schema.fields]
    for field, kind in zip(answer.schema.fields, types, strict=True):
        if " collate " in kind:
            message = (
                f"table {name}: column {field.name} of its query is {kind}, and tables store no collation; "
                f"write (...) COLLATE UTF8_BINARY AS {field.name}"
            )
            raise InvalidInputError(message)
    return [AnswerColumn(*each) for each in zip(arrow_schema_of(answer.schema), types, strict=True)]


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
            f"table's is {stored.get(name, 'missing')}: columns of a source have changed. Give the table its query "
            "again (ALTER MATERIALIZED TABLE ... AS SELECT, storage_lib.spark.set_query) to take a new column, or with "
            "a cast of this one, or recreate the table"
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
