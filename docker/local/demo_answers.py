"""The same query answered by four readers of the table, and from the CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from storage_lib import DynamicTable

__all__ = [
    "answer_of_duckdb",
    "answer_of_iceberg",
    "answer_of_paimon",
    "answer_of_spark",
    "answer_of_truth",
    "differences",
]

QUESTION = "average arrival delay by origin"
Answer = dict[str, tuple[int, float]]
"""Number of flights that arrived and their average delay in minutes, rounded to six digits, by origin."""

_SQL = """
    SELECT origin, count(arr_delay) AS arrived, round(avg(arr_delay), 6) AS delay
    FROM flights GROUP BY origin ORDER BY origin
"""


def answer_of_duckdb(table: DynamicTable) -> Answer:
    """Return DuckDB's answer from the library's Arrow batches."""
    return _asked_of_duckdb(table.read(columns=["origin", "arr_delay"]))


def answer_of_spark(table: DynamicTable) -> tuple[Answer, str]:
    """Return Spark SQL's answer, and how many files Spark's own readers and Python tasks read for it."""
    from storage_lib import open_catalog  # noqa: PLC0415  only this answer needs Spark
    from storage_lib.spark import session  # noqa: PLC0415
    from storage_lib.sql import Session  # noqa: PLC0415

    database, _, _ = table.name.partition(".")
    spark = session("answers of the demo", master="local[2]", conf={"spark.ui.showConsoleProgress": "false"})
    try:
        with Session(spark, open_catalog(table.address.warehouse, table.address.options), database=database) as sql:
            plan = str(sql.execute(f"EXPLAIN {_SQL}").to_arrow().column("plan")[0])
            answer = sql.execute(_SQL).to_arrow()
    finally:
        spark.stop()
    return _answer([tuple(row.values()) for row in answer.to_pylist()]), plan.splitlines()[-1].partition(": ")[2]


def answer_of_paimon(table: DynamicTable) -> Answer:
    """Return DuckDB's answer from the files, read by pypaimon-rust, an independent implementation."""
    from pypaimon_rust.datafusion import PaimonCatalog  # noqa: PLC0415  only this answer needs it

    warehouse = table.location.removesuffix(f"/{table.name.replace('.', '.db/', 1)}")
    builder = PaimonCatalog({"warehouse": warehouse}).get_table(table.name).new_read_builder()
    batches = builder.new_read().read_arrow(builder.new_scan().plan().splits())
    return _asked_of_duckdb(pa.Table.from_batches(batches).select(["origin", "arr_delay"]))


def answer_of_iceberg(table: DynamicTable) -> Answer:
    """Return DuckDB's answer from PyIceberg's read of the table's Iceberg view, which one option switches on."""
    from pyiceberg.table import StaticTable  # noqa: PLC0415  only this answer needs it

    from storage_lib import SetOption  # noqa: PLC0415

    view = table.alter(SetOption("metadata.iceberg.storage", "table-location"))
    rows = StaticTable.from_metadata(view.location).scan(selected_fields=("origin", "arr_delay")).to_arrow()
    return _asked_of_duckdb(rows)


def answer_of_truth(rows: pl.DataFrame) -> Answer:
    """Return the answer computed from the CSV's rows."""
    grouped = rows.group_by("origin").agg(
        pl.col("arr_delay").count().alias("arrived"), pl.col("arr_delay").mean().round(6).alias("delay")
    )
    return _answer(grouped.sort("origin").rows())


def differences(table: DynamicTable, truth: pl.DataFrame) -> tuple[int, int]:
    """Return the numbers of missing and of surplus rows in the table, compared in all columns."""
    names = [field.name for field in table.schema.fields]
    rows = pl.DataFrame(table.to_arrow())
    expected = truth.select(names).cast(rows.schema)
    missing = expected.join(rows, on=names, how="anti", nulls_equal=True).height
    surplus = rows.join(expected, on=names, how="anti", nulls_equal=True).height
    return missing, surplus


def _asked_of_duckdb(flights: pa.Table | pa.RecordBatchReader) -> Answer:
    connection = duckdb.connect()
    connection.register("flights", flights)
    return _answer(connection.sql(_SQL).fetchall())


def _answer(rows: list[tuple[str, int, float]]) -> Answer:
    return {str(origin): (int(arrived), round(float(delay), 6)) for origin, arrived, delay in rows}
