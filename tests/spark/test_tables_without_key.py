"""Tables without a primary key through Spark: batches and streams of each kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib.errors import InvalidInputError
from storage_lib.spark import read, read_stream, write, write_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark


def options_of(table: DynamicTable) -> dict[str, str]:
    return {"warehouse": table.address.warehouse, "table": table.address.name}


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.collect())


def test_batches_append_from_every_task_and_overwrite_an_append_only_table(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(primary_key=(), write_mode="append-only")
    df = spark.range(100).selectExpr("id % 10 AS id", "'x' AS v", "CAST(1 AS INT) AS n").repartition(4)

    write(df, table)

    assert table.inspect.files().num_rows == 4
    assert read(spark, table).where("id = 3").count() == 10
    with pytest.raises(InvalidInputError, match="append-only"):
        write(spark.createDataFrame([(1, "a", "-D")], "id long, v string, _row_kind string"), table)
    df.limit(7).repartition(3).write.format("dynamic_table").options(**options_of(table)).mode("overwrite").save()
    assert read(spark, table).count() == 7


def test_rows_for_which_no_writer_waits_are_not_cached(
    spark: SparkSession, make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(primary_key=(), write_mode="append-only")
    df = spark.range(6).selectExpr("id", "'x' AS v", "CAST(1 AS INT) AS n")
    cached: list[DataFrame] = []
    monkeypatch.setattr(type(df), "persist", lambda frame, _: cached.append(frame))

    write(df, table)
    write(df, table, based_on=1)

    assert len(cached) == 1, "only the write that is refused if the table changes meanwhile holds a lease"
    assert sorted(table.to_arrow().column("id").to_pylist()) == sorted([*range(6)] * 2)


def test_a_stream_of_an_append_only_table_has_no_kinds_and_feeds_the_next(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    first = make_table("first", primary_key=(), write_mode="append-only")
    second = make_table("second", primary_key=(), write_mode="append-only")
    rows = spark.createDataFrame([(1, "a", 10), (1, "a", 10), (2, None, 20)], "id long, v string, n int")
    checkpoint = str(tmp_path / "checkpoint")
    for _ in range(2):
        write(rows, first)
        stream = read_stream(spark, first)
        assert stream.columns == ["id", "v", "n"]
        write_stream(stream, second, checkpoint_location=checkpoint, available_now=True).awaitTermination(240)

    assert rows_of(read(spark, second).fillna("")) == [(1, "a", 10)] * 4 + [(2, "", 20)] * 2


def test_batches_count_rows_and_take_them_away_again(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(primary_key=(), bucket=3)
    df = spark.range(100).selectExpr("id % 10 AS id", "'x' AS v", "CAST(1 AS INT) AS n").repartition(4)

    write(df, table)
    write(spark.createDataFrame([(3, "x", 1, "-D")] * 4, "id long, v string, n int, _row_kind string"), table)

    assert read(spark, table).where("id = 3").count() == 6
    assert read(spark, table).count() == 96
    write(df.limit(7), table, mode="overwrite", change_tracking=False)
    assert read(spark, table).count() == 7


def test_a_stream_of_changes_keeps_the_counts_of_the_next_table(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    first, second = make_table("first", primary_key=(), bucket=2), make_table("second", primary_key=(), bucket=3)
    columns, checkpoint = "id long, v string, n int, _row_kind string", str(tmp_path / "checkpoint")
    for changes in ([(1, "a", 1, "+I")] * 3, [(1, "a", 1, "-D"), (2, "b", 2, "-U"), (2, "B", 2, "+U")]):
        write(spark.createDataFrame(changes, columns), first)
        stream = read_stream(spark, first)
        assert stream.columns == ["id", "v", "n", "_row_kind"]
        write_stream(stream, second, checkpoint_location=checkpoint, available_now=True).awaitTermination(240)

    assert rows_of(read(spark, second)) == [(1, "a", 1), (1, "a", 1), (2, "B", 2)]
