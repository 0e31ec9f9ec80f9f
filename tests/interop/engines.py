"""The readers and writers of the interop suite, behind one small interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from storage_lib import DynamicTable, WarehouseCatalog
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import DataType
from storage_lib.schema.types.row_kind import ROW_KIND_COLUMN, RowKind
from storage_lib.schema.types.type_spelling import parse_type
from tests.interop.table_cases import TableCase
from tests.support.flink import Flink, quoted, settings
from tests.support.line_servant import RefusedError
from tests.support.other_readers import (
    append_with_pypaimon,
    append_with_rust,
    create_with_pypaimon,
    read_with_pypaimon,
    rust_table,
)
from tests.support.paimon_core import PaimonCore

IDENTIFIER = "db.t"
TABLE = quoted(IDENTIFIER)
TAG = "kept"
Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Location of a table, and a directory for temporary files."""

    warehouse: Path
    scratch: Path

    @property
    def catalog(self) -> WarehouseCatalog:
        """Open this library's catalog, without waiting for the disk."""
        environment = system_environment(LocalFileIO(durable=False))
        return WarehouseCatalog(str(self.warehouse), {"log.system": "none"}, environment=environment)

    def ours(self) -> DynamicTable:
        """Reload the table, without cached state."""
        return self.catalog.load_table(IDENTIFIER)

    @property
    def schema(self) -> TableSchema:
        """Newest schema."""
        return self.ours().schema


class Engine(Protocol):
    """Operations of one engine; they raise ``RefusedError`` with the engine's error."""

    def create(self, place: Place, case: TableCase) -> None:
        """Create a table without rows."""

    def read(self, place: Place, options: Mapping[str, str]) -> Rows:
        """Return all rows."""

    def write(self, place: Place, rows: Rows, kinds: Sequence[RowKind]) -> None:
        """Write rows in one commit."""

    def overwrite(self, place: Place, rows: Rows, day: str) -> None:
        """Replace a partition."""

    def drop(self, place: Place, day: str) -> None:
        """Drop a partition."""

    def compact(self, place: Place, *, full: bool) -> None:
        """Compact all buckets."""

    def expire(self, place: Place) -> None:
        """Expire all snapshots but the newest."""

    def tag(self, place: Place) -> None:
        """Tag the newest snapshot as ``TAG``."""


class Ours:
    """This library."""

    def create(self, place: Place, case: TableCase) -> None:
        place.catalog.create_table(
            IDENTIFIER,
            case.types,
            primary_key=case.primary_key,
            partition_by=case.partition_by,
            options={**default_buckets(case), **case.options},
        )

    def read(self, place: Place, options: Mapping[str, str]) -> Rows:
        table = place.ours()
        return rows_of(table.to_arrow(tag=options.get("scan.tag-name")), table.schema)

    def write(self, place: Place, rows: Rows, kinds: Sequence[RowKind]) -> None:
        table = place.ours()
        given = arrow_of(rows, table.schema)
        if any(kind is not RowKind.INSERT for kind in kinds):
            given = given.append_column(ROW_KIND_COLUMN, pa.array([kind.symbol for kind in kinds]))
        table.append(given)

    def overwrite(self, place: Place, rows: Rows, day: str) -> None:
        table = place.ours()
        table.overwrite(arrow_of(rows, table.schema), partition={"day": day})

    def drop(self, place: Place, day: str) -> None:
        place.ours().maintenance.drop_partitions([{"day": day}])

    def compact(self, place: Place, *, full: bool) -> None:
        place.ours().compact(full=full)

    def expire(self, place: Place) -> None:
        place.ours().maintenance.expire_snapshots(retain_last=1)

    def tag(self, place: Place) -> None:
        place.ours().tags.create(TAG)


@dataclass
class Java:
    """Paimon's Java core."""

    core: PaimonCore

    def create(self, place: Place, case: TableCase) -> None:
        self.core.create(place.warehouse, IDENTIFIER, schema_of(case))

    def read(self, place: Place, options: Mapping[str, str]) -> Rows:
        return self.core.read(place.warehouse, IDENTIFIER, place.schema, options=options)

    def write(self, place: Place, rows: Rows, kinds: Sequence[RowKind]) -> None:
        self.core.write(place.warehouse, IDENTIFIER, rows, place.schema, kinds)

    def overwrite(self, place: Place, rows: Rows, day: str) -> None:
        self.core.write(place.warehouse, IDENTIFIER, rows, place.schema, overwrite={"day": day})

    def drop(self, place: Place, day: str) -> None:
        self.core.drop_partition(place.warehouse, IDENTIFIER, {"day": day})

    def compact(self, place: Place, *, full: bool) -> None:
        self.core.compact(place.warehouse, IDENTIFIER)

    def expire(self, place: Place) -> None:
        self.core.expire(place.warehouse, IDENTIFIER, retain_max=1)

    def tag(self, place: Place) -> None:
        latest = place.ours().context.file_store.snapshots.latest_id()
        assert latest is not None
        self.core.tag(place.warehouse, IDENTIFIER, TAG, latest)


@dataclass
class FlinkSql:
    """Flink with Paimon's connector: each operation is a statement."""

    flink: Flink

    def create(self, place: Place, case: TableCase) -> None:
        schema = schema_of(case)
        columns = [f"`{name}` {spelled}" for name, spelled in case.types.items()]
        if case.primary_key:
            columns.append(f"PRIMARY KEY ({names(case.primary_key)}) NOT ENFORCED")
        partitioned = f" PARTITIONED BY ({names(case.partition_by)})" if case.partition_by else ""
        database, _, _ = IDENTIFIER.partition(".")
        self.flink.execute(
            place.warehouse,
            f"CREATE DATABASE IF NOT EXISTS {quoted(database)}",
            f"CREATE TABLE {TABLE} ({', '.join(columns)}){partitioned} WITH ({settings(schema.options)})",
        )

    def read(self, place: Place, options: Mapping[str, str]) -> Rows:
        return self.flink.read(place.warehouse, IDENTIFIER, types_of(place.schema), options)

    def read_each(self, place: Place, looks: Sequence[Mapping[str, str]]) -> list[Rows | RefusedError]:
        """Return all rows per element of ``looks``; if the combined query is refused, run each on its own."""
        types = types_of(place.schema)
        try:
            return list(self.flink.read_each(place.warehouse, IDENTIFIER, types, looks))
        except RefusedError:
            return [self._read_or_refusal(place, look) for look in looks]

    def _read_or_refusal(self, place: Place, options: Mapping[str, str]) -> Rows | RefusedError:
        try:
            return self.read(place, options)
        except RefusedError as refusal:
            return refusal

    def write(self, place: Place, rows: Rows, kinds: Sequence[RowKind]) -> None:
        # A batch INSERT can only add rows.
        streaming = any(kind is not RowKind.INSERT for kind in kinds)
        self.flink.write(place.warehouse, IDENTIFIER, rows, types_of(place.schema), kinds, streaming=streaming)

    def overwrite(self, place: Place, rows: Rows, day: str) -> None:
        self.flink.write(place.warehouse, IDENTIFIER, rows, types_of(place.schema), overwrite=True)

    def drop(self, place: Place, day: str) -> None:
        self.flink.execute(place.warehouse, f"ALTER TABLE {TABLE} DROP PARTITION (`day` = '{day}')")

    def compact(self, place: Place, *, full: bool) -> None:
        strategy = "full" if full else "minor"
        self._call(place, "compact", f"compact_strategy => '{strategy}'")

    def expire(self, place: Place) -> None:
        self._call(place, "expire_snapshots", "retain_max => 1, retain_min => 1")

    def tag(self, place: Place) -> None:
        self._call(place, "create_tag", f"tag => '{TAG}'")

    def _call(self, place: Place, procedure: str, arguments: str) -> None:
        self.flink.execute(place.warehouse, f"CALL sys.{procedure}(`table` => '{IDENTIFIER}', {arguments})")


class _ReaderAndAppender:
    """Operations that the engines for Python do not support."""

    def overwrite(self, place: Place, rows: Rows, day: str) -> None:
        raise NotImplementedError

    def drop(self, place: Place, day: str) -> None:
        raise NotImplementedError

    def compact(self, place: Place, *, full: bool) -> None:
        raise NotImplementedError

    def expire(self, place: Place) -> None:
        raise NotImplementedError

    def tag(self, place: Place) -> None:
        raise NotImplementedError


class Rust(_ReaderAndAppender):
    """pypaimon-rust."""

    def create(self, place: Place, case: TableCase) -> None:
        raise NotImplementedError

    def read(self, place: Place, options: Mapping[str, str]) -> Rows:
        if options:
            raise RefusedError("its Python interface takes no options")
        with refusing():
            builder = rust_table(place.warehouse, IDENTIFIER).new_read_builder()
            batches = list(builder.new_read().read_arrow(builder.new_scan().plan().splits()))
        return rows_of(pa.Table.from_batches(batches), place.schema) if batches else []

    def write(self, place: Place, rows: Rows, kinds: Sequence[RowKind]) -> None:
        with refusing():
            append_with_rust(place.warehouse, IDENTIFIER, arrow_of(rows, place.schema))


class Pypaimon(_ReaderAndAppender):
    """Paimon's own library for Python."""

    def create(self, place: Place, case: TableCase) -> None:
        schema = schema_of(case)
        create_with_pypaimon(
            place.warehouse,
            IDENTIFIER,
            place.scratch,
            schema.arrow_schema.empty_table(),
            primary_keys=list(case.primary_key),
            partition_keys=list(case.partition_by),
            options=dict(schema.options),
        )

    def read(self, place: Place, options: Mapping[str, str]) -> Rows:
        found = read_with_pypaimon(place.warehouse, IDENTIFIER, place.scratch, options=options)
        return rows_of(found, place.schema)

    def write(self, place: Place, rows: Rows, kinds: Sequence[RowKind]) -> None:
        append_with_pypaimon(place.warehouse, IDENTIFIER, place.scratch, arrow_of(rows, place.schema))


@contextmanager
def refusing() -> Iterator[None]:
    """Raise any error of a library, including a Rust panic, as ``RefusedError``."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise RefusedError(f"{type(error).__name__}: {error}") from error
        raise


def default_buckets(case: TableCase) -> dict[str, str]:
    """Return options for two buckets if the table has a key."""
    return {"bucket": "2"} if case.has_key else {}


def schema_of(case: TableCase) -> TableSchema:
    """Return the schema for creation by another engine: without the write mode, which only this library names."""
    schema = new_table_schema(
        [(name, parse_type(spelled)) for name, spelled in case.types.items()],
        primary_keys=case.primary_key,
        partition_keys=case.partition_by,
        options={"bucket": "2" if case.has_key else "-1", "file.format": "parquet", **case.options},
        time_millis=0,
    )
    return replace(schema, options={key: text for key, text in schema.options.items() if key != "write-mode"})


def names(columns: Sequence[str]) -> str:
    """Quote column names for SQL."""
    return ", ".join(f"`{name}`" for name in columns)


def types_of(schema: TableSchema) -> list[DataType]:
    """Return the column types in order."""
    return [field.type for field in schema.fields]


def arrow_of(rows: Rows, schema: TableSchema) -> pa.Table:
    """Convert tuples in schema order to Arrow."""
    columns = [pa.array([row[index] for row in rows], each.type) for index, each in enumerate(schema.arrow_schema)]
    return pa.Table.from_arrays(columns, schema=schema.arrow_schema)


def rows_of(table: pa.Table, schema: TableSchema) -> Rows:
    """Convert Arrow to tuples in schema order."""
    columns = [table[name].to_pylist() for name in schema.arrow_schema.names]
    return list(zip(*columns, strict=True))
