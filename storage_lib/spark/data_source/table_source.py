"""``format("dynamic_table")``: turns Spark's options and schema into readers and writers of one table."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.errors import AnalysisException
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from storage_lib.catalog.table_cache import key_of, table_at
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.io.environment import system_environment
from storage_lib.spark.data_source.batch_reader import batch_reader_class
from storage_lib.spark.data_source.batch_writer import TableBatchWriter
from storage_lib.spark.data_source.changelog_source import ChangelogSource
from storage_lib.spark.data_source.changes_reader import TableChangesReader
from storage_lib.spark.data_source.checkpoint_identity import query_id_of
from storage_lib.spark.data_source.remembering_reader import reader_for_spark
from storage_lib.spark.data_source.row_limit import refuse_limit_of_source
from storage_lib.spark.data_source.statement_options import (
    OVERWRITE_PARTITION,
    SCAN_TIMESTAMP_MILLIS,
    SNAPSHOT_ID,
    SOURCE_NAME,
    STARTUP,
    STATE_DIRECTORY,
    STREAMING,
    TAG_NAME,
    StatementOptions,
)
from storage_lib.spark.data_source.stream_reader import TableStreamReader
from storage_lib.spark.data_source.stream_writer import BatchPlan, TableStreamWriter
from storage_lib.spark.data_source.system_table_reader import SystemTableReader, system_struct
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.tasks.driver_lease import keep_alive
from storage_lib.spark.tasks.session_kind import is_connect
from storage_lib.spark.tasks.worker_garbage import spare_what_is_imported
from storage_lib.spark.types.spark_schema import check_read_schema, check_write_schema, struct_of
from storage_lib.spark.versions.fitting_spark import (
    refuse_unfitting_pyspark,
    refuse_unfitting_server,
    refuse_unfitting_session,
    warn_of_trial,
)
from storage_lib.spark.versions.source_names import free_names
from storage_lib.spark.versions.spark_feature import SparkFeature
from storage_lib.table.protocol.write_context import OverwriteScope

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.table_address import TableAddress
    from storage_lib.table.protocol.write_context import WriteContext

_REGISTERED = "dynamic_table.registered"
_REGISTERING = threading.Lock()
_registered_over_connect: WeakSet[Any] = WeakSet()


def register(spark: SparkSession) -> None:
    """Register the formats ``dynamic_table`` and ``debezium_json`` in this session. Idempotent and thread-safe.

    Spark finds both by itself where this library is installed. On a cluster whose executors receive the library with
    the job (``--py-files``, ``addPyFile``), it has to be called. Registered, ``spark.readStream`` also knows that a
    read of ``dynamic_table`` is a stream; otherwise set the option ``scan.streaming`` to ``true``. Over Spark Connect,
    this library has to be installed on the server.
    """
    with _REGISTERING:
        refuse_unfitting_pyspark()
        warn_of_trial()
        if is_connect(spark):
            _register_over_connect(spark)
            return
        sent = spark.sparkContext._python_includes or []  # noqa: SLF001  pyspark has no public way
        registered = ",".join(sent) or "true"
        if spark.conf.get(_REGISTERED, None) == registered:
            return
        refuse_unfitting_session(spark.version)
        # What Spark finds by itself, it finds when a query first uses it; to register makes it search, a second or two.
        # But executors import only a registered source from the files that are sent to them.
        sources = [source for package, source in _DISCOVERED.items() if sent or find_spec(package) is None]
        # Spark checks a name for duplicates in the active session, not in the one that it is registered in.
        with active_session(spark):
            free_names(spark, (source.name() for source in sources))
            for source in sources:
                spark.dataSource.register(source)
        from pyspark.sql.streaming.readwriter import DataStreamReader

        _distinguish_streams(DataStreamReader)
        spark.conf.set(_REGISTERED, registered)


def _register_over_connect(spark: SparkSession) -> None:
    """Register the formats in the session of a server. The file of a declarative pipeline may not change settings."""
    if spark in _registered_over_connect:
        return
    refuse_unfitting_server(spark)
    for source in _DISCOVERED.values():
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            # A server of Spark 4.0 keeps the source that it has found by itself: this one, which is installed there.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
    from pyspark.sql.connect.streaming.readwriter import DataStreamReader

    _distinguish_streams(DataStreamReader)
    _registered_over_connect.add(spark)


class DynamicTableSource(DataSource):
    """Data source for one read or write of one table."""

    _planned_elsewhere = False

    def __init__(self, options: dict[str, str]) -> None:
        """Spark finds this source without ``register``, so the version is checked here as well."""
        refuse_unfitting_pyspark()
        refuse_limit_of_source(SOURCE_NAME, options)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Name of the source in ``format(...)``."""
        return SOURCE_NAME

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled source: Spark creates it in one Python process and unpickles it in others."""
        self.__dict__.update(state)
        self._planned_elsewhere = True

    def schema(self) -> StructType:
        """Return the table's columns; a stream read and a read of changes also have the row kind."""
        parsed = StatementOptions.parse(self.options)
        table, system_table = _table_and_system_table(parsed.address, parsed.table_uuid)
        if system_table is not None:
            return system_struct(table, system_table)
        if parsed.changes is not None:
            return struct_of(table.schema, row_kind_column=table.options.row_kind_field)
        return struct_of(
            table.schema, row_kind_column=table.new_read().stream_row_kind_column if parsed.streaming else None
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch reader of a snapshot, a range of changes, or a system table, for the columns in ``schema``."""
        parsed = StatementOptions.parse(self.options)
        table, system_table = _table_and_system_table(parsed.address, parsed.table_uuid)
        if system_table is not None:
            return SystemTableReader(key_of(table), system_table, schema)
        if parsed.changes is not None:
            check_read_schema(table.name, table.schema, schema, table.options.row_kind_field)
            return TableChangesReader(key_of(table), schema, parsed.changes)
        check_read_schema(table.name, table.schema, schema, None)
        return batch_reader_class(has_own_scans=parsed.has_own_scans)(
            key_of(table),
            schema,
            snapshot_id=parsed.snapshot_id,
            tag=parsed.tag,
            timestamp_millis=parsed.timestamp_millis,
            native_files=parsed.native_files,
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return a stream reader for the columns in ``schema``, which includes the row kind if rows have one."""
        parsed = StatementOptions.parse(self.options)
        table = table_at(parsed.address, parsed.table_uuid)
        if (parsed.snapshot_id, parsed.tag, parsed.timestamp_millis) != (None, None, None):
            message = (
                f"table {table.name}: {SNAPSHOT_ID}, {TAG_NAME} and {SCAN_TIMESTAMP_MILLIS} are for batch reads; a "
                f"stream starts where {STARTUP} says, at the newest snapshot by default"
            )
            raise InvalidInputError(message)
        check_read_schema(table.name, table.schema, schema, table.new_read().stream_row_kind_column, is_stream=True)
        if parsed.scan.state_directory is None and table.new_read().keeps_stream_state(parsed.scan.normalize):
            message = (
                f"table {table.name}: a stream with scan.normalize=state keeps the rows that it has received, and "
                f"in Spark any task may need them: set {STATE_DIRECTORY} "
                "(read_stream(..., state_directory=...)), to a directory that only this stream uses and "
                "all machines can reach, such as one next to its checkpoint"
            )
            raise InvalidInputError(message)
        return reader_for_spark(TableStreamReader(key_of(table), schema, parsed.scan))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  Spark's signature
        """Return a batch writer; acquire the lease, if the write needs one, before any task runs."""
        parsed = StatementOptions.parse(self.options)
        table = table_at(parsed.address, parsed.table_uuid)
        if parsed.overwrite.partitions is not None and not overwrite:
            message = (
                f"table {table.name}: {OVERWRITE_PARTITION} sets what an overwrite replaces, but this is an append"
            )
            raise InvalidInputError(message)
        check_write_schema(table.name, table.schema, schema, table.options.row_kind_field)
        write_context = parsed.write_context or self._open(
            table, parsed, parsed.commit_user, parsed.overwrite if overwrite else None
        )
        return TableBatchWriter(
            key_of(table),
            write_context,
            parsed.commit_identifier,
            adds_up=parsed.adds_up,
            sources=parsed.sources,
            watermark=parsed.watermark,
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802
        """Return the writer of one micro-batch.

        Spark calls this twice: to plan the micro-batch, which acquires the lease, and in another process to commit it.
        """
        spare_what_is_imported()
        parsed = StatementOptions.parse(self.options)
        if parsed.commit_user is None and parsed.checkpoint_location is None:
            message = (
                f"table {parsed.address.name}: a stream into it needs .option('checkpointLocation', <directory>): "
                "the query's id in there is what makes its commits exactly once"
            )
            raise InvalidInputError(message)
        user = parsed.commit_user or query_id_of(parsed.checkpoint_location or "", parsed.address.options)
        plan = None
        if not self._planned_elsewhere:
            table = table_at(parsed.address, parsed.table_uuid)
            check_write_schema(table.name, table.schema, schema, table.options.row_kind_field)
            write_context = self._open(table, parsed, user, OverwriteScope.of({}) if overwrite else None)
            write_context = replace(write_context, identifiers_ascend=True)
            plan = BatchPlan(key=key_of(table), write_context=write_context, adds_up=parsed.adds_up)
        writer = TableStreamWriter(
            parsed.address, user, parsed.checkpoint_location, plan, tracked=parsed.change_tracking
        )
        if plan is not None and not SparkFeature.ADMISSION_CONTROL.is_here:
            # The first micro-batch has rows there, which tasks write before its commit is checked.
            writer.refuse_reported_sources(table, tracked=plan.write_context.tracked)
        return writer

    def _open(
        self, table: DynamicTable, parsed: StatementOptions, commit_user: str | None, overwrite: OverwriteScope | None
    ) -> WriteContext:
        user = commit_user or system_environment().new_name()
        write_context = table.new_write().begin(
            commit_user=user, tracked=parsed.change_tracking, overwrite=overwrite, based_on=parsed.based_on
        )
        if write_context.lease is not None:
            keep_alive(table, write_context.lease)
        return write_context


_DISCOVERED: Mapping[str, type[DataSource]] = {
    "pyspark_dynamic_table": DynamicTableSource,
    "pyspark_debezium_json": ChangelogSource,
}
"""Sources by the package in which Spark finds them."""


def _table_and_system_table(address: TableAddress, uuid: str | None) -> tuple[DynamicTable, str | None]:
    """Return the table, and the name of the system table if the address names one, else None."""
    name = TableName.parse(address.name)
    if name.system_table is None:
        return table_at(address, uuid), None
    return table_at(replace(address, name=str(replace(name, system_table=None))), uuid), name.system_table


def _distinguish_streams(stream_reader: Any) -> None:
    """Make ``spark.readStream.format("dynamic_table")`` set the option that marks a stream read.

    Spark requests the schema of a Python source without saying whether the read is a stream, but a stream read has one
    more column. Only the stream reader's ``format`` knows both the source's name and that it is a stream. The class
    ``stream_reader`` differs between classic sessions and Spark Connect.
    """
    original = stream_reader.format
    if getattr(original, "knows_dynamic_tables", False):
        return

    @wraps(original)
    def format_of_stream(self: Any, source: str) -> Any:
        reader = original(self, source)
        return reader.option(STREAMING, "true") if source.lower() == SOURCE_NAME else reader

    format_of_stream.knows_dynamic_tables = True  # type: ignore[attr-defined]
    stream_reader.format = format_of_stream
