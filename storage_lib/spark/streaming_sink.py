"""``python -m storage_lib.spark.streaming_sink --spec spec.json``: one stream into one table, as a process of its own.

The launcher (an Airflow operator) detaches it and reads its heartbeat file. It ends with 0 when asked to
stop, by SIGTERM or by a stop file, and with 1 when the stream fails; the error is in the heartbeat.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.distribution import import_problem
from storage_lib.errors import InvalidInputError, PermanentError, StorageError
from storage_lib.io.environment import Environment, system_environment
from storage_lib.log_store.external.external_topic import COLUMN_TYPES, TABLE_ENGINE
from storage_lib.progress.sink_state import SinkState
from storage_lib.schema.options.option_values import parse_boolean
from storage_lib.schema.options.secret_text import hidden_in

try:
    from storage_lib.spark.data_source.row_limit import refuse_limit
    from storage_lib.spark.runtime.allowed_text import refuse_expression
    from storage_lib.spark.runtime.restricted_sql import refuse_commands, restrict_sql
    from storage_lib.spark.runtime.spark_session import session
    from storage_lib.spark.stream.plan.stream_plan import LOOKUP, STATE, StreamPlan
    from storage_lib.spark.stream.plan.write_plan import plan_of_write
    from storage_lib.spark.stream.sink.sink_check import check_of
    from storage_lib.spark.stream.sink.sink_checkpoint import checkpoint_to_resume
    from storage_lib.spark.stream.sink.sink_heartbeat import SinkHeartbeat
    from storage_lib.spark.stream.sink.sink_spec import SinkSpec
    from storage_lib.spark.types.spark_schema import struct_of
    from storage_lib.spark.verbs.changelog_verbs import read_changelog
    from storage_lib.spark.verbs.dataframe_verbs import read_stream
    from storage_lib.spark.verbs.stream_verbs import reports_sources, write_stream
    from storage_lib.spark.verbs.table_stream import TableStream
except ImportError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(import_problem("python -m storage_lib.spark.streaming_sink", error, "spark")) from error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

_POLL_SECONDS = 0.25
_BEAT_SECONDS = 2.0


class StreamingSink:
    """Runs one specification to its end, and reports its state in the heartbeat file."""

    def __init__(self, spec: SinkSpec, environment: Environment, stop: threading.Event) -> None:
        self._spec = spec
        self._environment = environment
        self._stop = stop
        self._lock = threading.Lock()
        now = environment.clock.now_millis()
        self._heartbeat = SinkHeartbeat(
            state=SinkState.STARTING, pid=os.getpid(), started_millis=now, written_millis=now, table=spec.table
        )

    def run(self) -> int:
        """Run the stream until it ends or is asked to stop; return the exit code of the process."""
        self._say(state=SinkState.STARTING)
        ended = threading.Event()
        beating = threading.Thread(target=self._keep_saying, args=(ended,), name="heartbeat", daemon=True)
        beating.start()
        try:
            self._watch(self._start())
            last: dict[str, Any] = {"state": SinkState.STOPPED}
        except Exception as error:  # noqa: BLE001  whatever it is, the heartbeat has to say so
            last = {"state": SinkState.FAILED, "error": self._told(error)}
        ended.set()
        beating.join()
        self._say(**last)
        return int(last["state"] is SinkState.FAILED)

    def _keep_saying(self, ended: threading.Event) -> None:
        """Write heartbeats until ``ended`` is set. Needs a thread because starting Spark takes long."""
        while not ended.wait(_BEAT_SECONDS):
            self._say()

    def _start(self) -> TableStream:
        spec = self._spec
        # Before a JVM is started for nothing.
        refuse_limit(f"table {spec.table}", "max_rows_per_trigger", spec.max_rows_per_trigger)
        catalog = open_catalog(spec.warehouse, spec.resolved_catalog_options(os.environ))
        table = catalog.load_table(spec.table)
        tracking = _change_tracking(spec.write_options)
        spark = session(f"streaming sink {spec.table}", master=spec.master, conf=spec.spark_conf)
        spark.sparkContext.setLogLevel("WARN")
        df = query_of(spark, catalog, table, spec, change_tracking=tracking)
        reports = reports_sources(table, output_mode=spec.output_mode, change_tracking=tracking)
        by_parts = _is_applied(table, spec, change_tracking=tracking)
        checkpoint = checkpoint_to_resume(spec.checkpoint_location, table, reports_sources=reports, by_parts=by_parts)
        return write_stream(
            df,
            table,
            checkpoint_location=checkpoint,
            output_mode=spec.output_mode,
            trigger_seconds=spec.trigger_seconds,
            available_now=spec.available_now,
            change_tracking=tracking,
            query_name=spec.query_name,
            expect=check_of(spec.check),
        )

    def _watch(self, stream: TableStream) -> None:
        self._say(state=SinkState.RUNNING, query_id=str(stream.query.id))
        while not self._stop_wanted() and stream.isActive:
            self._stop.wait(_POLL_SECONDS)
            self._note_progress(stream)
            self._note_compaction(stream)
            self._note_tiering(stream)
        failure = stream.error()
        if failure is not None:
            raise failure
        self._say(state=SinkState.STOPPING)
        stream.stop()
        self._note_progress(stream)
        self._note_tiering(stream)

    def _stop_wanted(self) -> bool:
        path = self._spec.stop_path
        return self._stop.is_set() or (path is not None and self._environment.file_io.exists(path))

    def _note_progress(self, stream: TableStream) -> None:
        """Add the batches that have finished since the last call to the heartbeat."""
        known = self._heartbeat.batch_id
        fresh = [each for each in stream.query.recentProgress if known is None or each["batchId"] > known]
        if not fresh:
            return
        newest: Any = fresh[-1]
        self._say(
            batch_id=newest["batchId"],
            **self._rows_read(stream, fresh),
            progress_millis=self._environment.clock.now_millis(),
        )

    def _rows_read(self, stream: TableStream, fresh: Sequence[Any]) -> dict[str, Any]:
        """Return what the heartbeat says of rows, after ``fresh`` batches."""
        if stream.applied is None:
            return {
                "row_count": self._heartbeat.row_count + sum(each["numInputRows"] for each in fresh),
                "rows_per_second": fresh[-1]["processedRowsPerSecond"] or 0.0,
            }
        # Spark does not see rows that the driver reads itself.
        counts = stream.applied.counts
        seconds = sum(each["durationMs"].get("triggerExecution", 0) for each in fresh) / 1000
        read = counts.row_count - self._heartbeat.row_count
        return {
            "row_count": counts.row_count,
            "rejected_count": counts.rejected_count,
            "skipped_count": counts.skipped_count,
            "rows_per_second": read / seconds if seconds else 0.0,
        }

    def _note_compaction(self, stream: TableStream) -> None:
        failure = None if stream.compaction is None else stream.compaction.error
        problem = None if failure is None else self._told(failure)
        if problem != self._heartbeat.compaction_error:
            self._say(compaction_error=problem)

    def _note_tiering(self, stream: TableStream) -> None:
        failure = None if stream.tiering is None else stream.tiering.error
        problem = None if failure is None else self._told(failure)
        if problem != self._heartbeat.tiering_error:
            self._say(tiering_error=problem)
        if isinstance(failure, PermanentError):
            # Rows that are never tiered are lost when the log expires, so stop the stream.
            stream.query.stop()
            raise failure

    def _told(self, error: Exception) -> str:
        """Return the text of an error, with the secrets of this process masked."""
        secrets = (os.environ.get(variable, "") for variable in self._spec.secret_options.values())
        return hidden_in(_words_of(error), secrets)

    def _say(self, **changes: Any) -> None:
        with self._lock:
            self._heartbeat = replace(self._heartbeat, written_millis=self._environment.clock.now_millis(), **changes)
            self._environment.file_io.replace(self._spec.heartbeat_path, self._heartbeat.to_json().encode())


def _state_directory(spec: SinkSpec, plan: StreamPlan | None) -> str | None:
    wanted = plan is not None and plan.normalize == STATE
    return f"{spec.checkpoint_location.rstrip('/')}-state/{spec.source.name}" if wanted else None


def _change_tracking(write_options: Mapping[str, str]) -> bool | None:
    """Return ``change-tracking``, the only write option of a sink; ``InvalidInputError`` for any other option."""
    unknown = sorted(set(write_options) - {"change-tracking"})
    if unknown:
        message = f"write option {unknown[0]!r} is unknown to a streaming sink; it knows change-tracking"
        raise InvalidInputError(message)
    text = write_options.get("change-tracking")
    try:
        return None if text is None else parse_boolean(str(text))
    except ValueError as error:
        message = f"write option change-tracking is {text!r}; {error}"
        raise InvalidInputError(message) from error


def query_of(
    spark: SparkSession, catalog: Catalog, table: DynamicTable, spec: SinkSpec, *, change_tracking: bool | None
) -> DataFrame:
    """Return the sink's query. By default, a source table is read with the normalization that the sink needs."""
    if _is_applied(table, spec, change_tracking=change_tracking):
        return read_changelog(
            spark,
            topic=spec.source.name,
            table=table,
            options={**spec.resolved_catalog_options(os.environ), **spec.source.options},
            rows_per_trigger_max=spec.max_rows_per_trigger,
        )
    df = _selected(_source(spark, catalog, table, spec), spec)
    if spec.source.kind != "dynamic_table" or spec.output_mode == "complete":
        return df
    plan, _ = plan_of_write(df, table, change_tracking=change_tracking)
    if plan.normalize not in (LOOKUP, STATE) and not plan.adds_up:
        return df
    return _selected(_source(spark, catalog, table, spec, plan), spec)


def _is_applied(table: DynamicTable, spec: SinkSpec, *, change_tracking: bool | None) -> bool:
    """Return whether the records of a topic go into the table as ``ingest`` applies them: nothing else is asked for.

    An eventual log has the rows of a stream at least once, and its commits do not tell how far the source was read.
    """
    source = spec.source
    as_is = source.kind == "debezium_json" and not source.schema and not spec.select
    return as_is and reports_sources(table, output_mode=spec.output_mode, change_tracking=change_tracking)


def _selected(df: DataFrame, spec: SinkSpec) -> DataFrame:
    if not spec.select:
        return df
    # These expressions may come from a web form.
    restrict_sql(df.sparkSession)
    for expression in spec.select:
        refuse_expression(df.sparkSession, expression)
    selected = df.selectExpr(*spec.select)
    refuse_commands(selected)
    return selected


def _source(
    spark: SparkSession, catalog: Catalog, table: DynamicTable, spec: SinkSpec, plan: StreamPlan | None = None
) -> DataFrame:
    source = spec.source
    if source.kind == "dynamic_table":
        timestamp = source.options.get("log.scan.timestamp-millis")
        return read_stream(
            spark,
            catalog.load_table(source.name),
            startup=source.options.get("log.scan"),
            timestamp=None if timestamp is None else int(timestamp),
            rows_per_trigger_max=spec.max_rows_per_trigger,
            normalize=source.options.get("scan.normalize") or (None if plan is None else plan.normalize),
            on_untracked=source.options.get("scan.on-untracked"),
            state_directory=source.options.get("scan.normalize.state-directory") or _state_directory(spec, plan),
            whole_commits=plan is not None and plan.adds_up,
        )
    # A topic without a declared schema has the table's columns in the table's types: Spark's types lose precision.
    types = json.dumps({field.name: str(field.type) for field in table.schema.fields})
    as_table = {} if source.schema else {COLUMN_TYPES: types, "primary-key": ",".join(table.schema.primary_keys)}
    if not source.schema and plan is None:
        as_table[TABLE_ENGINE] = table.options.merge_engine
    if table.options.sequence_field:
        as_table["sequence.field"] = ",".join(table.options.sequence_field)
    # Only appended rows can continue where the table ends: the aggregates of other modes are in Spark's state.
    continues = spec.output_mode == "append"
    return read_changelog(
        spark,
        topic=source.name,
        schema=source.schema or struct_of(table.schema),
        options={**spec.resolved_catalog_options(os.environ), **as_table, **source.options},
        rows_per_trigger_max=spec.max_rows_per_trigger,
        start=table.inspect.source_offsets(source.options.get("source", source.name)) if continues else None,
    )


def _words_of(error: Exception) -> str:
    if isinstance(error, StorageError):
        return f"{type(error).__name__}: {error}"
    return "".join(traceback.format_exception_only(error)).strip()


def main(arguments: list[str] | None = None) -> int:
    """Read the specification and run the sink until it ends or is asked to stop; return the exit code."""
    parser = argparse.ArgumentParser(prog="storage_lib.spark.streaming_sink", description=__doc__)
    parser.add_argument("--spec", required=True, help="path of the JSON file (storage_lib.spark.SinkSpec)")
    environment = system_environment()
    spec = SinkSpec.from_json(environment.file_io.read_bytes(parser.parse_args(arguments).spec).decode())
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return StreamingSink(spec, environment, stop).run()


if __name__ == "__main__":
    sys.exit(main())
