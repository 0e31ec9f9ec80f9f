"""The states of an Iceberg table: the snapshots in its newest metadata file, by their sequence numbers.

Tables of format version 1 have no sequence numbers, so their snapshots are numbered by their times. The rows of every
snapshot are read under the columns of today, which Iceberg finds by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from storage_lib.errors import SnapshotExpiredError
from storage_lib.lakes.iceberg_table import IcebergVersion
from storage_lib.lakes.lake_columns import schema_of
from storage_lib.lakes.lake_history import LakeFile, LakeFiles, LakeHistory

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from storage_lib.schema.table_schema import TableSchema

_REPLACE = "replace"


@dataclass(frozen=True)
class IcebergHistory(LakeHistory):
    """See ``LakeHistory``. ``opened`` is the current snapshot in the newest metadata file."""

    kind: str
    name: str
    table_id: str
    newest: int
    opened: IcebergVersion
    metadata: TableMetadata = field(repr=False)
    _files_at: dict[int, LakeFiles] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, opened: IcebergVersion) -> IcebergHistory:
        """Return the states of a table up to its current snapshot. Raises ``InvalidInputError``."""
        metadata = opened.metadata()
        current = metadata.current_snapshot()
        newest = 0 if current is None else _number(current)
        return cls(opened.KIND, opened.name, str(metadata.table_uuid), newest, opened, metadata)

    def schema(self) -> TableSchema:
        """See ``LakeHistory``."""
        ids = {each.name: each.field_id for each in self.metadata.schema().fields}
        return schema_of(self.name, self.opened.schema(), ids)

    def schema_at(self, number: int) -> TableSchema:
        """See ``LakeHistory``: the columns of today."""
        self._snapshot(number)
        return self.schema()

    def mark(self, number: int) -> str:
        """See ``LakeHistory``: the id of the snapshot."""
        return str(self._snapshot(number).snapshot_id)

    def time_millis(self, number: int) -> int:
        """See ``LakeHistory``."""
        return self._snapshot(number).timestamp_ms

    def named(self, number: int) -> str:
        """See ``LakeHistory``: by the id of the snapshot, which queries name, while the table has it."""
        if number == 0:
            return "the empty table"
        found = self._snapshots.get(number)
        return f"snapshot {found.snapshot_id}" if found is not None else f"the snapshot with number {number}"

    def version(self, number: int) -> IcebergVersion:
        """See ``LakeHistory``."""
        return replace(self.opened, version=self._snapshot(number).snapshot_id, has_columns_of_today=True)

    def following(self, number: int) -> int | None:
        """See ``LakeHistory``."""
        return min((_number(each) for each in self._lineage(self.newest) if _number(each) > number), default=None)

    def files(self, number: int) -> LakeFiles:
        """See ``LakeHistory``."""
        if number not in self._files_at:
            self._files_at[number] = self.version(number).files_with_deletes()
        return self._files_at[number]

    def listed(self, number: int) -> list[LakeFile]:
        """See ``LakeHistory``."""
        return [*self.files(number).values()]

    def rearrangements(self, before: int, after: int) -> Iterator[tuple[int, int]]:
        """See ``LakeHistory``: snapshots with the operation ``replace``; none unless ``after`` follows ``before``."""
        pairs: list[tuple[int, int]] = []
        for each in self._lineage(after):
            if _number(each) == before:
                yield from pairs
                return
            parent = self.metadata.snapshot_by_id(each.parent_snapshot_id or -1)
            if parent is not None and each.summary is not None and each.summary.operation.value == _REPLACE:
                pairs.append((_number(parent), _number(each)))

    def missing(self, files: Iterable[LakeFile]) -> str | None:  # noqa: ARG002  as in LakeHistory
        """See ``LakeHistory``: a snapshot is taken out of the metadata before its files are deleted."""
        return None

    @cached_property
    def _snapshots(self) -> dict[int, Snapshot]:
        return {_number(each): each for each in self.metadata.snapshots}

    def _snapshot(self, number: int) -> Snapshot:
        found = self._snapshots.get(number)
        if found is None:
            message = f"{self.named(number)} of {self.name} has expired"
            raise SnapshotExpiredError(message)
        return found

    def _lineage(self, number: int) -> Iterator[Snapshot]:
        """Yield a snapshot, its parent and so on, as far as the metadata have them."""
        found = self._snapshots.get(number)
        while found is not None:
            yield found
            found = None if found.parent_snapshot_id is None else self.metadata.snapshot_by_id(found.parent_snapshot_id)


def _number(snapshot: Snapshot) -> int:
    return snapshot.sequence_number or snapshot.timestamp_ms
