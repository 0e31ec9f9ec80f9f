"""INSERT: map a query's columns to the table's, and write the rows as one commit or as a stream of commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.literal import typed_literal
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.option_values import parse_boolean, parse_integer, parse_millis
from storage_lib.schema.options.table_options import canonical_key
from storage_lib.spark.translation.spark_schema import ROW_POSITION, struct_of
from storage_lib.spark.verbs.dataframe_verbs import write
from storage_lib.spark.verbs.stream_verbs import write_stream
from storage_lib.sql.definition.virtual_columns import computed_columns
from storage_lib.sql.query.changes_in_query import StreamQuery, StreamTarget, stream_query
from storage_lib.sql.query.query_runner import rewritten, sql_of
from storage_lib.sql.query.store_assignment import as_stored
from storage_lib.sql.run.foreign_tables import insert_into_sparks, is_sparks
from storage_lib.sql.run.materialized_refusals import refuse_row_change
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.settings import CHECKPOINTS, PIPELINE_NAME, RuntimeMode
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.statements.row_statements import Insert
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable

CHANGE_TRACKING = "change-tracking"
_DYNAMIC = "dynamic-partition-overwrite"
_CHECKPOINT = "checkpoint-location"
_OUTPUT_MODE = "output-mode"
_INTERVAL = "trigger-interval"
_AVAILABLE_NOW = "available-now"
_NAME = "query-name"
_USER = "commit-user"
_IDENTIFIER = "commit-identifier"
_OF_BOTH = (CHANGE_TRACKING,)
_OF_BATCHES = (_USER, _IDENTIFIER, _DYNAMIC)
_OF_STREAMS = (_CHECKPOINT, _OUTPUT_MODE, _INTERVAL, _AVAILABLE_NOW, _NAME)


class RunningStream(Protocol):
    """The part of ``TableStream`` that ``wait_for`` uses."""

    def awaitTermination(self) -> object:  # noqa: N802  Spark's name
        """Wait until the stream ends; raise its error if it failed."""

    def stop(self) -> None:
        """Stop the stream and release its resources."""


def run_insert(state: SessionState, statement: Insert, source: SourceText) -> Result:
    """Write the query's rows.

    In streaming mode, returns the running stream; with ``table.dml-sync``, waits until the stream has ended.
    """
    table = state.find(statement.target.table)
    if table is None:
        if is_sparks(state, statement.target.table):
            return insert_into_sparks(state, statement, source)
        raise state.not_found(statement.target.table.parts)
    refuse_row_change(table, "INSERT")
    streaming = state.settings.runtime_mode is RuntimeMode.STREAMING
    hint = write_hint(table, statement.target.hint, (*_OF_BOTH, *(_OF_STREAMS if streaming else _OF_BATCHES)))
    names = _written_columns(table, statement)
    if streaming and statement.overwrite:
        message = (
            f"table {table.name}: a stream never has all rows, so it can't INSERT OVERWRITE; use INSERT INTO, or SET "
            "'execution.runtime-mode' = 'batch'"
        )
        raise InvalidInputError(message)
    if streaming:
        return _insert_stream(state, table, statement, source, names, hint)
    with rewritten(state, statement.query) as found:
        df = sql_of(state, found, source)
    rows = as_rows(df, table, names, {} if statement.partition is None else statement.partition.values)
    with errors_in_words():
        snapshot = write(
            rows,
            table,
            mode="overwrite" if statement.overwrite else "append",
            partition=_replaced(table, statement, hint) if statement.overwrite else None,
            change_tracking=change_tracking_of(state, table, hint),
            commit_user=hint.get(_USER, state.identity.user),
            commit_identifier=(parse_integer(hint[_IDENTIFIER]) if _IDENTIFIER in hint else state.identity.identifier),
        )
    return written(table, snapshot)


def written(table: DynamicTable, snapshot: Snapshot | None) -> Result:
    """Return the result of a commit; ``snapshot`` None: nothing was written."""
    if snapshot is None:
        return Result(message=f"{table.name}: nothing to write")
    return Result(
        message=f"{table.name}: snapshot {snapshot.id}", snapshot_id=snapshot.id, row_count=snapshot.delta_record_count
    )


def write_hint(table: DynamicTable, said: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """Return the hint of a write by canonical keys; ``InvalidInputError`` for a key that is not in ``known``."""
    hint = {"checkpoint-location" if key == "checkpointLocation" else canonical_key(key): said[key] for key in said}
    for key in hint:
        if key not in known:
            message = f"this write of table {table.name} has no hint {key!r}{did_you_mean(key, known)}"
            raise InvalidInputError(message)
    return hint


def boolean_hint(table: DynamicTable, hint: Mapping[str, str], key: str) -> bool | None:
    """Return the value of a boolean hint; None if it is not given. Raises ``InvalidInputError`` for another value."""
    try:
        return None if key not in hint else bool(parse_boolean(hint[key]))
    except ValueError as error:
        message = f"table {table.name}: hint {key} = {hint[key]!r}; {error}"
        raise InvalidInputError(message) from error


def change_tracking_of(state: SessionState, table: DynamicTable, hint: Mapping[str, str]) -> bool | None:
    """Return the change tracking of the hint or the session; None if the table's option applies."""
    given = boolean_hint(table, state.options_in_effect(table, hint), CHANGE_TRACKING)
    return given if CHANGE_TRACKING in hint or given is not table.options.change_tracking else None


def _written_columns(table: DynamicTable, statement: Insert) -> list[str]:
    """Return the table's columns that the query fills, in the query's order."""
    known = [field.name for field in table.schema.fields]
    by_lower_case = {name.lower(): name for name in known}
    partition = statement.partition
    fixed = {} if partition is None else partition.values
    for name in (*fixed, *(() if partition is None else partition.dynamic)):
        if name not in table.schema.partition_keys:
            near = did_you_mean(name, table.schema.partition_keys)
            message = f"table {table.name} has no partition column {name!r}{near}"
            raise InvalidInputError(message)
    if not statement.columns:
        return [name for name in known if name not in fixed]
    names = []
    for name in statement.columns:
        found = by_lower_case.get(name.lower())
        if found is None:
            if name in computed_columns(table.schema.options):
                message = f"table {table.name}: column {name!r} is computed from others and can't be written"
                raise InvalidInputError(message)
            message = f"table {table.name} has no column {name!r}{did_you_mean(name, known)}"
            raise InvalidInputError(message)
        if found in names or found in fixed:
            message = f"table {table.name}: column {found!r} is given twice"
            raise InvalidInputError(message)
        names.append(found)
    return names


def as_rows(df: DataFrame, table: DynamicTable, names: Sequence[str], fixed: Mapping[str, object]) -> DataFrame:
    """Return the columns of ``df``, by position, as the table's columns ``names``, with constant columns ``fixed``.

    The columns with the row kind and the row position are found by name, and may be anywhere in ``df``.
    """
    from pyspark.sql import functions as sql

    places = list(names)
    hidden = [
        each for each in (table.options.row_kind_field, ROW_POSITION) if each in df.columns and each not in places
    ]
    for each in sorted(hidden, key=df.columns.index):
        places.insert(df.columns.index(each), each)
    rows = as_stored(df, table, places)
    for field in struct_of(table.schema, list(fixed)).fields:
        value = fixed[field.name]
        typed = None if value is None else typed_literal(value, table.schema.field(field.name))
        rows = rows.withColumn(field.name, sql.lit(typed).cast(field.dataType))
    return rows


def _replaced(table: DynamicTable, statement: Insert, hint: Mapping[str, str]) -> dict[str, object] | None:
    """Return the partition that an overwrite replaces; None: all partitions that occur in the rows."""
    fixed = {} if statement.partition is None else dict(statement.partition.values)
    is_dynamic = len(fixed) < len(table.schema.partition_keys) and boolean_hint(table, hint, _DYNAMIC) is not False
    return None if is_dynamic else {**fixed}


def _insert_stream(
    state: SessionState,
    table: DynamicTable,
    statement: Insert,
    source: SourceText,
    names: list[str],
    hint: Mapping[str, str],
) -> Result:
    name = hint.get(_NAME) or state.settings.value(PIPELINE_NAME) or table.name
    checkpoint = hint.get(_CHECKPOINT)
    if checkpoint is None and state.settings.value(CHECKPOINTS):
        checkpoint = f"{state.settings.value(CHECKPOINTS).rstrip('/')}/{_directory(table, name)}"
    if checkpoint is None:
        message = (
            f"table {table.name}: a stream into it needs a checkpoint, which records its progress: SET "
            f"'{CHECKPOINTS}' = '<directory>' for all streams of the session, or set one for this statement, "
            f"INSERT INTO {table.name} /*+ OPTIONS('{_CHECKPOINT}' = '<directory>') */ SELECT ..."
        )
        raise InvalidInputError(message)
    found = streamed(state, table, statement, source, names, hint, checkpoint=checkpoint)
    if not found.rows.isStreaming:
        message = (
            f"table {table.name}: the query reads no stream, so there is nothing to wait for; SET "
            "'execution.runtime-mode' = 'batch' to write it once"
        )
        raise InvalidInputError(message)
    interval = hint.get(_INTERVAL)
    with errors_in_words(source):
        stream = write_stream(
            found.rows,
            table,
            checkpoint_location=checkpoint,
            output_mode=hint.get(_OUTPUT_MODE, "append"),
            trigger_seconds=state.settings.trigger_seconds if interval is None else parse_millis(interval) / 1000,
            available_now=boolean_hint(table, hint, _AVAILABLE_NOW) or False,
            change_tracking=change_tracking_of(state, table, hint),
            query_name=name,
            real_time=state.settings.is_real_time,
        )
    if state.settings.waits_for_streams:
        wait_for(stream)
        message = f"{table.name}: stream {stream.id} ended; its checkpoint is {checkpoint}"
    else:
        message = f"{table.name}: stream {stream.id} runs from {checkpoint}"
    return Result(message=f"{message}; {found.plan}" if found.plan.sentences else message, stream=stream)


def wait_for(stream: RunningStream) -> None:
    """Wait until the stream ends. If it fails or the wait is interrupted, stop it and raise the error."""
    try:
        stream.awaitTermination()
    except BaseException:
        stream.stop()
        raise


def streamed(
    state: SessionState,
    table: DynamicTable,
    statement: Insert,
    source: SourceText,
    names: Sequence[str],
    hint: Mapping[str, str],
    *,
    checkpoint: str | None,
) -> StreamQuery:
    """Return the rows and the plan of a streaming INSERT; ``checkpoint`` None: they are only explained."""
    fixed = {} if statement.partition is None else statement.partition.values
    target = StreamTarget(
        table=table,
        rows_of=lambda df: as_rows(df, table, names, fixed),
        output_mode=hint.get(_OUTPUT_MODE, "append"),
        change_tracking=change_tracking_of(state, table, hint),
        checkpoint=checkpoint,
    )
    return stream_query(state, statement.query, source, target)


def explained_stream(state: SessionState, statement: Insert, source: SourceText) -> str:
    """Explain what a streaming INSERT does in addition to its query, and why; empty if only the INSERT can refuse."""
    table = state.find(statement.target.table)
    if table is None:
        return ""
    refuse_row_change(table, "INSERT")
    hint = write_hint(table, statement.target.hint, (*_OF_BOTH, *_OF_STREAMS))
    names = _written_columns(table, statement)
    plan = streamed(state, table, statement, source, names, hint, checkpoint=None).plan
    return "\n".join(f"stream into {table.name}: {sentence}" for sentence in plan.sentences)


def _directory(table: DynamicTable, name: str) -> str:
    """Return the name of a stream's checkpoint directory; ``InvalidInputError`` if the name can't be a directory."""
    if "/" in name or name in (".", ".."):
        message = (
            f"table {table.name}: the stream's name {name!r} can't be the name of its checkpoint directory; choose one "
            f"without '/', or add the hint '{_CHECKPOINT}'"
        )
        raise InvalidInputError(message)
    return name
