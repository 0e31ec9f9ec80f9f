"""Read and write a table as a data frame, with the steps that ``format("dynamic_table")`` cannot request from Spark.

These verbs prune columns before Spark sees the table, repartition rows to the tasks that own their buckets, and check
and compute the input before the lease is acquired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.io.environment import system_environment
from storage_lib.schema.encoding.moment import Moment, optional_millis
from storage_lib.schema.filter.filter_text import as_predicate
from storage_lib.spark.compaction.distributed_compaction import compact_after_write
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.data_source.row_limit import refuse_limit
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.reading.native_read import SnapshotRead, frame_of_table, live_frame
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.tasks.driver_lease import given_back
from storage_lib.spark.tasks.session_kind import is_connect
from storage_lib.spark.types.predicate_column import column_of, quoted
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.spark.types.spark_schema import check_write_schema, struct_of
from storage_lib.spark.writing.bucket_distribution import by_bucket, by_partition_and_bucket
from storage_lib.spark.writing.computed_input import ComputedRows, computed
from storage_lib.spark.writing.source_write import write_by_source
from storage_lib.spark.writing.write_job import run_write
from storage_lib.table.protocol.write_context import OverwriteScope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.schema.filter.filter_text import Filter
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.write_context import WriteContext


def read(
    spark: SparkSession,
    table: DynamicTable,
    *,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,  # noqa: A002  the name it has everywhere in the library
    snapshot_id: int | None = None,
    tag: str | None = None,
    timestamp: Moment | None = None,
    live: bool = False,
) -> DataFrame:
    """Read a snapshot of the table (default: the newest when this is called) as a data frame.

    Name a snapshot by its id, a tag, or a time, as for ``DynamicTable.read``. Only ``columns`` are read. Files whose
    rows need no merge are read by Spark's own readers, all others by Python tasks. Name columns and a filter here
    rather than on the data frame: Spark cannot pass the columns of a query to a Python data source, and files are left
    out by ``filter`` before Spark plans anything.

    With ``live``, each query of the frame reads the snapshot that is the newest by then, by Python tasks: for a table
    that is joined with a stream, whose micro-batches are to see its newest rows.

    Raises ``InvalidInputError`` for an unknown column, and for ``live`` with a snapshot.
    """
    register(spark)
    wanted = list(columns) if columns is not None else [field.name for field in table.schema.fields]
    predicate = as_predicate(filter)
    needed = wanted + sorted((frozenset() if predicate is None else predicate.columns) - set(wanted))
    if live:
        if (snapshot_id, tag, timestamp) != (None, None, None):
            message = f"table {table.name}: live=True reads the newest snapshots; leave the snapshot, tag or time out"
            raise InvalidInputError(message)
        df = live_frame(spark, table, needed)
    else:
        snapshot = SnapshotRead(
            columns=needed,
            predicate=predicate,
            snapshot_id=snapshot_id,
            tag=tag,
            timestamp_millis=optional_millis(timestamp, "timestamp"),
        )
        df = frame_of_table(spark, table, snapshot).df
    if predicate is not None:
        df = df.where(column_of(predicate, table.schema))
    return df.select(*[quoted(name) for name in wanted]) if needed != wanted else df


def read_stream(
    spark: SparkSession,
    table: DynamicTable,
    *,
    columns: Sequence[str] | None = None,
    startup: str | None = None,
    timestamp: Moment | None = None,
    rows_per_trigger_max: int | None = None,
    normalize: str | None = None,
    on_untracked: str | None = None,
    state_directory: str | None = None,
    has_position: bool = False,
    whole_commits: bool = False,
) -> DataFrame:
    """Read the table's changes as a streaming data frame with the row kind as its last column.

    The rows of an append-only table have no row kind. ``startup`` is ``full`` (a snapshot, then the log), ``latest`` or
    ``from-timestamp``. ``normalize`` ``lookup`` adds the pre-image of each change; ``state`` does so from the rows that
    the stream stores in ``state_directory``, a path or URL that only this stream uses and that all tasks reach;
    ``none`` returns the log unchanged. ``on_untracked`` ``warn`` or ``fail`` applies at commits without change
    tracking; ``ignore``: neither. Defaults are the table's options. ``has_position`` adds the column ``_row_position``,
    by which ``write_stream`` restores the order of rows after a join or a repartition. With ``whole_commits`` no
    micro-batch ends within a commit.

    Raises ``InvalidInputError`` for ``rows_per_trigger_max`` before Spark 4.2.
    """
    refuse_limit(f"table {table.name}", "rows_per_trigger_max", rows_per_trigger_max)
    register(spark)
    options = statement_options.options_of(table)
    given = {
        statement_options.STARTUP: startup,
        statement_options.TIMESTAMP_MILLIS: optional_millis(timestamp, "timestamp"),
        statement_options.ROWS_PER_TRIGGER_MAX: rows_per_trigger_max,
        statement_options.NORMALIZE: normalize,
        statement_options.ON_UNTRACKED: on_untracked,
        statement_options.STATE_DIRECTORY: state_directory,
        statement_options.WHOLE_COMMITS: "true" if whole_commits else None,
    }
    options |= {key: str(value) for key, value in given.items() if value is not None}
    kind = table.new_read().stream_row_kind_column
    struct = struct_of(table.schema, columns, row_kind_column=kind, has_position=has_position)
    with active_session(spark):
        return spark.readStream.format(statement_options.SOURCE_NAME).schema(struct).options(**options).load()


def write(
    df: DataFrame,
    table: DynamicTable,
    *,
    mode: str = "append",
    partition: Mapping[str, object] | None = None,
    change_tracking: bool | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    compaction: bool | None = None,
    based_on: int | None = None,
    write_context: WriteContext | None = None,
) -> Snapshot | None:
    """Write a data frame as one commit; return the snapshot, or None if there was nothing to write.

    ``mode`` is ``append`` or ``overwrite``; an overwrite replaces ``partition`` (None: the partitions of the rows,
    ``{}``: the whole table). ``change_tracking`` False does not write to the log; None: by the table's option. With a
    ``commit_identifier``, a repeated call under the same ``commit_user`` returns the first call's snapshot. Due
    compactions run after an append, as a separate job and snapshot, unless the table is ``write-only`` or
    ``compaction`` is False; they never make the write fail.

    ``based_on``: the rows were computed from this snapshot; ``CommitConflictError`` if the table has changed since
    (``WriteBuilder.begin``). ``write_context``: the commit was begun by ``begin`` with the same ``commit_user`` and is
    completed here, for rows that have to be computed under the lease.

    Raises ``InvalidInputError``, before anything is computed, for a data frame that does not fit the table, and
    otherwise as ``DynamicTable.append`` does.
    """
    _check_write(df, table, mode, partition=partition, says_base=based_on is not None or write_context is not None)
    table.inspect.check_still_there()
    table = table.refresh()
    check_write_schema(table.name, table.schema, df.schema, table.options.row_kind_field)
    user = commit_user or (write_context.commit_user if write_context else system_environment().new_name())
    identifier = BATCH_COMMIT_IDENTIFIER if commit_identifier is None else commit_identifier
    if commit_identifier is not None:
        earlier = table.new_write().committed(user, identifier)
        if earlier is not None:
            return earlier
    spark = df.sparkSession
    register(spark)
    tracked = table.log is not None and (table.options.change_tracking if change_tracking is None else change_tracking)
    distributed = by_bucket(df, table.schema) if tracked else by_partition_and_bucket(df, table.schema)
    is_shuffled = distributed is not df
    # No other writer waits for these rows: the job that computes them also writes them.
    is_free = not is_shuffled and based_on is None and not table.new_write().takes_leases
    # An overwrite, or rows that depend on the table, are computed under the lease.
    computes_first = mode == "append" and write_context is None and not is_free
    with (
        active_session(spark),
        given_back(table, write_context),
        storage_errors_of_spark(),
        computed(distributed, is_shuffled=is_shuffled)
        if computes_first
        else nullcontext(ComputedRows(distributed)) as rows,
    ):
        if is_connect(spark):
            snapshot = write_by_source(
                rows.df,
                table,
                mode=mode,
                partition=partition,
                change_tracking=change_tracking,
                commit_user=user,
                commit_identifier=identifier,
                based_on=based_on,
                write_context=write_context,
            )
        else:
            begun = write_context or table.new_write().begin(
                commit_user=user,
                tracked=change_tracking,
                overwrite=None if mode == "append" else _scope(partition),
                based_on=based_on,
            )
            snapshot = run_write(rows, table, begun, identifier)
    compacts = mode == "append" or table.options.compacts_at_commit
    if compacts and (not table.options.write_only if compaction is None else compaction):
        compact_after_write(spark, table)
    return snapshot


def _scope(partition: Mapping[str, object] | None) -> OverwriteScope:
    return OverwriteScope() if partition is None else OverwriteScope.of(partition)


def _check_write(
    df: DataFrame, table: DynamicTable, mode: str, *, partition: Mapping[str, object] | None, says_base: bool
) -> None:
    if mode not in ("append", "overwrite"):
        message = f"unknown mode {mode!r}; use append or overwrite"
        raise InvalidInputError(message)
    if partition is not None and mode == "append":
        message = (
            f"table {table.name}: partition is for overwrites; an append puts each row into the partition of its values"
        )
        raise InvalidInputError(message)
    if mode == "overwrite" and says_base:
        message = f"table {table.name}: based_on and order are for appends; an overwrite replaces the existing rows"
        raise InvalidInputError(message)
    if df.isStreaming:
        message = f"table {table.name}: this data frame is a stream; use storage_lib.spark.write_stream(...)"
        raise InvalidInputError(message)
