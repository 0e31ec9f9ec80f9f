"""``refresh``: bring a materialized table to its query's answer, in a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.materialized.refresh_table import refresh_table
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.engine.spark_engine import engines_of
from storage_lib.spark.reading.united_frames import leave_out_unsafe_rule
from storage_lib.spark.types.spark_errors import storage_errors_of_spark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from storage_lib.materialized.plan.refresh_result import RefreshResult
    from storage_lib.table.dynamic_table import DynamicTable


@storage_errors_of_spark()
def refresh(
    spark: SparkSession,
    table: DynamicTable,
    *,
    partition: Mapping[str, object] | None = None,
    full: bool = False,
    commit_user: str | None = None,
) -> RefreshResult:
    """Make a materialized table equal to its query's answer at the newest snapshots of its sources.

    Only rows that differ are written, in one commit that also stores the sources' snapshots. If no source has changed,
    nothing is committed. The changes of the sources are applied incrementally if that is possible; ``full`` computes
    the whole query instead. ``partition`` also computes that partition of the answer in full, as a second commit.

    Tables with TARGET_LAG = DOWNSTREAM that it reads, itself or through others of them, are refreshed first, each in a
    commit of its own, unless they are suspended.

    It is computed under the settings of the session that gave the table its query, whatever those of ``spark`` are.

    ``commit_user`` is the commit user of the snapshot, for a caller that looks for its own commit later; it has to
    differ from that of every other refresh.

    A suspended table is refreshed as well. If another process refreshes the table at the same time, one of them
    commits, and the other reports that the table is current.

    Raises ``InvalidInputError``, with nothing of this table written, for a table that is not materialized, a query that
    no longer fits its sources, and an answer that violates the primary key; ``NotFoundError`` for a source that was
    dropped; ``UnavailableError`` if Spark does not start a Python process in time; otherwise as
    ``DynamicTable.append``.
    """
    register(spark)
    leave_out_unsafe_rule(spark)
    return refresh_table(engines_of(spark), table, partition=partition, full=full, commit_user=commit_user)
