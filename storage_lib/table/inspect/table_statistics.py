"""``table.maintenance.analyze()``: statistics of a snapshot's rows, in the file and format that Paimon's planners read.

    {"snapshotId": 4, "schemaId": 0, "mergedRecordCount": 2, "mergedRecordSize": 1292, "colStats": {"id": {...}}}

Rows are counted after merging. Bounds are not stored for text, bytes and nested types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import CommitOutcomeUnknownError, StorageError
from storage_lib.file_store.commit_message import Committable
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.table_schema import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.inspect.distinct_count import DistinctCount
from storage_lib.table.protocol.table_context import TableContext

_EPOCH = date(1970, 1, 1)
_WITHOUT_BOUNDS = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY})


class TableStatistics:
    """Computes statistics. Reads every row of the newest snapshot once, with one batch in memory at a time."""

    def __init__(self, context: TableContext, *, commit: TableCommit, only_compacted: bool) -> None:
        self._only_compacted = only_compacted
        self._table = context.name
        self._environment = context.environment
        self._paths = context.paths
        self._schema = context.schema
        self._file_store = context.file_store
        self._commit = commit

    def analyze(self, columns: Sequence[str] | None, *, commit_user: str, commit_identifier: int) -> Snapshot | None:
        """Commit the statistics of the newest snapshot; None for a table without a commit."""
        earlier = self._commit.committed(commit_user, commit_identifier)
        if earlier is not None:
            return earlier
        snapshot = self._file_store.snapshots.latest()
        if snapshot is None:
            return None
        names = [field.name for field in self._schema.fields] if columns is None else list(columns)
        fields = [self._schema.field(name) for name in names]
        document = self._document(snapshot, fields)
        name = TablePaths.new_statistics_name(self._environment.new_name(), 0)
        path = self._paths.statistics_path(name)
        self._environment.file_io.write_bytes(path, json.dumps(document).encode())
        committable = Committable(commit_user=commit_user, commit_identifier=commit_identifier)
        try:
            return self._file_store.commit.add_statistics(committable, name, properties_of=self._commit.carried_forward)
        except CommitOutcomeUnknownError:
            raise
        except Exception:
            with suppress(StorageError):
                self._environment.file_io.delete(path, below=self._paths.root)
            raise

    def _document(self, snapshot: Snapshot, fields: Sequence[DataField]) -> dict[str, object]:
        plan = self._file_store.scan.plan(snapshot, only_compacted=self._only_compacted)
        gathered = [_ColumnGathering(field) for field in fields]
        count = 0
        read = [field.name for field in fields] or [self._schema.fields[0].name]
        for split in plan.splits():
            for batch in self._file_store.read.read(split, read):
                count += batch.num_rows
                for column in gathered:
                    column.add(batch.column(column.field.name))
        return {
            "snapshotId": snapshot.id,
            "schemaId": self._schema.id,
            "mergedRecordCount": count,
            "mergedRecordSize": plan.size_bytes,
            "colStats": {column.field.name: column.document() for column in gathered},
        }


class _ColumnGathering:
    """Statistics of one column, updated batch by batch."""

    def __init__(self, field: DataField) -> None:
        self.field = field
        self._type = field.type.arrow
        self._distinct = None if pa.types.is_nested(self._type) else DistinctCount()
        self._low: object = None
        self._high: object = None
        self._nulls = self._rows = self._bytes = self._longest = 0

    def add(self, values: pa.Array) -> None:
        self._rows += len(values)
        self._nulls += values.null_count
        self._add_lengths(values)
        if self._distinct is None:
            return
        self._distinct.add(values)
        if self.field.type.root not in _WITHOUT_BOUNDS:
            self._add_bounds(values)

    def document(self) -> dict[str, object]:
        present = self._rows - self._nulls
        found = {
            "colId": self.field.id,
            "distinctCount": None if self._distinct is None else self._distinct.estimate,
            "min": None if self._low is None else _spelled(self._low, self.field.type),
            "max": None if self._high is None else _spelled(self._high, self.field.type),
            "nullCount": self._nulls,
            "avgLen": -(-self._bytes // present) if present else 0,
            "maxLen": self._longest,
        }
        return {key: value for key, value in found.items() if value is not None}

    def _add_bounds(self, values: pa.Array) -> None:
        if pa.types.is_floating(values.type):
            values = values.filter(pc.invert(pc.is_nan(values)))  # NaN has no order
        bounds = pc.min_max(values)
        self._low = _extreme(min, (self._low, bounds["min"].as_py()))
        self._high = _extreme(max, (self._high, bounds["max"].as_py()))

    def _add_lengths(self, values: pa.Array) -> None:
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            lengths = pc.binary_length(values)
            self._bytes += pc.sum(lengths).as_py() or 0
            self._longest = max(self._longest, pc.max(lengths).as_py() or 0)
            return
        present = len(values) - values.null_count
        width = -(-values.nbytes // len(values)) if len(values) else 0
        if not pa.types.is_nested(values.type):
            width = max(1, values.type.bit_width // 8)
        self._bytes += width * present
        self._longest = max(self._longest, width if present else 0)


def _extreme(of: object, values: Iterable[object]) -> object:
    present = [value for value in values if value is not None]
    return of(present) if present else None  # type: ignore[operator]


def _spelled(value: object, of: DataType) -> str:
    """Format a value as Java's serializers format the internal value: dates as days, times as milliseconds."""
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return moment.isoformat(timespec="milliseconds" if (of.precision or 0) <= 3 else "microseconds")
        case date():
            return str((value - _EPOCH).days)
        case time():
            return str(((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000)
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)
