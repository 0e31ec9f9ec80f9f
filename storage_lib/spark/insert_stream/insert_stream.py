"""``insert_stream``: a stream that keeps the answer of any query in a table, from the commits of the query's tables.

    commits of the tables ─▶ Spark's checkpoint ─▶ change of the answer, as a batch query ─▶ one commit per micro-batch

Spark runs the stream: its trigger, its checkpoint, its progress. What it can't compute with retractions, for example
aggregates and joins of changes, the incremental compiler does. Each commit stores the number of the next micro-batch
among the table's source offsets, so a replayed micro-batch is not written twice, and one after a rollback is refused.
Old rows are computed again from the sources, so the query, the settings that its values depend on, and the columns that
it reads stay as they were when the stream first started (``stored_query``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, SnapshotExpiredError, StorageError
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.materialized.commit.collected_rows import commit_sources
from storage_lib.materialized.definition.unfit_options import unfit_option
from storage_lib.materialized.sources.source_tables import BoundQuery, bound_query
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from storage_lib.spark.compaction.stream_compaction import StreamCompaction
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.data_source.checkpoint_identity import settled_query_id
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.engine.session_settings import copy_with_settings, settings_of
from storage_lib.spark.engine.weighted_frames import rows_with_kinds
from storage_lib.spark.insert_stream.answer_change import answer_change
from storage_lib.spark.insert_stream.commit_source import (
    SOURCE_NAME,
    TABLES,
    Positions,
    positions_in,
    register_commits,
)
from storage_lib.spark.insert_stream.stored_query import refuse_altered, stored_query_of
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.tasks.session_kind import refuse_connect
from storage_lib.spark.verbs.stream_settings import stream_start
from storage_lib.spark.verbs.table_stream import TableStream
from storage_lib.spark.writing.commit_rows import commit_rows
from storage_lib.table.protocol.source_offsets import SourceRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.table_address import TableAddress
    from storage_lib.table.protocol.write_context import WriteContext

_LOGGER = logging.getLogger(__name__)
_PARTITION = 0


def insert_stream(
    spark: SparkSession,
    table: DynamicTable,
    definition: MaterializedTableDefinition,
    home: TableAddress,
    rows_of: Callable[[DataFrame], DataFrame],
    *,
    checkpoint_location: str,
    trigger_seconds: float = 0.0,
    available_now: bool = False,
    change_tracking: bool | None = None,
    query_name: str | None = None,
) -> TableStream:
    """Start a stream after whose micro-batches the table holds the query's answer at the snapshots read so far.

    The first micro-batch writes the answer of all rows. ``definition`` is the query, over tables of the catalog of
    ``home``; ``rows_of`` converts rows of its answer, whose columns are found by position and are followed by the row
    kind, to rows of the table. The snapshots that
    the next micro-batch needs do not expire: the stream is a consumer, ``stream-<query id>``, of each source.

    Raises ``InvalidInputError``, before anything starts, for a query that is not incremental, a table that can't
    hold an answer, and the checkpoint of another stream.
    """
    refuse_connect(
        spark,
        "a stream of a query's answer",
        why="it computes each micro-batch on the driver",
        remedy="Use a classic session",
    )
    definition = replace(definition, settings=settings_of(spark))
    bound = bound_query(home, definition, has_names=False)
    refuse_table(table)
    refuse_query(bound)
    register(spark)
    register_commits(spark)
    user = settled_query_id(spark, checkpoint_location, table)
    stored = stored_query_of(spark, table, checkpoint_location, definition, bound)
    # What the user sets from now on must not change how old rows are computed.
    own = copy_with_settings(spark, stored.settings)
    definition = replace(definition, settings=stored.settings)
    refuse_query(bound_query(home, definition, has_names=False))
    options = statement_options.options_of(next(iter(bound.tables.values())))
    commits = spark.readStream.format(SOURCE_NAME).options(**options, **{TABLES: json.dumps(sorted(bound.tables))})

    def commit_batch(batch: DataFrame, batch_id: int) -> None:
        target = table.refresh()
        reached = _range_of(target, user, batch_id)
        if reached is None:
            return
        before, after = map(positions_in, batch.collect()[0])
        now = bound_query(home, definition, has_names=False)
        refuse_altered(stored, now)
        _keep(now.tables, user, {**after, **before})

        def begin() -> WriteContext:
            return target.new_write().begin(commit_user=user, tracked=change_tracking, needs_lease=True)

        with active_session(own), answer_change(own, now, before, after) as change:
            if change is None:
                commit_sources(target, begin, batch_id, sources=(reached,))
            else:
                commit_rows(
                    rows_of(rows_with_kinds(change, target.options.row_kind_field)),
                    target,
                    begin,
                    batch_id,
                    adds_up=bool(target.schema.primary_keys),
                    change_tracking=change_tracking,
                    sources=(reached,),
                )
        _keep(now.tables, user, after)

    df = commits.load()
    writer = df.writeStream.foreachBatch(commit_batch)
    if query_name is not None:
        writer = writer.queryName(query_name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(trigger_seconds * 1000)} milliseconds")
    compaction = None if table.options.write_only else StreamCompaction(spark, table, interval_seconds=10.0)
    return TableStream(
        stream_start(writer, df, checkpoint_location, available_now=available_now), table, user, compaction
    )


def _range_of(table: DynamicTable, user: str, batch_id: int) -> SourceRange | None:
    """Return the numbers of a micro-batch and the next one; None if the table holds this micro-batch already.

    Raises ``InvalidInputError`` if the table is not where the last micro-batch has left it.
    """
    source = f"stream-{user}"
    start = LogOffsets({_PARTITION: batch_id}) if batch_id else None
    end = LogOffsets({_PARTITION: batch_id + 1})
    reached = table.inspect.source_offsets(source)
    if end.is_same_place(reached):
        return None
    if (start is None) != (reached is None) or (start is not None and not start.is_same_place(reached)):
        message = (
            f"table {table.name} does not hold what its stream has written before micro-batch {batch_id}: it was "
            "rolled back or recreated, or the checkpoint is an older copy. Start the stream with a new checkpoint, "
            "into an empty table"
        )
        raise InvalidInputError(message)
    return SourceRange(source=source, start=start, end=end)


def refuse_query(bound: BoundQuery) -> None:
    """Raise ``InvalidInputError`` for a query whose rows of an earlier moment can't be computed again exactly."""
    reason = bound.compiled.reason
    if reason is None and bound.compiled.inexact is not None:
        reason = f"{bound.compiled.inexact} may differ in its last digits from run to run (cast to DECIMAL)"
    if reason is not None:
        message = (
            f"{reason}, so the rows that a change removes from its result are not known. A materialized "
            "table compares the result with its own rows: CREATE MATERIALIZED TABLE ... AS SELECT"
        )
        raise InvalidInputError(message)


def refuse_table(table: DynamicTable) -> None:
    """Raise ``InvalidInputError`` for a table that would not hold exactly the rows of an answer."""
    option = unfit_option(table.options, takes_append_only=True)
    if option is not None:
        message = (
            f"table {table.name}: with its option {option} it would not hold exactly the rows of a query that "
            "aggregates or joins changes. Insert into a table without that option"
        )
        raise InvalidInputError(message)


def _keep(sources: Mapping[str, DynamicTable], user: str, positions: Positions) -> None:
    """Keep the snapshots of a micro-batch from expiring, also for a restart."""
    for name, source in sources.items():
        at = positions.get(name)
        try:
            source.consumers.create(f"stream-{user}", max(1, 0 if at is None else at.position.snapshot_id))
        except SnapshotExpiredError:
            # The micro-batch that needs it says what to do.
            continue
        except StorageError as error:
            _LOGGER.warning(
                "a stream can't keep the snapshots of %s that it reads from expiring: %s. If one expires, it fails",
                name,
                error,
            )
