"""Write the difference between a materialized table and its query's answer, with the new positions, as one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.spark.batch.write_job import run_write
from storage_lib.spark.materialized.source_delta import WEIGHT
from storage_lib.spark.source.source_write import write_by_source
from storage_lib.spark.source.table_source import register
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.tasks.bucket_distribution import by_bucket, by_partition_and_bucket
from storage_lib.spark.tasks.computed_input import computed
from storage_lib.spark.tasks.driver_lease import given_back
from storage_lib.spark.tasks.session_kind import is_connect
from storage_lib.spark.translation.predicate_column import quoted
from storage_lib.spark.translation.spark_errors import storage_errors_of_spark
from storage_lib.spark.translation.spark_schema import check_write_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCommit:
    """Identity and content of the commit of a refresh.

    ``based_on`` is the snapshot of the table (0: none) from which the difference was computed. ``watermark``: epoch
    milliseconds, None if a source has none.
    """

    user: str
    based_on: int
    sources: Sequence[SourceRange]
    watermark: int | None = None

    @property
    def moves(self) -> bool:
        """Whether the commit changes a position."""
        return any(each.start is None or not each.start.is_same_place(each.end) for each in self.sources)


def commit_positions(table: DynamicTable, commit: RefreshCommit) -> Snapshot | None:
    """Commit positions without rows; None if they do not move.

    Raises ``CommitConflictError`` if the table has changed since ``based_on``.
    """
    if not commit.moves:
        return None
    write = table.new_write()
    context = write.begin(commit_user=commit.user, based_on=commit.based_on, needs_lease=True, refreshes=True)
    return write.commit(context, [], BATCH_COMMIT_IDENTIFIER, sources=commit.sources, watermark=commit.watermark)


def commit_difference(df: DataFrame, table: DynamicTable, commit: RefreshCommit) -> Snapshot | None:
    """Write rows of the table with weights (``_weight``), equal rows once, as one commit with the positions.

    The rows are computed before the table's lease is acquired. Returns None if there are neither rows nor new
    positions. Raises ``InvalidInputError``, with nothing written, for two rows with one primary key or a NULL in it,
    and ``CommitConflictError`` if the table has changed since ``based_on``.
    """
    rows = _with_kinds(df, table)
    check_write_schema(table.name, table.schema, rows.schema, table.options.row_kind_field)
    spark = rows.sparkSession
    register(spark)
    tracked = table.log is not None and table.options.change_tracking
    distributed = by_bucket(rows, table.schema) if tracked else by_partition_and_bucket(rows, table.schema)
    with (
        active_session(spark),
        storage_errors_of_spark(),
        computed(distributed, is_shuffled=distributed is not rows) as ready,
    ):
        if ready.row_count == 0:
            # A job with tasks in Python would take longer than all the rest of a small refresh.
            return commit_positions(table, commit)
        context = table.new_write().begin(
            commit_user=commit.user, based_on=commit.based_on, needs_lease=True, refreshes=True
        )
        with given_back(table, context):
            if is_connect(spark):
                return write_by_source(
                    ready.df,
                    table,
                    commit_user=commit.user,
                    commit_identifier=BATCH_COMMIT_IDENTIFIER,
                    write_context=context,
                    adds_up=bool(table.schema.primary_keys),
                    sources=commit.sources if commit.moves else (),
                    watermark=commit.watermark,
                )
            return run_write(
                ready,
                table,
                context,
                BATCH_COMMIT_IDENTIFIER,
                adds_up=bool(table.schema.primary_keys),
                sources=commit.sources if commit.moves else (),
                watermark=commit.watermark,
            )


def _with_kinds(df: DataFrame, table: DynamicTable) -> DataFrame:
    """Repeat each row by its weight, with the row kind of the weight's sign."""
    kind = table.options.row_kind_field
    columns = [quoted(field.name) for field in table.schema.fields]
    symbol = sql.when(sql.col(WEIGHT) > 0, RowKind.INSERT.symbol).otherwise(RowKind.DELETE.symbol)
    repeated = sql.explode(sql.array_repeat(symbol, sql.abs(sql.col(WEIGHT)).cast("int")))
    return df.select(*columns, repeated.alias(kind))
