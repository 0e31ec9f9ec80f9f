"""Spark's tasks write and read data outside the table's directory, optionally on another store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from local_s3 import LocalS3
from storage_lib import DynamicTable, InvalidInputError, open_catalog
from storage_lib.schema.options.external_paths import PATHS_OPTION, STRATEGY_OPTION
from storage_lib.spark import read, write, write_stream
from storage_lib.spark.compaction.distributed_compaction import compact
from storage_lib.sql import Session
from tests.support.every_file import data_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string())])


def test_spark_writes_streams_and_compacts_data_in_s3_of_a_table_on_a_disk(
    spark: SparkSession, s3: LocalS3, tmp_path: Path
) -> None:
    catalog = open_catalog(f"{tmp_path}/warehouse", {**s3.options, "log.system": "none"})
    root = f"s3://lake{tmp_path}"
    options = {"bucket": "2", "file.root-path": root, "changelog-producer": "lookup"}
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id"], options=options)
    streamed = catalog.create_table("db.streamed", COLUMNS, primary_key=["id"], options=options)
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "0.json").write_text("\n".join(json.dumps({"id": key, "v": "new"}) for key in range(1000)))

    write(spark.range(1000).selectExpr("id", "concat('v', id) AS v"), table)
    write(spark.range(500, 1500).selectExpr("id", "'new' AS v"), table)
    compact(spark, table)
    source = spark.readStream.schema("id long, v string").json(f"{tmp_path}/input")
    write_stream(
        source, streamed, checkpoint_location=f"{tmp_path}/checkpoint", available_now=True
    ).query.awaitTermination()

    assert table.to_arrow().num_rows == 1500
    for each in (table, streamed):
        assert read(spark, each).where("v = 'new'").count() == 1000
        assert {path.startswith(root) for path in data_files(each)} == {True}


def test_sql_says_where_data_lies(spark: SparkSession, tmp_path: Path) -> None:
    catalog = open_catalog(f"{tmp_path}/warehouse", {"log.system": "none"})

    def place_of(name: str) -> str | None:
        return catalog.load_table(name).schema.options.get(PATHS_OPTION)

    def inserted(sql: Session, name: str) -> DynamicTable:
        sql.execute(f"INSERT INTO {name} VALUES (1, 'a')")  # noqa: S608  names of this test
        return catalog.load_table(name)

    with Session(spark, catalog) as sql:
        sql.execute(
            "CREATE TABLE db.t (id BIGINT, v STRING) "
            f"WITH ('write-mode' = 'append-only', 'file.root-path' = '{tmp_path}/cold')"
        )
        assert data_files(inserted(sql, "db.t")) == set(map(str, (tmp_path / "cold").rglob("*.parquet")))
        assert place_of("db.t") == f"file:{tmp_path}/cold/db.db/t"
        sql.execute("CREATE TABLE db.like_it LIKE db.t")
        assert place_of("db.like_it") is None
        sql.execute(f"SET 'table-storage.file.root-path' = '{tmp_path}/set'")
        sql.execute("CREATE TABLE db.of_session (id BIGINT, v STRING)")
        assert place_of("db.of_session") == f"file:{tmp_path}/set/db.db/of_session"
        sql.execute(f"ALTER TABLE db.t SET ('file.root-path' = '{tmp_path}/warm')")
        inserted(sql, "db.t")
        assert len(list((tmp_path / "warm").rglob("*.parquet"))) == 1
        sql.execute("ALTER TABLE db.t RESET ('file.root-path')")
        assert catalog.load_table("db.t").schema.options[STRATEGY_OPTION] == "none"
        sql.execute("CALL sys.compact(table => 'db.t')")
        assert catalog.load_table("db.t").to_arrow().num_rows == 2
        with pytest.raises(InvalidInputError, match="belongs to the table at"):
            sql.execute(
                f"CREATE TABLE db.u (id BIGINT) WITH ('{PATHS_OPTION}' = 'file:{tmp_path}/warm/db.db/t', "
                f"'{STRATEGY_OPTION}' = 'round-robin')"
            )
        sql.execute("DROP TABLE db.t")
        assert [*(tmp_path / "cold").rglob("*.parquet"), *(tmp_path / "warm").rglob("*.parquet")] == []
