"""Reads by Spark's own readers: what they take, what they leave to the data source, and faults."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.functions import broadcast

from storage_lib import RenameColumn, open_catalog
from storage_lib.errors import CorruptFileError, InvalidInputError, SnapshotExpiredError
from storage_lib.spark import read
from storage_lib.spark.reading.native_columns import EXACT_TIMES
from storage_lib.spark.reading.native_read import ReadSummary, SnapshotRead, frame_of_table
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.sql import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

MISSING = "spark.sql.files.ignoreMissingFiles"


def rows(*keys: int, v: str = "a") -> pa.Table:
    return pa.table(
        {"id": pa.array(keys, pa.int64()), "v": [v] * len(keys), "n": pa.array([1] * len(keys), pa.int32())}
    )


def ids_of(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.collect())


def summary_of(spark: SparkSession, table: DynamicTable, *columns: str) -> ReadSummary:
    names = columns or tuple(field.name for field in table.schema.fields)
    return frame_of_table(spark, table, SnapshotRead(columns=names)).summary


def test_files_that_overlap_no_other_are_read_natively_beside_those_that_do(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=1, write_only="true")
    table.append(rows(1, 2, 3))
    table.append(rows(10, 11))
    table.append(rows(11, 12, v="b"))

    found = summary_of(spark, table)

    assert (found.native_files, found.merged_files) == (1, 2)
    assert ids_of(read(spark, table)) == [1, 2, 3, 10, 11, 12]
    assert str(found).startswith("db.t at snapshot 3: 1 files (")


def test_all_files_of_a_load_are_read_natively_below_a_few_newer_rows(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=1, write_only="true")
    for start in (0, 100, 200):
        table.append(rows(*range(start, start + 100)))
    table.upsert(rows(5, 150, 250, 400, v="b"))
    table.delete([{"id": 7}])

    found = summary_of(spark, table)

    assert (found.native_files, found.merged_files) == (3, 2)
    assert ids_of(read(spark, table)) == [*(key for key in range(300) if key != 7), 400]
    assert sorted(row.id for row in read(spark, table).where("v = 'b'").collect()) == [5, 150, 250, 400]


def test_a_file_that_is_gone_is_an_error_that_names_it_whatever_the_session_ignores(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=1)
    table.append(rows(1))
    df = read(spark, table)
    (file,) = Path(table.location).rglob("*.parquet")
    file.unlink()

    spark.conf.set(MISSING, "true")
    try:
        with pytest.raises(SnapshotExpiredError, match=file.name), storage_errors_of_spark():
            df.collect()
    finally:
        spark.conf.unset(MISSING)


def test_the_error_of_a_file_that_is_cut_off_names_it_and_the_reason(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table("cut_off", bucket=1)
    table.append(rows(1))
    (file,) = Path(table.location).rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-8])
    reason = f"{file.name} can't be decoded: .*not a Parquet file"

    with pytest.raises(CorruptFileError, match=reason), storage_errors_of_spark():
        read(spark, table).collect()
    with (
        Session(spark, open_catalog(table.address.warehouse), database="db") as sql,
        pytest.raises(CorruptFileError, match=reason),
    ):
        sql.execute("SELECT * FROM cut_off").to_arrow()


def test_a_query_goes_on_with_its_snapshot_while_a_compaction_commits(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=1, write_only="true")
    table.append(rows(1, 2))
    table.append(rows(2, 3, v="b"))
    before = read(spark, table)

    table.compact()
    table.append(rows(4))

    assert ids_of(before) == [1, 2, 3]
    assert ids_of(read(spark, table)) == [1, 2, 3, 4]


def test_a_tag_that_names_another_snapshot_by_now_is_refused(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=1, write_only="true")
    table.append(rows(1, 2))
    table.append(rows(2, 3, v="b"))
    table.tags.create("mine")
    df = read(spark, table, tag="mine")

    table.append(rows(2, v="c"))
    table.tags.delete("mine")
    table.tags.create("mine")

    with (
        pytest.raises(InvalidInputError, match="was planned for snapshot 2, and its tag names"),
        storage_errors_of_spark(),
    ):
        df.collect()


def test_spark_skips_partitions_by_the_rows_of_the_other_side_of_a_join(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    columns = pa.schema([pa.field("day", pa.date32(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    table = make_table(columns=columns, primary_key=("day", "id"), partition_by=("day",), bucket=1)
    table.append(pa.table({"day": pa.array([1, 2, 3], pa.int32()).cast(pa.date32()), "id": [1, 2, 3]}))
    days = spark.createDataFrame([(2, "yes")], "number int, wanted string").selectExpr(
        "date_from_unix_date(number) AS day", "wanted"
    )

    joined = read(spark, table).join(broadcast(days.where("wanted = 'yes'")), "day").select("id")

    assert "dynamicpruning" in joined._jdf.queryExecution().toString().lower()  # no public way to the plan
    assert ids_of(joined) == [2]


def test_views_of_fixed_snapshots_stay_as_they_are_and_views_of_the_newest_follow(
    spark: SparkSession, tmp_path: Path
) -> None:
    catalog = open_catalog(str(tmp_path / "warehouse"))
    with Session(spark, catalog) as sql:
        sql.execute("CREATE TABLE fixed_and_newest (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
        sql.execute("INSERT INTO fixed_and_newest VALUES (1)")

        sql.register_views(snapshots="fixed")
        fixed = spark.table("fixed_and_newest")
        sql.register_views()
        newest = spark.table("fixed_and_newest")
        sql.execute("INSERT INTO fixed_and_newest VALUES (2)")

        assert ids_of(fixed) == [1]
        assert ids_of(newest) == [1, 2]
        with pytest.raises(InvalidInputError, match="unknown snapshots 'old'"):
            sql.register_views(snapshots="old")
    spark.catalog.dropTempView("fixed_and_newest")


def test_deleted_rows_stay_deleted_whatever_columns_a_file_has(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    columns = {"id": "BIGINT NOT NULL", "_metadata": "ROW<file_name STRING, row_index BIGINT>"}
    table = make_table(columns=columns, bucket=1, deletion_vectors__enabled="true")
    table.append([{"id": 1, "_metadata": None}, {"id": 2, "_metadata": None}])
    table.compact()
    table.delete("id = 1")
    table.compact(full=False)

    table = table.alter(RenameColumn("_metadata", "renamed"))

    assert ids_of(read(spark, table)) == [2]


@pytest.mark.parametrize("name", ["_key_id", "_VALUE_kind", "_sequence_number"])
def test_a_column_named_as_one_of_the_files_own_is_read_by_tasks(
    spark: SparkSession, make_table: Callable[..., DynamicTable], name: str
) -> None:
    table = make_table(columns={"id": "BIGINT NOT NULL", name: "INT"})
    table.append([{"id": 1, name: 100}])

    assert summary_of(spark, table).native_files == 0
    assert read(spark, table).collect()[0][name] == 100


@pytest.mark.parametrize("exact", ["true", "false"])
def test_conditions_on_ancient_days_find_their_rows(
    spark: SparkSession, make_table: Callable[..., DynamicTable], exact: str
) -> None:
    columns = {"id": "BIGINT", "day": "DATE", "at": "TIMESTAMP_LTZ(6)"}
    table = make_table(columns=columns, primary_key=(), write_mode="append-only")
    table.append([{"id": 1, "day": date(1, 1, 1), "at": datetime(1582, 10, 12, tzinfo=UTC)}])
    table.append([{"id": 2, "day": date(1582, 10, 12), "at": datetime(1582, 10, 15, tzinfo=UTC)}])
    conditions = {
        "day > DATE '-0044-03-15'": [1, 2],
        "day = DATE '1582-10-12'": [2],
        "day > DATE '1582-10-06'": [2],
        "at = TIMESTAMP '1582-10-12 00:00:00 UTC'": [1],
        "at > TIMESTAMP '1582-10-10 00:00:00 UTC'": [1, 2],
    }
    catalog = open_catalog(table.address.warehouse)

    before = spark.conf.get(EXACT_TIMES, None)
    spark.conf.set(EXACT_TIMES, exact)
    try:
        with Session(spark, catalog, database="db") as sql:
            for condition, expected in conditions.items():
                assert ids_of(read(spark, table).where(condition)) == expected, condition
                query = f"SELECT id FROM t WHERE {condition}"  # noqa: S608  our own text
                answer = sql.execute(query).to_arrow().column("id").to_pylist()
                assert sorted(answer) == expected, condition
    finally:
        spark.conf.unset(EXACT_TIMES) if before is None else spark.conf.set(EXACT_TIMES, before)


def test_the_columns_that_are_not_null_count(spark: SparkSession, tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path / "warehouse"))
    with Session(spark, catalog) as sql:
        sql.execute("CREATE TABLE t (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED)")
        sql.execute("INSERT INTO t VALUES (1, 1)")

        assert sql.execute("SELECT count(id) AS n FROM t").to_arrow().to_pylist() == [{"n": 1}]
        assert sql.execute("SELECT v FROM t WHERE id IS NOT NULL").to_arrow().to_pylist() == [{"v": 1}]
        sql.execute("DELETE FROM t WHERE (SELECT count(id) FROM t) = 0")
        assert catalog.load_table("default.t").count() == 1
