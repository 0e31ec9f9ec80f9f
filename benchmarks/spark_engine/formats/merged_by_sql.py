"""Formats without a primary key, whose catalog is a JVM class: DDL, INSERT and MERGE INTO in Spark's SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.spark_engine.table_format import BUCKETS, COLUMNS_SQL, SessionOrder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _Merged(ABC):
    """What the formats share; subclasses say the settings, the DDL and the compaction."""

    def __init__(self, order: SessionOrder) -> None:
        self._directory = order.directory
        self.spark = order.plain_session(**self._conf(order.directory))

    @abstractmethod
    def _conf(self, directory: Path) -> dict[str, str]:
        """Return the settings of the format's extension and catalog."""

    @abstractmethod
    def _name(self, table: str) -> str:
        """Return the table's name in SQL."""

    def load(self, table: str, rows: DataFrame) -> None:
        """Insert the rows."""
        rows.createOrReplaceTempView("source")
        self.spark.sql(f"INSERT INTO {self._name(table)} SELECT * FROM source")  # noqa: S608  our own names

    def upsert(self, table: str, rows: DataFrame) -> None:
        """Merge the rows by key."""
        rows.createOrReplaceTempView("source")
        self.spark.sql(
            f"MERGE INTO {self._name(table)} t USING source s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def query(self, text: str, table: str, *, through_view: bool) -> DataFrame:
        """Query with Spark's SQL, in either case."""
        del through_view
        return self.spark.sql(text.format(table=self._name(table)))


class Delta(_Merged):
    """Delta with deletion vectors, its default for merges that touch few rows of many files."""

    def _conf(self, directory: Path) -> dict[str, str]:
        del directory  # its tables are named by their paths
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # By default 50 tasks read each new version of a table, which pays off with many thousand files.
            "spark.databricks.delta.snapshotPartitions": "2",
        }

    def _name(self, table: str) -> str:
        return f"delta.`{self._directory / table}`"

    def create(self, table: str) -> None:
        """Create the table."""
        self.spark.sql(
            f"CREATE TABLE {self._name(table)} ({COLUMNS_SQL}) USING delta "
            "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )

    def compact(self, table: str) -> None:
        """Compact small files, then rewrite those that still have deletion vectors."""
        self.spark.sql(f"OPTIMIZE {self._name(table)}")
        self.spark.sql(f"REORG TABLE {self._name(table)} APPLY (PURGE)")


class Iceberg(_Merged):
    """Iceberg with format version 3 and merge on read, so with deletion vectors, in four buckets."""

    def _conf(self, directory: Path) -> dict[str, str]:
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(directory),
        }

    def _name(self, table: str) -> str:
        return f"lake.db.{table}"

    def create(self, table: str) -> None:
        """Create the table."""
        modes = ", ".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("merge", "update", "delete"))
        self.spark.sql(
            f"CREATE TABLE {self._name(table)} ({COLUMNS_SQL}) USING iceberg PARTITIONED BY (bucket({BUCKETS}, id)) "
            f"TBLPROPERTIES ('format-version' = '3', {modes})"
        )

    def compact(self, table: str) -> None:
        """Rewrite all data files."""
        self.spark.sql(
            f"CALL lake.system.rewrite_data_files(table => 'db.{table}', options => map('rewrite-all', 'true'))"
        )


class Paimon(_Merged):
    """Paimon with a primary key in four buckets, which compacts only on request."""

    def _conf(self, directory: Path) -> dict[str, str]:
        return {
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.lake.warehouse": str(directory),
        }

    def _name(self, table: str) -> str:
        return f"lake.db.{table}"

    def create(self, table: str) -> None:
        """Create the table."""
        self.spark.sql("CREATE DATABASE IF NOT EXISTS lake.db")
        self.spark.sql(
            f"CREATE TABLE {self._name(table)} ({COLUMNS_SQL}) USING paimon "
            f"TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '{BUCKETS}', 'write-only' = 'true')"
        )

    def upsert(self, table: str, rows: DataFrame) -> None:
        """Insert the rows, which upserts them in a table with a key."""
        self.load(table, rows)

    def compact(self, table: str) -> None:
        """Run a full compaction."""
        self.spark.sql(f"CALL lake.sys.compact(table => 'db.{table}')")
