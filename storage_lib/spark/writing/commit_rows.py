"""Write rows as one commit that begins only once they are computed, so that no other writer waits for the query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from storage_lib.materialized.commit.collected_rows import commit_collected, commit_sources
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.tasks.driver_lease import given_back
from storage_lib.spark.tasks.session_kind import is_connect
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.spark.types.spark_schema import check_write_schema
from storage_lib.spark.writing.bucket_distribution import by_bucket, by_partition_and_bucket
from storage_lib.spark.writing.computed_input import computed
from storage_lib.spark.writing.source_write import write_by_source
from storage_lib.spark.writing.write_job import collected, run_write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange
    from storage_lib.table.protocol.write_context import WriteContext


def commit_rows(
    rows: DataFrame,
    table: DynamicTable,
    begin: Callable[[], WriteContext],
    commit_identifier: int,
    *,
    adds_up: bool = False,
    change_tracking: bool | None = None,
    sources: Sequence[SourceRange] = (),
    watermark: int | None = None,
    are_few: bool = False,
) -> Snapshot | None:
    """Compute the rows, let ``begin`` begin a commit under the table's lease, and write them as that commit.

    ``adds_up`` as for ``write_task``; ``sources`` and ``watermark`` as for ``WriteBuilder.commit``;
    ``change_tracking`` as given to ``WriteBuilder.begin``. ``are_few``: the rows fit into the driver, which then writes
    them without a job that distributes them. Without rows, only ``sources`` are committed, by no job of
    Spark; None without either. Raises ``InvalidInputError``, before anything is computed, for columns that do not fit,
    and otherwise as ``begin`` and ``DynamicTable.append``.
    """
    check_write_schema(table.name, table.schema, rows.schema, table.options.row_kind_field)
    spark = rows.sparkSession
    register(spark)
    here = _collected(rows) if are_few else None
    if here is not None:
        return commit_collected(
            here, table, begin, commit_identifier, adds_up=adds_up, sources=sources, watermark=watermark
        )
    tracked = table.log is not None and (table.options.change_tracking if change_tracking is None else change_tracking)
    distributed = by_bucket(rows, table.schema) if tracked else by_partition_and_bucket(rows, table.schema)
    with (
        active_session(spark),
        storage_errors_of_spark(),
        computed(distributed, is_shuffled=distributed is not rows) as ready,
    ):
        if ready.row_count == 0:
            # A job with tasks in Python would take longer than all the rest of a small refresh.
            return commit_sources(table, begin, commit_identifier, sources=sources, watermark=watermark)
        context = begin()
        with given_back(table, context):
            if is_connect(spark):
                return write_by_source(
                    ready.df,
                    table,
                    commit_user=context.commit_user,
                    commit_identifier=commit_identifier,
                    change_tracking=change_tracking,
                    write_context=context,
                    adds_up=adds_up,
                    sources=sources,
                    watermark=watermark,
                )
            return run_write(
                ready,
                table,
                context,
                commit_identifier,
                adds_up=adds_up,
                sources=sources,
                watermark=watermark,
                may_collect=True,
            )


def _collected(rows: DataFrame) -> pa.Table | None:
    with active_session(rows.sparkSession), storage_errors_of_spark():
        return collected(rows)
