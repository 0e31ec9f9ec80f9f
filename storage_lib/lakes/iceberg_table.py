"""One snapshot of an Iceberg table, read by PyIceberg without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, cast

import polars as pl
import pyarrow as pa

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError
from storage_lib.lakes.lake_history import LakeFile
from storage_lib.lakes.lake_version import NEWEST, AsOf, LakeVersion
from storage_lib.schema.filter.column_stats import ColumnStats

with importing_for("a table of Iceberg", InvalidInputError, "iceberg"):
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.conversions import from_bytes
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, PyArrowFileIO, schema_to_pyarrow
    from pyiceberg.serializers import FromInputFile
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import BooleanType, DateType, IntegerType, LongType, StringType

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import DataScan
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import NestedField

    from storage_lib.schema.filter.predicate import Predicate

_CURRENT = 0
"""The version that is current in the metadata file: its rows have the table's columns of today, which may be newer than
those of its snapshot, and a table may have no snapshot. Ids of snapshots are positive.
"""
_EPOCH = date(1970, 1, 1)
_WHOLE_NUMBERS = (IntegerType, LongType, DateType)
"""Types whose bounds are exact in every writer's metadata. Those of texts may be truncated, and floats have NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergVersion(LakeVersion):
    """The snapshot with the id ``version``, or the current one (0), in the metadata file ``location``.

    ``has_columns_of_today``: its rows have the table's columns of today, as those of the current snapshot have.
    ``storage_options`` are those of PyIceberg's ``PyArrowFileIO``. The table's own properties do not choose how its
    files are opened, because PyIceberg would import the module that they name.
    """

    KIND: ClassVar[str] = "iceberg"

    has_columns_of_today: bool = False

    def schema(self) -> pa.Schema:
        """See ``LakeVersion``."""
        with _reporting(self.name):
            return pa.schema([_as_engine_type(each) for each in schema_to_pyarrow(self._columns(self._scan()))])

    def metadata(self) -> TableMetadata:
        """Return what the metadata file says. Raises ``InvalidInputError`` if it can't be read."""
        with _reporting(self.name):
            return self._open().metadata

    def files_with_deletes(self) -> dict[str, LakeFile]:
        """Return the data files, by keys that also name the files that say which rows of them are deleted."""
        with _reporting(self.name):
            return {
                _key(task): LakeFile(task.file.file_path, task.file.file_size_in_bytes, task.file.record_count)
                for task in self._scan().plan_files()
            }

    def files(self, predicate: Predicate | None = None) -> list[tuple[str, int]]:
        """See ``LakeVersion``."""
        with _reporting(self.name):
            table = self._open()
            scan = self._scan(table)
            return [
                (task.file.file_path, task.file.file_size_in_bytes)
                for task in scan.plan_files()
                if predicate is None or predicate.may_match(_stats(table, self._columns(scan), task.file))
            ]

    def parts(self, tasks: Sequence[Sequence[str]]) -> list[object]:
        """See ``LakeVersion``: PyIceberg's tasks, which also tell which rows of a file are deleted."""
        with _reporting(self.name):
            by_path = {task.file.file_path: task for task in self._scan().plan_files()}
            return [[by_path[path] for path in paths] for paths in tasks]

    def batches(self, columns: Sequence[str], part: object) -> Iterator[pa.RecordBatch]:
        """See ``LakeVersion``; the rows of one file are in memory at once."""
        with _reporting(self.name):
            table = self._open()
            scan = self._scan(table)
            wanted = self._columns(scan).select(*columns)
            tasks = scan.plan_files() if part is None else cast("list[FileScanTask]", part)
            reader = ArrowScan(table.metadata, table.io, wanted, AlwaysTrue())
            schema = pa.schema([_as_engine_type(each) for each in schema_to_pyarrow(wanted)])
            schema = pa.schema([schema.field(name) for name in columns])
            for task in tasks:
                for batch in reader.to_record_batches([task]):
                    yield _as_engine_types(batch, schema)

    def _open(self) -> Table:
        io = PyArrowFileIO(dict(self.storage_options))
        metadata = FromInputFile.table_metadata(io.new_input(self.location))
        return Table((self.name,), metadata, self.location, io, NoopCatalog("none"))

    def _columns(self, scan: DataScan) -> Schema:
        return scan.table_metadata.schema() if self.has_columns_of_today else scan.projection()

    def _scan(self, table: Table | None = None) -> DataScan:
        table = self._open() if table is None else table
        return table.scan(snapshot_id=None if self.version == _CURRENT else self.version)


def version_of(name: str, location: str, storage_options: Mapping[str, str], as_of: AsOf) -> IcebergVersion:
    """Return a snapshot of the table whose newest metadata file is ``location``; see ``LakeCatalog.version``."""
    current = IcebergVersion(name=name, location=location, version=_CURRENT, storage_options=storage_options)
    if as_of == NEWEST:
        return current
    with _reporting(name):
        table = current._open()  # noqa: SLF001  of the same module
        if as_of.number is not None:
            found, wanted = table.snapshot_by_id(as_of.number), str(as_of.number)
        elif as_of.tag is not None:
            found, wanted = table.snapshot_by_name(as_of.tag), f"named {as_of.tag!r}"
        else:
            moment = cast("datetime", as_of.before)
            found, wanted = table.snapshot_as_of_timestamp(int(moment.timestamp() * 1000)), f"until {moment}"
    if found is None:
        message = f"table {name} of Iceberg has no snapshot {wanted}"
        raise InvalidInputError(message)
    return replace(current, version=found.snapshot_id)


def _key(task: FileScanTask) -> str:
    deletes = sorted(each.file_path for each in task.delete_files)
    return "\n".join([task.file.file_path, *deletes])


def _stats(table: Table, schema: Schema, file: DataFile) -> dict[str, ColumnStats]:
    """Return the statistics of a file that are bounds for sure: of partition columns, and of whole numbers and dates.

    Statistics are by the ids of columns, so that renamed ones are found.
    """
    stats: dict[str, ColumnStats] = {}
    lows, highs, nulls = file.lower_bounds or {}, file.upper_bounds or {}, file.null_value_counts or {}
    for column in schema.fields:
        low, high = lows.get(column.field_id), highs.get(column.field_id)
        if isinstance(column.field_type, _WHOLE_NUMBERS) and low is not None and high is not None:
            stats[column.name] = ColumnStats(
                min=_value(column, from_bytes(column.field_type, low)),
                max=_value(column, from_bytes(column.field_type, high)),
                null_count=nulls.get(column.field_id),
                row_count=file.record_count,
            )
    spec = table.specs()[file.spec_id]
    for place, part in enumerate(spec.fields):
        source = next((each for each in schema.fields if each.field_id == part.source_id), None)
        of_known_type = source is not None and isinstance(source.field_type, (*_WHOLE_NUMBERS, StringType, BooleanType))
        if source is not None and of_known_type and isinstance(part.transform, IdentityTransform):
            value = _value(source, file.partition[place])
            is_null = value is None
            stats[source.name] = ColumnStats(
                min=value, max=value, null_count=file.record_count if is_null else 0, row_count=file.record_count
            )
    return stats


def _value(column: NestedField, value: object) -> object:
    """Return a bound or a partition's value as a value of the column: Iceberg stores dates as days."""
    if isinstance(column.field_type, DateType) and isinstance(value, int):
        return _EPOCH + timedelta(days=value)
    return value


def _as_engine_type(field: pa.Field) -> pa.Field:
    """Return a column with a type that Spark has: UUIDs are texts there, as in Iceberg's own connector."""
    return field.with_type(pa.string()) if field.type == pa.uuid() else field


def _as_engine_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [batch.column(name) for name in schema.names]
    columns = [_uuid_texts(each) if each.type == pa.uuid() else each for each in columns]
    pairs = zip(columns, schema, strict=True)
    return pa.RecordBatch.from_arrays([each.cast(field.type) for each, field in pairs], schema=schema)


def _uuid_texts(uuids: pa.Array) -> pa.Array:
    digits = pl.Series(uuids.storage.cast(pa.binary())).bin.encode("hex")
    parts = [digits.str.slice(start, length) for start, length in ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))]
    return pl.select(pl.concat_str([pl.lit(each) for each in parts], separator="-")).to_series().to_arrow()


@contextmanager
def _reporting(name: str) -> Iterator[None]:
    try:
        yield
    except InvalidInputError:
        raise
    except NotImplementedError as error:
        message = f"table {name} of Iceberg can't be read: {error}. PyIceberg lacks it; Iceberg's own connector has it"
        raise InvalidInputError(message) from error
    except (OSError, ValueError, KeyError, NoSuchTableError, pa.ArrowException) as error:
        message = f"table {name} of Iceberg can't be read: {error}"
        raise InvalidInputError(message) from error
