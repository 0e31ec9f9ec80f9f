"""A table of Delta Lake or Iceberg as a source of a query: its states are its versions or snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import InvalidInputError, SnapshotExpiredError
from storage_lib.materialized.sources.catalogs_of_queries import opened
from storage_lib.materialized.sources.source import Lineage, Source, SourceDelta
from storage_lib.materialized.sources.source_delta import BYTES_HERE_MAX, net_change
from storage_lib.materialized.sources.source_positions import SourcePosition

if TYPE_CHECKING:
    from storage_lib.lakes.lake_history import FileChange, LakeFile, LakeHistory
    from storage_lib.schema.options.materialized_table import CatalogOfQuery
    from storage_lib.schema.table_schema import TableSchema

_UNKNOWN = "unknown"
"""Mark of a newest state whose commit has nothing that identifies it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeDelta(SourceDelta):
    """The ``SourceDelta`` of a table of another format.

    ``files`` have the changed rows; None: those are the difference of the rows of both states.
    """

    source: LakeSource
    columns: Sequence[str]
    before: int
    after: int
    row_count: int
    here: pa.Table | None = None
    files: FileChange | None = None


@dataclass(frozen=True)
class LakeSource(Source):
    """A ``Source`` of another catalog, as it was when it was opened."""

    history: LakeHistory
    _changes: dict[tuple[int, int], FileChange | None] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def schema(self) -> TableSchema:
        """See ``Source``."""
        return self.history.schema()

    @property
    def key(self) -> str:
        """See ``Source``."""
        return f"{self.history.table_id}@{self.history.kind}"

    def newest(self) -> int:
        """See ``Source``."""
        return self.history.newest

    def position(self, number: int) -> SourcePosition:
        """See ``Source``."""
        if number == 0:
            return SourcePosition(0)
        try:
            return SourcePosition(number, self.history.mark(number))
        except SnapshotExpiredError:
            if number != self.newest():
                raise
            # Its rows can be read, though the log has been tidied. What changes after it will not be known.
            return SourcePosition(number, _UNKNOWN)

    def watermark(self, number: int) -> int | None:  # noqa: ARG002  as in Source
        """See ``Source``: none is known."""
        return None

    def named(self, number: int) -> str:
        """See ``Source``."""
        return self.history.named(number)

    def behind_since(self, reached: int, newest: int) -> int:
        """See ``Source``."""
        following = self.history.following(reached) if reached < newest else None
        try:
            return 0 if following is None else self.history.time_millis(following)
        except SnapshotExpiredError:
            return 0

    def row_count(self, number: int) -> int:
        """See ``Source``."""
        return self.history.whole_size(number)[1] if number else 0

    def changed_row_count(self, before: int, after: int) -> int:
        """See ``Source``."""
        change = self._change(before, after)
        return self.row_count(before) + self.row_count(after) if change is None else change.row_count

    def lineage(self, number: int) -> Lineage:
        """See ``Source``: a table of another format has no sources."""
        return {self.key: number}

    def agreeing_with(self, key: str, number: int, newest: int, oldest: int) -> tuple[int, Lineage] | None:
        """See ``Source``."""
        if key != self.key or not oldest <= number < newest:
            return None
        try:
            self.history.mark(number)
        except SnapshotExpiredError:
            return None
        return number, self.lineage(number)

    def why_full(self, name: str, columns: Sequence[str], recorded: SourcePosition | None, newest: int) -> str | None:
        """See ``Source``."""
        if recorded is None:
            return f"source {name} was not read before, or was recreated"
        number = recorded.snapshot_id
        if number == 0:
            return None
        try:
            if self.history.mark(number) != recorded.mark:
                return f"source {name} was replaced: {self.named(number)} is another one now"
            return self._why_unknown(name, columns, number, newest)
        except SnapshotExpiredError as error:
            return f"{error}; the snapshots of other formats are not kept for a materialized table"

    def delta(self, columns: Sequence[str], before: int, after: int) -> LakeDelta:
        """See ``Source``."""
        change = self._change(before, after)
        if change is None:
            row_count = max(1, self.row_count(before) + self.row_count(after))
            size = self._whole_size(before, after)
        else:
            row_count, size = change.row_count, change.size_bytes
        if size > BYTES_HERE_MAX:
            return LakeDelta(
                source=self, columns=columns, before=before, after=after, row_count=row_count, files=change
            )
        with _expired_files():
            old = self._rows(columns, before, None if change is None else change.removed)
            new = self._rows(columns, after, None if change is None else change.added)
            rows = net_change(old, new)
        return LakeDelta(
            source=self, columns=columns, before=before, after=after, row_count=rows.num_rows, here=rows, files=change
        )

    def rows(self, columns: Sequence[str], number: int) -> pa.Table:
        """Read all rows of a state in this process. Raises ``SnapshotExpiredError`` if a file is missing."""
        with _expired_files():
            return self._rows(columns, number, None)

    def size_bytes(self, number: int) -> int:
        """Return the bytes of the files of a state."""
        return self.history.whole_size(number)[0] if number else 0

    def present(self, columns: Iterable[str], number: int) -> list[str]:
        """Return those of the columns that a state has; the others, which were added later, are null in it."""
        there = {each.name for each in self.history.schema_at(number).fields}
        return [each for each in columns if each in there]

    def _why_unknown(self, name: str, columns: Sequence[str], before: int, after: int) -> str | None:
        old, new = ({each.name: each for each in self.history.schema_at(at).fields} for at in (before, after))
        altered = next((each for each in columns if old.get(each) != new.get(each)), None)
        if altered is not None:
            return f"column {altered} of source {name} was altered"
        if self._change(before, after) is None and self._whole_size(before, after) > BYTES_HERE_MAX:
            return (
                f"source {name} has deletion vectors or mapped columns, so that its changes are the difference of all "
                "rows of two versions"
            )
        return None

    def _change(self, before: int, after: int) -> FileChange | None:
        if (before, after) not in self._changes:
            self._changes[before, after] = self.history.change(before, after)
        return self._changes[before, after]

    def _whole_size(self, *numbers: int) -> int:
        return sum(self.size_bytes(each) for each in numbers)

    def _rows(self, columns: Sequence[str], number: int, files: Sequence[LakeFile] | None) -> pa.Table:
        schema = pa.schema([self.schema.arrow_schema.field(name) for name in columns])
        if number == 0 or (files is not None and not files):
            return schema.empty_table()
        version = self.history.version(number)
        there = self.present(columns, number)
        read = there or [each.name for each in self.history.schema_at(number).fields][:1]
        parts = [None] if files is None else version.parts([[each.path for each in files]])
        batches = [_conformed(batch, schema) for part in parts for batch in version.batches(read, part)]
        return pa.Table.from_batches(batches, schema)


def lake_sources(table: str, catalogs: Sequence[CatalogOfQuery]) -> dict[str, LakeSource]:
    """Open the tables of other formats that the query of ``table`` reads, by catalog, database and table.

    Raises ``NotFoundError`` for a table that does not exist, ``InvalidInputError`` if one can't be read, or two names
    are those of one table.
    """
    found: dict[str, LakeSource] = {}
    for catalog in catalogs:
        lake = opened(table, catalog)
        for name in catalog.tables:
            database, _, of_database = name.partition(".")
            found[f"{catalog.name}.{name}"] = LakeSource(lake.history(database, of_database))
    names: dict[str, str] = {}
    for name, source in found.items():
        other = names.setdefault(source.key, name)
        if other != name:
            message = f"table {table}: its query reads one table by two names, {other} and {name}; use one of them"
            raise InvalidInputError(message)
    return found


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of a schema; those that the batch lacks are null."""
    there = {*batch.schema.names}
    columns = [
        batch.column(field.name).cast(field.type) if field.name in there else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@contextmanager
def _expired_files() -> Iterator[None]:
    """Raise ``SnapshotExpiredError`` for a file that is missing."""
    try:
        yield
    except InvalidInputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise SnapshotExpiredError(str(error)) from error
        raise
