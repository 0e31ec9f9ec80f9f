"""What one commit changes in the rejected records: it adds some, resolves others, and forgets expired ones.

Computed again for each snapshot that the commit tries to follow; what does not depend on it is written once. Files are
written before the snapshot that names them, so a crash leaves files that nothing names, for the orphan file cleanup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import CommitConflictError
from storage_lib.file_store.rejected.rejected_merge import files_to_merge
from storage_lib.schema.types.rejected_schema import ID, REJECTED_SCHEMA

if TYPE_CHECKING:
    from storage_lib.file_store.rejected.rejected_directory import RejectedDirectory
    from storage_lib.file_store.rejected.rejected_list import RejectedFile
    from storage_lib.file_store.rejected.rejected_pointer import RejectedPointer
    from storage_lib.io.environment import Environment

_ID_DIGITS = 12


class RejectedChange:
    """The change of one commit. ``added`` has the columns of ``REJECTED_SCHEMA``; ``resolved`` are ids."""

    def __init__(
        self,
        *,
        table: str,
        environment: Environment,
        directory: RejectedDirectory,
        retention_ms: int,
        added: pa.Table | None = None,
        resolved: Sequence[str] = (),
    ) -> None:
        self._table = table
        self._environment = environment
        self._directory = directory
        self._retention_ms = retention_ms
        self._added = None if added is None or not added.num_rows else added
        self._resolved = tuple(dict.fromkeys(resolved))
        self._new_file: RejectedFile | None = None
        self._remaining: dict[str, RejectedFile | None] = {}
        self._merged: dict[tuple[str, ...], RejectedFile] = {}
        self._written: set[str] = set()

    @property
    def is_empty(self) -> bool:
        """Whether a commit is not needed for this change: it only forgets expired records."""
        return self._added is None and not self._resolved

    def upon(self, pointer: RejectedPointer | None) -> RejectedPointer | None:
        """Return the rejected records after this change of those at ``pointer``; durable when this returns.

        Raises ``CommitConflictError`` if a resolved record is not among them: another commit has resolved it.
        """
        before = () if pointer is None else self._directory.files_of(pointer)
        files = self._without_resolved(before)
        oldest_kept = self._environment.clock.now_millis() - self._retention_ms
        files = [each for each in files if each.newest_millis >= oldest_kept]
        if self._added is not None:
            files.append(self._file_of(self._added))
        while group := files_to_merge(files, self._retention_ms):
            place = files.index(group[-1])
            files[place] = self._merge(group)
            files = [each for each in files if each not in group[:-1]]
        if not files:
            return None
        if tuple(files) == before:
            return pointer
        after = self._directory.write_list(files)
        self._written.add(after.list_name)
        return after

    def discard(self, keep: RejectedPointer | None) -> None:
        """Delete the written files that ``keep``, of the snapshot that was created, does not name; all if None."""
        if not self._written:
            return
        named = set() if keep is None else {keep.list_name, *(each.name for each in self._directory.files_of(keep))}
        for name in sorted(self._written - named):
            self._directory.delete(name)
        self._written &= named

    def _without_resolved(self, files: Sequence[RejectedFile]) -> list[RejectedFile]:
        if not self._resolved:
            return list(files)
        missing = set(self._resolved)
        kept: list[RejectedFile] = []
        resolved = pa.array(self._resolved, pa.string())
        for each in files:
            ids = self._directory.read_file(each.name, [ID])[ID]
            gone = pc.is_in(ids, value_set=resolved)
            missing.difference_update(ids.filter(gone).to_pylist())
            if not pc.any(gone).as_py():
                kept.append(each)
                continue
            if each.name not in self._remaining:
                rest = self._directory.read_file(each.name).filter(pc.invert(gone))
                self._remaining[each.name] = self._written_file(rest, each, each) if rest.num_rows else None
            remaining = self._remaining[each.name]
            kept += [] if remaining is None else [remaining]
        if missing:
            message = (
                f"table {self._table}: rejected record {min(missing)} is not stored any longer: another commit has "
                "re-ingested or deleted it, it has expired, or the table was rolled back. Nothing was committed; list "
                "the rejected records again"
            )
            raise CommitConflictError(message)
        return kept

    def _file_of(self, added: pa.Table) -> RejectedFile:
        if self._new_file is None:
            now = self._environment.clock.now_millis()
            name = self._environment.new_name().replace("-", "")[:_ID_DIGITS]
            count = pa.array(range(added.num_rows), pa.int64()).cast(pa.string())
            ids = pc.binary_join_element_wise(pa.scalar(name), count, "-")
            place = REJECTED_SCHEMA.names.index("time_millis")
            times = pc.fill_null(added["time_millis"], now)
            records = added.set_column(place, REJECTED_SCHEMA.field(place), times).add_column(0, ID, ids)
            self._new_file = self._directory.write_file(records, oldest_millis=now, newest_millis=now)
            self._written.add(self._new_file.name)
        return self._new_file

    def _merge(self, group: Sequence[RejectedFile]) -> RejectedFile:
        names = tuple(each.name for each in group)
        if names not in self._merged:
            records = pa.concat_tables([self._directory.read_file(name) for name in names])
            oldest = min(group, key=lambda each: each.oldest_millis)
            newest = max(group, key=lambda each: each.newest_millis)
            self._merged[names] = self._written_file(records, oldest, newest)
        return self._merged[names]

    def _written_file(self, records: pa.Table, oldest: RejectedFile, newest: RejectedFile) -> RejectedFile:
        written = self._directory.write_file(
            records, oldest_millis=oldest.oldest_millis, newest_millis=newest.newest_millis
        )
        self._written.add(written.name)
        return written
