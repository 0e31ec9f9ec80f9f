"""Rows that Spark writes to a table with a changelog producer appear in the stream of Paimon's Java core."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark import compact, write
from tests.support.paimon_core import PaimonCore
from tests.support.shared_table import SharedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"k": "INT NOT NULL", "n": "INT"}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}


@pytest.mark.parametrize(
    "options",
    [
        {"changelog-producer": "lookup"},
        {"changelog-producer": "lookup", **SUM},
        {"changelog-producer": "full-compaction", **SUM},
    ],
    ids=["lookup", "lookup, sums", "full-compaction, sums"],
)
def test_appends_overwrites_and_compactions_by_spark_are_in_the_stream(
    spark: SparkSession, paimon_core: PaimonCore, tmp_path: Path, options: dict[str, str]
) -> None:
    table = SharedTable.made_by_us(paimon_core, tmp_path, COLUMNS, {**options, "bucket": "2"})

    def put(rows: list[tuple[int, int]], mode: str = "append") -> None:
        frame = spark.createDataFrame(rows, "k INT, n INT")
        whole: dict[str, object] | None = {} if mode == "overwrite" else None
        write(frame, table.ours(), mode=mode, partition=whole)

    put([(key, 1) for key in range(10)])
    put([(3, 5), (20, 1)])
    assert table.rows_of_stream() == table.rows_by_java() == table.rows_by_us()
    put([(3, 7), (4, 4)], "overwrite")
    assert table.rows_of_stream() == table.rows_by_java() == [(3, 7), (4, 4)]
    put([(3, 1)])
    compact(spark, table.ours())
    assert table.rows_of_stream() == table.rows_by_java() == table.rows_by_us()
