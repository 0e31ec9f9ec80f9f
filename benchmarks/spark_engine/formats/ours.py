"""This project's tables: written by ``storage_lib.spark.write``, queried by ``storage_lib.sql.Session`` or ``read``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.spark_engine.table_format import BUCKETS, SessionOrder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib import DynamicTable

# Imports are local: the peers' environments do not have this library, and its import belongs to the session's start.


class Ours:
    """Tables with four buckets that compact only on request; every commit is synced to disk."""

    def __init__(self, order: SessionOrder) -> None:
        from storage_lib import open_catalog  # noqa: PLC0415
        from storage_lib.spark import session  # noqa: PLC0415
        from storage_lib.sql import Session  # noqa: PLC0415

        self.spark = session("spark benchmark", master=order.master, conf=order.conf)
        self._catalog = open_catalog(str(order.directory))
        self._sql = Session(self.spark, self._catalog)

    def create(self, table: str) -> None:
        """Create the table with key ``id``."""
        self._sql.execute(
            f"CREATE TABLE db.{table} (id BIGINT NOT NULL, dt STRING NOT NULL, name STRING, amount DECIMAL(12, 2), "
            "score DOUBLE, ts TIMESTAMP(6), PRIMARY KEY (id) NOT ENFORCED) "
            f"WITH ('bucket' = '{BUCKETS}', 'write-only' = 'true', 'log.system' = 'none')"
        )

    def load(self, table: str, rows: DataFrame) -> None:
        """Append the rows."""
        from storage_lib.spark import write  # noqa: PLC0415

        write(rows, self._table(table))

    def upsert(self, table: str, rows: DataFrame) -> None:
        """Append the rows, which upserts them in a table with a key."""
        self.load(table, rows)

    def compact(self, table: str) -> None:
        """Run a full compaction, distributed over Spark's tasks."""
        from storage_lib.spark import compact  # noqa: PLC0415

        compact(self.spark, self._table(table), full=True)

    def query(self, text: str, table: str, *, through_view: bool) -> DataFrame:
        """Query with the library's SQL, or with Spark's over a view of ``read(spark, table)``."""
        if through_view:
            from storage_lib.spark import read  # noqa: PLC0415

            read(self.spark, self._table(table)).createOrReplaceTempView("viewed")
            return self.spark.sql(text.format(table="viewed"))
        found = self._sql.execute(text.format(table=f"db.{table}")).dataframe
        if found is None:
            message = f"not a query: {text}"
            raise ValueError(message)
        return found

    def _table(self, table: str) -> DynamicTable:
        return self._catalog.load_table(f"db.{table}")
