"""Streaming INSERT: Spark streams the query's changes, or its result is kept up to date from its tables' commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.option_values import parse_millis
from storage_lib.spark.insert_stream.insert_stream import insert_stream
from storage_lib.spark.verbs.stream_verbs import write_stream
from storage_lib.sql.query.changes_in_query import StreamQuery, StreamTarget, stream_query
from storage_lib.sql.run.insert_answers import KeptAnswer, is_about_streaming, kept_answer
from storage_lib.sql.run.insert_rows import (
    CHANGE_TRACKING,
    boolean_hint,
    change_tracking_of,
    named_by_its_query,
    rows_of_insert,
    write_hint,
    written_columns,
)
from storage_lib.sql.run.materialized_refusals import refuse_row_change
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.settings import CHECKPOINTS, PIPELINE_NAME
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.statements.row_statements import Insert
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from storage_lib.spark.verbs.table_stream import TableStream
    from storage_lib.table.dynamic_table import DynamicTable

_CHECKPOINT = "checkpoint-location"
_OUTPUT_MODE = "output-mode"
_INTERVAL = "trigger-interval"
_AVAILABLE_NOW = "available-now"
_NAME = "query-name"
STREAM_HINTS = (CHANGE_TRACKING, _CHECKPOINT, _OUTPUT_MODE, _INTERVAL, _AVAILABLE_NOW, _NAME)


class RunningStream(Protocol):
    """The part of ``TableStream`` that ``wait_for`` uses."""

    def awaitTermination(self) -> object:  # noqa: N802  Spark's name
        """Wait until the stream ends; raise its error if it failed."""

    def stop(self) -> None:
        """Stop the stream and release its resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StreamSettings:
    """Settings of a streaming INSERT from its hint and the session."""

    name: str
    checkpoint: str
    trigger_seconds: float
    available_now: bool
    change_tracking: bool | None


def run_insert_stream(
    state: SessionState,
    table: DynamicTable,
    statement: Insert,
    source: SourceText,
    names: list[str],
    hint: Mapping[str, str],
) -> Result:
    """Start the stream; with ``table.dml-sync``, wait until it has ended."""
    settings = _settings_of(state, table, hint)
    try:
        stream, plan = _stream_of_changes(state, table, statement, source, names, hint, settings)
    except InvalidInputError as refusal:
        answer = _kept_answer(state, table, statement, source, hint, refusal)
        with errors_in_words(source):
            stream = insert_stream(
                state.spark,
                answer.table,
                answer.definition,
                answer.home,
                rows_of_insert(table, statement, names),
                checkpoint_location=settings.checkpoint,
                trigger_seconds=settings.trigger_seconds,
                available_now=settings.available_now,
                change_tracking=settings.change_tracking,
                query_name=settings.name,
            )
        plan = answer.sentence
    if state.settings.waits_for_streams:
        wait_for(stream)
        message = f"{table.name}: stream {stream.id} ended; its checkpoint is {settings.checkpoint}"
    else:
        message = f"{table.name}: stream {stream.id} runs from {settings.checkpoint}"
    return Result(message=f"{message}; {plan}" if plan else message, stream=stream)


def _settings_of(state: SessionState, table: DynamicTable, hint: Mapping[str, str]) -> _StreamSettings:
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
    interval = hint.get(_INTERVAL)
    return _StreamSettings(
        name=name,
        checkpoint=checkpoint,
        trigger_seconds=state.settings.trigger_seconds if interval is None else parse_millis(interval) / 1000,
        available_now=boolean_hint(table, hint, _AVAILABLE_NOW) or False,
        change_tracking=change_tracking_of(state, table, hint),
    )


def _stream_of_changes(
    state: SessionState,
    table: DynamicTable,
    statement: Insert,
    source: SourceText,
    names: Sequence[str],
    hint: Mapping[str, str],
    settings: _StreamSettings,
) -> tuple[TableStream, str]:
    """Start the query as a stream of Spark; return it with what was added to the query, in words."""
    found = streamed(state, table, statement, source, names, hint, checkpoint=settings.checkpoint)
    if not found.rows.isStreaming:
        message = (
            f"table {table.name}: the query reads no stream, so there is nothing to wait for; SET "
            "'execution.runtime-mode' = 'batch' to write it once"
        )
        catalogs = [state.session_catalog(each.parts) for each in statement.query.tables]
        if any(each is not None and each.lake is not None for each in catalogs):
            message += ". CREATE MATERIALIZED TABLE follows the changes of tables of Delta Lake and Iceberg"
        raise InvalidInputError(message)
    with errors_in_words(source):
        stream = write_stream(
            found.rows,
            table,
            checkpoint_location=settings.checkpoint,
            output_mode=hint.get(_OUTPUT_MODE, "append"),
            trigger_seconds=settings.trigger_seconds,
            available_now=settings.available_now,
            change_tracking=settings.change_tracking,
            query_name=settings.name,
            real_time=state.settings.is_real_time,
        )
    return stream, str(found.plan) if found.plan.sentences else ""


def _kept_answer(
    state: SessionState,
    table: DynamicTable,
    statement: Insert,
    source: SourceText,
    hint: Mapping[str, str],
    refusal: InvalidInputError,
) -> KeptAnswer:
    """Return the query as one that is kept up to date from commits; raise ``refusal`` if that is not the remedy."""
    if not is_about_streaming(refusal) or _OUTPUT_MODE in hint or state.settings.is_real_time:
        raise refusal
    return kept_answer(state, table, statement.query, source, refusal)


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
    target = StreamTarget(
        table=table,
        rows_of=rows_of_insert(table, statement, names),
        output_mode=hint.get(_OUTPUT_MODE, "append"),
        change_tracking=change_tracking_of(state, table, hint),
        checkpoint=checkpoint,
    )
    return stream_query(state, statement.query, source, target)


@dataclass(frozen=True, slots=True)
class ExplainedStream:
    """The text of EXPLAIN about a streaming INSERT itself; empty if only the INSERT can refuse.

    ``runs_in_spark``: Spark's plan of the query, as a stream, is what runs.
    """

    text: str
    runs_in_spark: bool = True


def explained_stream(state: SessionState, statement: Insert, source: SourceText) -> ExplainedStream:
    """Explain a streaming INSERT."""
    table = state.find(statement.target.table)
    if table is None:
        return ExplainedStream("")
    refuse_row_change(table, "INSERT")
    hint = write_hint(table, statement.target.hint, STREAM_HINTS)
    statement = named_by_its_query(state, table, statement, source)
    names = written_columns(table, statement)
    try:
        plan = streamed(state, table, statement, source, names, hint, checkpoint=None).plan
    except InvalidInputError as refusal:
        answer = _kept_answer(state, table, statement, source, hint, refusal)
        lines = [f"stream into {table.name}: {answer.sentence}", "", "== Operators ==", *answer.lines]
        return ExplainedStream("\n".join(lines), runs_in_spark=False)
    return ExplainedStream("\n".join(f"stream into {table.name}: {sentence}" for sentence in plan.sentences))


def _directory(table: DynamicTable, name: str) -> str:
    """Return the name of a stream's checkpoint directory; ``InvalidInputError`` if the name can't be a directory."""
    if "/" in name or name in (".", ".."):
        message = (
            f"table {table.name}: the stream's name {name!r} can't be the name of its checkpoint directory; choose one "
            f"without '/', or add the hint '{_CHECKPOINT}'"
        )
        raise InvalidInputError(message)
    return name
