"""The plan of one streaming write: applies ``stream_plan`` to a data frame and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.field_options import FieldOptions
from storage_lib.schema.options.table_options import ChangelogMode, MergeEngine, TableOptions, UpdateBeforeSource
from storage_lib.spark.stream.plan.query_facts import QueryFacts, facts_of
from storage_lib.spark.stream.plan.read_query_tree import column_numbers, tree_of
from storage_lib.spark.stream.plan.stream_plan import LOOKUP, STATE, SinkKind, SinkTable, StreamPlan, plan_of
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import ROW_POSITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable


def plan_of_write(
    df: DataFrame, table: DynamicTable, *, carries_kind: bool = False, change_tracking: bool | None = None
) -> tuple[StreamPlan, QueryFacts]:
    """Return the plan for writing the stream ``df`` into ``table``, and its facts. Raises as ``plan_of``."""
    facts = facts_of(tree_of(df))
    sink = sink_of(table, df, change_tracking=change_tracking)
    return plan_of(facts, sink, carries_kind=carries_kind), facts


def sink_of(table: DynamicTable, df: DataFrame, *, change_tracking: bool | None) -> SinkTable:
    """Return the table as the target of a data frame."""
    options, schema = table.options, table.schema
    tracked = table.log is not None and (options.change_tracking if change_tracking is None else change_tracking)
    mode = options.effective_changelog_mode(has_primary_key=bool(schema.primary_keys))
    if schema.is_append_only:
        kind = SinkKind.APPENDS
    elif schema.counts_values:
        kind = SinkKind.COUNTS
    elif options.ignore_delete:
        kind = SinkKind.MERGES
    elif _aggregates(options):
        kind = SinkKind.AGGREGATES
    else:
        kind = SinkKind.NEWEST_WINS if options.newest_wins else SinkKind.MERGES
    return SinkTable(
        name=table.name,
        kind=kind,
        columns=column_numbers(df),
        primary_keys=schema.primary_keys,
        kind_column=options.row_kind_field,
        looks_up=not (tracked and table.new_write().is_log_first),
        takes_rows_before=tracked
        and mode is ChangelogMode.ALL
        and options.write_produce_update_before is UpdateBeforeSource.INPUT,
    )


def _aggregates(options: TableOptions) -> bool:
    """Return whether a stored row is computed from all rows of its key, by functions such as ``sum``."""
    if options.merge_engine is MergeEngine.PARTIAL_UPDATE:
        fields = FieldOptions.parse(options.others)
        return bool(fields.sequence_groups) and bool(fields.functions or fields.default_function)
    return options.merge_engine is MergeEngine.AGGREGATION


def prepared(
    df: DataFrame, table: DynamicTable, *, position_column: str | None, change_tracking: bool | None
) -> tuple[DataFrame, StreamPlan]:
    """Return ``df``, with row positions only if the write uses them, and the plan of the write.

    Raises ``InvalidInputError`` with the remedy if ``df`` lacks something that the write needs: row positions,
    pre-images, whole commits, or other tables pinned to a snapshot.
    """
    if position_column is not None:
        df = _renamed(df, table, position_column)
    plan, facts = plan_of_write(df, table, change_tracking=change_tracking)
    refuse_frozen(table, facts)
    if plan.normalize in (LOOKUP, STATE):
        directory = ", state_directory=..." if plan.normalize == STATE else ""
        message = (
            f"table {table.name}: {plan.normalize_reason}; so the changes of {facts.streams[0].name} need the rows "
            f"before them: read_stream(..., normalize={plan.normalize!r}{directory})"
        )
        raise InvalidInputError(message)
    if plan.pins and facts.unpinned:
        message = (
            f"table {table.name}: {plan.pin_reason}, so {', '.join(facts.unpinned)} has to stay the same while the "
            "stream runs, and when it is started again: read(..., snapshot_id=...), or a tag"
        )
        raise InvalidInputError(message)
    parted = [each.name for each in facts.streams if not each.is_whole] if plan.adds_up else []
    if parted:
        message = (
            f"table {table.name}: {plan.adds_up_reason}; so the changes of {parted[0]} have to come commit by commit: "
            "read_stream(..., whole_commits=True)"
        )
        raise InvalidInputError(message)
    has_position = ROW_POSITION in df.columns and ROW_POSITION not in table.schema.arrow_schema.names
    if plan.needs_position and not has_position:
        raise _without_position(table, plan, facts)
    keeps = plan.carries_position or position_column is not None or not has_position
    return df if keeps else df.drop(ROW_POSITION), plan


def refuse_frozen(table: DynamicTable, facts: QueryFacts) -> None:
    """Raise ``InvalidInputError`` for a stream that is joined with the rows that were a table's newest ones."""
    if facts.frozen:
        message = (
            f"table {table.name}: {', '.join(facts.frozen)} was read at the snapshot that was the newest then, so the "
            "stream would not see later rows, and would see others when it is started again. Use read(..., live=True) "
            "for the newest rows in each micro-batch, or read(..., snapshot_id=...) or a tag for the same rows always"
        )
        raise InvalidInputError(message)


def _renamed(df: DataFrame, table: DynamicTable, position_column: str) -> DataFrame:
    if position_column not in df.columns:
        message = f"table {table.name}: the data frame has no column {position_column!r} (position_column)"
        raise InvalidInputError(message)
    positioned = df.withColumn(ROW_POSITION, quoted(position_column).cast("bigint"))
    is_stored = position_column in (*table.schema.arrow_schema.names, ROW_POSITION)
    return positioned if is_stored else positioned.drop(position_column)


def _without_position(table: DynamicTable, plan: StreamPlan, facts: QueryFacts) -> InvalidInputError:
    if any(each.is_foreign for each in facts.streams):
        remedy = (
            "Name a column of whole numbers that grows with the changes of a key: write_stream(..., "
            "position_column=...), or join by broadcast(...), which keeps the order"
        )
    else:
        remedy = "Read it by read_stream(..., has_position=True) and keep the column _row_position"
    message = (
        f"table {table.name}: {plan.position_reason} may change the order of rows, and of several changes of a key "
        f"the last one counts. {remedy}"
    )
    return InvalidInputError(message)
