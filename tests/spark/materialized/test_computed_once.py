"""Rows that several statements read are computed once, and stay as they were computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql
from sqlglot import parse_one

from storage_lib.materialized.algebra import Moment, Steps
from storage_lib.materialized.algebra.render.statement import Renderer
from storage_lib.materialized.algebra.tree.relational_operators import Aggregate, Filter, Named, Scan, Union
from storage_lib.spark.engine import computed_once as module
from storage_lib.spark.engine.computed_once import computed_once, computed_steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EVERY_KIND = """
    SELECT * FROM VALUES
        (true, 1Y, 2S, 3, 4L, 0.5F, double('-0.0'), 1.25BD, DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999',
         TIMESTAMP_NTZ'1600-02-29 01:02:03.000004', X'00FF', 'ä'),
        (false, NULL, NULL, NULL, NULL, float('NaN'), double('Infinity'), NULL, NULL, NULL, NULL, NULL, '')
"""


def test_few_rows_are_in_this_process_as_spark_computed_them(spark: SparkSession) -> None:
    df = spark.sql(EVERY_KIND)

    with computed_once(df) as once:
        assert once.here is not None
        assert once.row_count == 2
        assert once.df.schema == df.schema
        assert [list(map(repr, row)) for row in once.df.collect()] == [list(map(repr, row)) for row in df.collect()]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT array(id) AS a FROM range(3)",
        "SELECT named_struct('a', id) AS a FROM range(3)",
        "SELECT make_ym_interval(id) AS a FROM range(3)",
        "SELECT string(id) COLLATE UTF8_LCASE AS a FROM range(3)",
        "SELECT parse_json('1') AS a FROM range(3)",
    ],
)
def test_types_that_arrow_does_not_keep_stay_in_spark(spark: SparkSession, query: str) -> None:
    df = spark.sql(query)

    with computed_once(df) as once:
        assert once.here is None
        assert once.row_count == 3
        assert once.df.schema == df.schema
        assert once.df.storageLevel.useMemory
    assert not df.storageLevel.useMemory


def test_many_rows_stay_in_spark_and_are_computed_once(spark: SparkSession) -> None:
    computed = spark.sparkContext.accumulator(0)
    count = module.ROWS_HERE_MAX + 1

    def counted(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            computed.add(batch.num_rows)
            yield batch

    with computed_once(spark.range(count).mapInArrow(counted, "id BIGINT")) as once:
        before = computed.value
        assert (once.row_count, once.here) == (count, None)
        assert once.df.agg(sql.sum("id")).first()[0] == sum(range(count))  # type: ignore[index]
        assert once.df.count() == count
        assert computed.value == before


def test_few_rows_that_are_too_large_for_the_driver_stay_in_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ConnectionFailedError(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
        def __init__(self) -> None:
            """Be without an exception of a JVM."""

    def too_large(_: DataFrame) -> pa.Table:
        raise ConnectionFailedError

    with monkeypatch.context() as patched:
        patched.setattr(type(spark.range(1)), "toArrow", too_large)
        with computed_once(spark.range(3)) as once:
            assert (once.row_count, once.here) == (3, None)


def test_the_error_of_a_query_names_its_cause(spark: SparkSession) -> None:
    with (
        pytest.raises(PySparkException, match="failed here"),
        computed_once(spark.sql("SELECT raise_error('failed here')")),
    ):
        pass


def test_no_rows_keep_their_types(spark: SparkSession) -> None:
    df = spark.sql(EVERY_KIND).where("false")

    with computed_once(df) as once:
        assert once.row_count == 0
        assert once.df.schema == df.schema
        assert once.df.collect() == []


def test_each_shared_relation_is_computed_once_and_no_view_is_left(spark: SparkSession) -> None:
    views = {each.name for each in spark.catalog.listTables()}
    first, again = Named("q1", ("id",)), Named("q2", ("id",))
    shared = (("q1", Scan("ids", (("id", "id"),))), ("q2", first))
    both = Aggregate(Union((first, again), ("id",)), (), (("n", parse_one("count(DISTINCT id)")),))
    steps = Steps(Renderer(one_view, prefix="once_"), shared, both, (("n", "n"),))
    failing = replace(steps, shared=(*shared, ("q3", Named("q0", ("id",)))))

    with computed_steps(spark, steps) as rows:
        assert rows is not None
        assert rows.collect() == [(2,)]
    with pytest.raises(PySparkException), computed_steps(spark, failing):
        pass

    assert {each.name for each in spark.catalog.listTables()} == views


def test_no_statement_is_left_if_shared_relations_have_no_row(spark: SparkSession) -> None:
    shared = (("q1", Filter(Scan("ids", (("id", "id"),)), parse_one("id IS NULL"))), ("q2", Scan("no", ())))
    steps = Steps(Renderer(one_view, prefix="none_"), shared, Named("q1", ("id",)), (("id", "id"),))

    with computed_steps(spark, steps) as rows:
        assert rows is None


def one_view(table: str, _: Moment) -> str:
    return {"ids": "(SELECT uuid() AS id FROM range(2))"}[table]
