"""One version of a table of Delta Lake, read by delta-rs without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import unquote

import pyarrow as pa

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError
from storage_lib.lakes.lake_history import LakeFile
from storage_lib.lakes.lake_version import AsOf, LakeVersion
from storage_lib.schema.filter.column_stats import ColumnStats

with importing_for("a table of Delta Lake", InvalidInputError, "delta"):
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

if TYPE_CHECKING:
    from pyarrow.dataset import FileSystemDataset

    from storage_lib.schema.filter.predicate import Predicate

_ROWS_PER_BATCH = 65_536
_READ_BY_ENGINE = frozenset({"columnMapping", "deletionVectors"})
"""Features of a table under which its Parquet files alone are not its rows: delta-rs reads such a table as a whole."""


class DeltaVersion(LakeVersion):
    """The version ``version`` of the table in the directory ``location``."""

    KIND: ClassVar[str] = "delta"

    def schema(self) -> pa.Schema:
        """See ``LakeVersion``."""
        with _reporting(self.name):
            return pa.schema(self.open().schema().to_arrow())

    def files(self, predicate: Predicate | None = None) -> list[tuple[str, int]] | None:
        """See ``LakeVersion``; the paths are below the table's."""
        found = self._actions()
        if found is None:
            return None
        return [
            (path, 0 if action is None else action["size_bytes"])
            for path, action in found
            if action is None or predicate is None or predicate.may_match(_stats(action))
        ]

    def data_files(self) -> list[LakeFile] | None:
        """Return the data files; None if only the whole table can be read. Raises ``InvalidInputError``."""
        found = self._actions()
        if found is None:
            return None
        return [
            LakeFile(path, 0, None) if action is None else LakeFile(path, action["size_bytes"], action["num_records"])
            for path, action in found
        ]

    def listed_files(self) -> list[LakeFile]:
        """Return the data files, with all of their rows. Raises ``InvalidInputError``."""
        with _reporting(self.name):
            actions = pa.table(self.open().get_add_actions()).to_pylist()
        return [LakeFile(unquote(each["path"]), each["size_bytes"], each["num_records"]) for each in actions]

    def table_id(self) -> str:
        """Return the id of the table, which a new table of the same name does not have."""
        with _reporting(self.name):
            return str(self.open().metadata().id)

    def parts(self, tasks: Sequence[Sequence[str]]) -> list[object]:
        """See ``LakeVersion``: the paths alone."""
        return [tuple(paths) for paths in tasks]

    def batches(self, columns: Sequence[str], part: object) -> Iterator[pa.RecordBatch]:
        """See ``LakeVersion``; files are missing after a vacuum."""
        with _reporting(self.name):
            table = self.open()
            whole = pa.schema(table.schema().to_arrow())
            wanted = pa.schema([whole.field(name) for name in columns])
            if part is None:
                found = pa.RecordBatchReader.from_stream(table.scan(columns=list(columns)))
            else:
                found = _scanned(table, columns, cast("Sequence[str]", part))
            for batch in found:
                yield from pa.Table.from_batches([batch]).select(list(columns)).cast(wanted).to_batches()

    def open(self) -> DeltaTable:
        """Open the version. Raises ``InvalidInputError`` if it is gone."""
        with _reporting(self.name):
            return DeltaTable(self.location, version=self.version, storage_options=dict(self.storage_options))

    def _actions(self) -> list[tuple[str, Mapping[str, Any] | None]] | None:
        """Return the paths of the data files with the actions that added them; None if delta-rs reads all of them."""
        with _reporting(self.name):
            table = self.open()
            self._refuse_partitions(table)
            features = table.protocol().reader_features or ()
            if _READ_BY_ENGINE & {*features} or _maps_columns(table):
                return None
            added = {unquote(each["path"]): each for each in pa.table(table.get_add_actions()).to_pylist()}
            return [(each.path, added.get(each.path)) for each in _dataset(table).get_fragments()]

    def _refuse_partitions(self, table: DeltaTable) -> None:
        """Refuse partitions by bytes, which delta-rs reads as the text that the log escapes them by."""
        partitions = {*table.metadata().partition_columns}
        for each in pa.schema(table.schema().to_arrow()):
            if each.name in partitions and pa.types.is_binary(each.type):
                message = (
                    f"table {self.name} of Delta Lake is partitioned by {each.name!r}, a BINARY column, whose values "
                    "delta-rs does not decode; read it by Delta's own connector"
                )
                raise InvalidInputError(message)


def version_of(name: str, location: str, storage_options: Mapping[str, str], as_of: AsOf) -> DeltaVersion:
    """Return a version of a table by its number or time, or the newest.

    Raises ``InvalidInputError`` if delta-rs can't read the table, or there is no such version.
    """
    with _reporting(name):
        table = DeltaTable(location, version=as_of.number, storage_options=dict(storage_options))
        if as_of.before is not None:
            table.load_as_version(as_of.before)  # the oldest version if all are newer
        version = table.version()
    return DeltaVersion(name=name, location=location, version=version, storage_options=storage_options)


def _dataset(table: DeltaTable) -> FileSystemDataset:
    from pyarrow.dataset import ParquetReadOptions

    # Spark writes INT96 by default, whose nanoseconds reach only from 1678 to 2261.
    return table.to_pyarrow_dataset(parquet_read_options=ParquetReadOptions(coerce_int96_timestamp_unit="us"))


def _stats(action: Mapping[str, Any]) -> dict[str, ColumnStats]:
    """Return the statistics of a file that are bounds for sure: of some partition columns, and of whole numbers.

    Delta truncates texts and times in statistics, and may read the empty text of a partition as null.
    """
    stats = {
        # All rows of the file are alike, so one stands for them: their number may be unknown.
        name: ColumnStats(min=value, max=value, null_count=1 if value is None else 0, row_count=1)
        for name, value in (action.get("partition") or {}).items()
        if value is None or (type(value) in (int, str, date) and value != "")
    }
    lows, highs = action.get("min") or {}, action.get("max") or {}
    for name, low in lows.items():
        if type(low) is int and type(highs.get(name)) is int:
            stats[name] = ColumnStats(min=low, max=highs[name], null_count=None, row_count=action["num_records"] or 1)
    return stats


def _maps_columns(table: DeltaTable) -> bool:
    """Return whether columns have other names in the files; older protocols list no features."""
    return table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"


def _scanned(table: DeltaTable, columns: Sequence[str], files: Sequence[str]) -> Iterator[pa.RecordBatch]:
    from pyarrow.dataset import FileSystemDataset  # which imports pandas

    dataset = _dataset(table)
    wanted = {*files}
    fragments = [fragment for fragment in dataset.get_fragments() if fragment.path in wanted]
    if len(fragments) != len(wanted):
        message = "the version lists other files than when the query was planned"
        raise InvalidInputError(message)
    part = FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem)
    return part.to_batches(columns=list(columns), batch_size=_ROWS_PER_BATCH)


@contextmanager
def _reporting(name: str) -> Iterator[None]:
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException) as error:
        message = f"table {name} of Delta Lake can't be read: {error}"
        raise InvalidInputError(message) from error
