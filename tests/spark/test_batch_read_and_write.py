"""Reading and writing tables as data frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import AddColumn, col, open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.schema.placing.bucketing import bucket_of
from storage_lib.spark import read, write
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.spark.versions.spark_feature import SparkFeature
from storage_lib.spark.writing.bucket_distribution import by_bucket, by_partition_and_bucket, with_bucket
from storage_lib.table.namespaces.table_inspection import TableInspection
from tests.support.whole_rows import whole_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.collect())


def options_of(table: DynamicTable) -> dict[str, str]:
    return {"warehouse": table.address.warehouse, "table": table.address.name}


def files_of(table: DynamicTable) -> list[Path]:
    return list(Path(table.location).rglob("*.parquet"))


def test_what_is_written_is_read_by_spark_and_by_the_library(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=2)
    df = spark.createDataFrame([(1, "a", 10), (2, "b", None), (3, None, 30)], "id long, v string, n int")

    snapshot = write(df, table)

    assert snapshot is not None
    assert rows_of(read(spark, table).orderBy("id").where("id < 3")) == [(1, "a", 10), (2, "b", None)]
    assert table.to_arrow().num_rows == 3


def test_the_plain_format_reads_and_writes_by_warehouse_and_table_or_by_path(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table()
    rows = spark.createDataFrame([(1, "a", 1)], "id long, v string, n int").coalesce(1)

    rows.write.format("dynamic_table").options(**options_of(table)).mode("append").save()

    assert rows_of(spark.read.format("dynamic_table").options(**options_of(table)).load()) == [(1, "a", 1)]
    assert rows_of(spark.read.format("dynamic_table").load(table.location)) == [(1, "a", 1)]


def test_row_kinds_are_taken_and_never_shown_to_a_batch(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table()
    write(spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id long, v string"), table)

    changes = [("-D", 1, "a"), ("+U", 2, "B"), ("+I", 4, "d")]
    write(spark.createDataFrame(changes, "_row_kind string, id long, v string"), table)

    df = read(spark, table)
    assert df.columns == ["id", "v", "n"]
    assert rows_of(df.drop("n")) == [(2, "B"), (3, "c"), (4, "d")]


def test_every_type_survives_the_way_there_and_back(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    columns = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("flag", pa.bool_()),
            ("tiny", pa.int8()),
            ("small", pa.int16()),
            ("real", pa.float32()),
            ("double", pa.float64()),
            ("day", pa.date32()),
            *([("hour", pa.time32("ms"))] if SparkFeature.TIME.is_here else []),
            ("bytes", pa.binary()),
            ("amount", pa.decimal128(12, 3)),
            ("local_ms", pa.timestamp("ms")),
            ("local", pa.timestamp("us")),
            ("instant", pa.timestamp("us", "UTC")),
        ]
    )
    row = {
        "id": 7,
        "flag": True,
        "tiny": -8,
        "small": 300,
        "real": 1.5,
        "double": 2.25,
        "day": date(2024, 5, 14),
        "hour": time(12, 30, 1, 250_000),
        "bytes": b"\x00\xff",
        "amount": Decimal("123.450"),
        "local_ms": datetime(2024, 5, 14, 1, 2, 3, 4000),  # noqa: DTZ001  a local time
        "local": datetime(2024, 5, 14, 1, 2, 3, 456_789),  # noqa: DTZ001  a local time
        "instant": datetime(2024, 5, 14, 1, 2, 3, 4, tzinfo=UTC),
    }
    source, target = make_table("source", columns=columns), make_table("target", columns=columns)
    source.append(pa.Table.from_pylist([row, {"id": 8}], schema=source.arrow_schema))

    write(read(spark, source), target)

    assert target.to_arrow().sort_by("id").to_pylist() == source.to_arrow().sort_by("id").to_pylist()


def test_spark_and_the_files_agree_on_the_bucket(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    columns = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("name", pa.string(), nullable=False),
            pa.field("day", pa.date32(), nullable=False),
            pa.field("amount", pa.decimal128(25, 2), nullable=False),
            pa.field("moment", pa.timestamp("ms"), nullable=False),
            ("v", pa.float64()),
        ]
    )
    table = make_table(columns=columns, primary_key=("id", "name", "day", "amount", "moment"), bucket=5)
    numbers = np.arange(200)
    rows = pa.record_batch(
        [
            pa.array(numbers * 7_919, pa.int64()),
            pa.array([f"näme-{n}" * (n % 4) for n in numbers]),
            pa.array(numbers, pa.int32()).cast(pa.date32()),
            pa.array([Decimal(int(n)) / 4 * 10 ** int(n % 20) for n in numbers]).cast(pa.decimal128(25, 2)),
            pa.array(numbers * 1_001, pa.int64()).cast(pa.timestamp("ms")),
            pa.nulls(200, pa.float64()),
        ],
        schema=table.arrow_schema,
    )
    table.append(rows)

    written = read(spark, table)
    numbered, bucket = with_bucket(written, table.schema)
    df = numbered.select("id", bucket.alias("bucket")).orderBy("id")

    assert [row.bucket for row in df.collect()] == bucket_of(rows, table.schema).tolist()


def test_each_bucket_is_the_business_of_one_task_and_a_local_session_has_no_more_tasks_than_cores(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    from pyspark.sql import functions as sql

    table = make_table(bucket=3)
    df = spark.range(100).selectExpr("id", "cast(id as string) v", "1 n")

    rows, bucket = with_bucket(by_bucket(df, table.schema), table.schema)
    placed = rows.select(sql.spark_partition_id(), bucket).distinct()

    assert rows_of(placed) == [(0, 0), (0, 2), (1, 1)]


@pytest.mark.parametrize("partition_by", [(), ("v",)])
def test_the_buckets_of_a_load_are_spread_over_as_many_tasks(
    spark: SparkSession, make_table: Callable[..., DynamicTable], partition_by: tuple[str, ...]
) -> None:
    from pyspark.sql import functions as sql

    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string(), nullable=False)])
    table = make_table(columns=columns, primary_key=("id", *partition_by), partition_by=partition_by, bucket=4)
    df = spark.range(400).selectExpr("id", "concat('partition ', id % 3) v")

    spread, bucket = with_bucket(by_partition_and_bucket(df, table.schema), table.schema)
    group = sql.col("v") if partition_by else sql.lit("all")
    placed = spread.select(group, bucket, sql.spark_partition_id()).distinct()

    tasks: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for partition, bucket, task in rows_of(placed):
        tasks[partition].append((bucket, task))
    assert len(tasks) == (3 if partition_by else 1)
    for pairs in tasks.values():
        assert [bucket for bucket, _ in pairs] == [0, 1, 2, 3], "each bucket is in one task"
        assert sorted(task for _, task in pairs) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("ddl", "row", "complaint"),
    [
        ("id long, w string", (1, "a"), "no column 'w'"),
        ("id string", ("1",), "column 'id' is BIGINT"),
        ("v string", ("a",), "lacks column 'id'"),
    ],
)
def test_a_data_frame_that_does_not_fit_is_refused_before_anything_is_computed(
    spark: SparkSession, make_table: Callable[..., DynamicTable], ddl: str, row: tuple[Any, ...], complaint: str
) -> None:
    table = make_table()

    with pytest.raises(InvalidInputError, match=complaint):
        write(spark.createDataFrame([row], ddl), table)

    assert table.to_arrow().num_rows == 0


def test_an_error_in_a_task_comes_back_as_what_it_was_and_leaves_no_file(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32(), nullable=False)])
    table = make_table(columns=columns, partition_by=("n",), primary_key=("id", "n"), write_buffer_size="1 kb")
    good = spark.range(500).selectExpr("id", "cast(id % 2 as int) n", "'+I' _row_kind")
    bad = spark.createDataFrame([(500, 1, "oops")], good.schema)
    one_task = good.union(bad).coalesce(1).write.format("dynamic_table").options(**options_of(table))

    with pytest.raises(InvalidInputError, match="'oops'"), storage_errors_of_spark():
        one_task.mode("append").save()

    assert files_of(table) == []
    assert table.context.file_store.snapshots.latest_id() is None
    assert table.context.leases.holder() is None, "the lease was given back"


def test_only_the_columns_asked_for_are_read(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"], "n": pa.array([5, 6], pa.int32())}))

    df = read(spark, table, columns=["v"], filter=col("n") == 6)

    assert df.columns == ["v"]
    assert rows_of(df) == [("b",)]
    assert "id#" not in df._jdf.queryExecution().executedPlan().toString()
    assert rows_of(spark.read.schema("v string").format("dynamic_table").load(table.location)) == [("a",), ("b",)]


def test_pushed_filters_keep_spark_from_reading_other_files(
    spark: SparkSession, make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    table = make_table(columns=columns, primary_key=("day", "id"), partition_by=("day",))
    for day in ("mon", "tue", "wed"):
        table.append(pa.table({"day": [day] * 10, "id": list(range(10))}))
    # Files that should be pruned are made unreadable, so that reading one would fail.
    for path in files_of(table):
        if "day=tue" not in str(path):
            path.write_bytes(b"unreadable")

    df = read(spark, table).where("day = 'tue' and id between 3 and 4")

    assert rows_of(df) == [("tue", 3), ("tue", 4)]


def test_a_filter_on_numbers_that_may_be_nan_means_the_same_as_in_spark(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("f", pa.float64())])
    table = make_table(columns=columns)
    table.append(pa.table({"id": [1, 2, 3], "f": [1.0, float("nan"), None]}))

    for found in (read(spark, table).where("f > 0"), read(spark, table, filter=col("f") > 0.0)):
        assert [row.id for row in found.orderBy("id").collect()] == [1, 2], "NaN is the largest"


def test_an_older_snapshot_can_be_read(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    first = table.append(whole_rows(table, {"id": [1], "v": ["old"]}))
    table.append(whole_rows(table, {"id": [1], "v": ["new"]}))
    assert first is not None

    assert rows_of(read(spark, table, snapshot_id=first.id).select("v")) == [("old",)]
    plain = spark.read.format("dynamic_table").option("scan.snapshot-id", first.id).load(table.location)
    assert rows_of(plain.select("v")) == [("old",)]


@pytest.fixture
def partitioned(make_table: Callable[..., DynamicTable]) -> DynamicTable:
    """Create a table of two partitions with two rows each."""
    columns = pa.schema(
        [pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())]
    )
    table = make_table(columns=columns, primary_key=("day", "id"), partition_by=("day",))
    table.append(pa.table({"day": ["mon", "mon", "tue", "tue"], "id": [1, 2, 1, 2], "v": ["a", "b", "c", "d"]}))
    return table


def test_an_overwrite_replaces_the_partitions_of_its_rows(spark: SparkSession, partitioned: DynamicTable) -> None:
    new = spark.createDataFrame([("tue", 9, "z")], "day string, id long, v string")

    write(new, partitioned, mode="overwrite")

    assert rows_of(read(spark, partitioned)) == [("mon", 1, "a"), ("mon", 2, "b"), ("tue", 9, "z")]


@pytest.mark.parametrize(
    ("partition", "left"),
    [({}, [("tue", 9, "z")]), ({"day": "tue"}, [("mon", 1, "a"), ("mon", 2, "b"), ("tue", 9, "z")])],
)
def test_an_overwrite_replaces_what_it_is_told_to(
    spark: SparkSession, partitioned: DynamicTable, partition: dict[str, str], left: list[tuple[str, int, str]]
) -> None:
    new = spark.createDataFrame([("tue", 9, "z")], "day string, id long, v string")

    write(new, partitioned, mode="overwrite", partition=partition)

    assert rows_of(read(spark, partitioned)) == left


def test_the_same_identity_commits_once(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    df = spark.createDataFrame([(1, "a")], "id long, v string")

    first = write(df, table, commit_user="job", commit_identifier=7)
    again = write(df, table, commit_user="job", commit_identifier=7)
    by_format = df.write.format("dynamic_table").options(**options_of(table)).mode("append")
    by_format.option("commit-user", "job").option("commit-identifier", 7).save()

    assert first is not None
    assert again == first
    assert table.context.file_store.snapshots.latest_id() == first.id


def test_a_write_returns_the_snapshot_that_it_made_itself(
    spark: SparkSession, make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an older one of the same user, and found without a search through the table's history."""
    table = make_table()
    df = spark.createDataFrame([(1, "a")], "id long, v string")
    monkeypatch.setattr(TableInspection, "find_commit", None)

    first = write(df, table, commit_user="job")
    nothing = write(df.limit(0), table, commit_user="job")

    assert first == table.inspect.snapshot(1)
    assert nothing is None


def test_two_tasks_with_rows_of_one_bucket_are_refused_in_a_tracked_write(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(log=True)
    df = spark.range(20, numPartitions=2).selectExpr("id", "'x' v", "1 n")
    options = {**options_of(table), "log.kafka.bootstrap.servers": table.address.options["log.kafka.bootstrap.servers"]}

    with pytest.raises(InvalidInputError, match=r"storage_lib\.spark\.write"), storage_errors_of_spark():
        df.write.format("dynamic_table").options(**options).mode("append").save()

    assert table.context.file_store.snapshots.latest_id() is None
    assert write(df, table) is not None
    assert read(spark, table).count() == 20
    untracked = df.write.format("dynamic_table").options(**options).option("change-tracking", "false")
    untracked.mode("append").save()


def test_a_table_that_is_not_there_is_said_so(spark: SparkSession, tmp_path: Path) -> None:
    open_catalog(str(tmp_path))

    with pytest.raises(NotFoundError, match=r"db\.nothing"), storage_errors_of_spark():
        spark.read.format("dynamic_table").option("warehouse", str(tmp_path)).option("table", "db.nothing").load()


def test_a_table_made_anew_under_the_same_name_is_not_mistaken_for_the_old_one(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table()
    write(spark.createDataFrame([(1, "a")], "id long, v string"), table)
    assert read(spark, table).count() == 1

    open_catalog(table.address.warehouse).drop_table(table.name)
    columns = pa.schema([pa.field("other", pa.int32(), nullable=False)])
    again = make_table(columns=columns, primary_key=("other",))
    write(spark.createDataFrame([(5,)], "other int"), again)

    assert rows_of(read(spark, again)) == [(5,)]


def test_nested_columns_go_there_and_back_and_a_new_column_is_seen(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    columns = {"id": "BIGINT", "a": "ARRAY<STRING>", "m": "MAP<STRING, INT>", "r": "ROW<x INT, y ARRAY<DOUBLE>>"}
    table = make_table(columns=columns, bucket=1)
    df = spark.createDataFrame(
        [(1, ["x", None], {"k": 1}, (7, [1.5])), (2, None, None, None)],
        "id long, a array<string>, m map<string, int>, r struct<x: int, y: array<double>>",
    )

    write(df, table)
    altered = table.alter(AddColumn("r.z", "STRING"), AddColumn("note", "STRING"))

    assert rows_of(read(spark, altered).selectExpr("id", "a[0]", "m['k']", "r.y[0]", "r.z", "note")) == [
        (1, "x", 1, 1.5, None, None),
        (2, None, None, None, None, None),
    ]
