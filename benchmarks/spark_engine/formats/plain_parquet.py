"""A directory of Parquet files, without key, commits and merging: what Spark needs at least for the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.spark_engine.table_format import BUCKETS, SessionOrder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PlainParquet:
    """Rows of the load in the order in which Spark read them; the final rows sorted by key in four files."""

    def __init__(self, order: SessionOrder) -> None:
        self._directory = order.directory
        self.spark = order.plain_session()

    def create(self, table: str) -> None:
        """Do nothing: the load creates the directory."""

    def load(self, table: str, rows: DataFrame) -> None:
        """Write the files."""
        rows.write.parquet(self._path(table))

    def upsert(self, table: str, rows: DataFrame) -> None:
        """Replace all rows: the benchmark passes the final rows, and does not time it."""
        by_key = rows.repartitionByRange(BUCKETS, "id").sortWithinPartitions("id")
        by_key.write.mode("overwrite").parquet(self._path(table))

    def compact(self, table: str) -> None:
        """Do nothing: there is nothing to merge."""

    def query(self, text: str, table: str, *, through_view: bool) -> DataFrame:
        """Query the files, in either case."""
        del through_view
        return self.spark.sql(text.format(table=f"parquet.`{self._path(table)}`"))

    def _path(self, table: str) -> str:
        return str(self._directory / table)
