"""Makes changes of operations and the rows before and after: what a record does not tell is marked, never invented.

    operation     row before is whole    otherwise, in a table with a key                 otherwise
    insert        +I after               +I after                                         +I after
    update        -U before, +U after    +U after; -D of the old key if the key differs   refused
    delete        -D before              -D of the key alone                              refused
    tombstone     nothing                -D of the key alone, where no deletion precedes  nothing

A row before with a value that does not fit is not whole: the record may be the one that corrects the value. A table
that combines the rows of a key (``needs_old_rows``) is treated as one without a key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal, all_nullable
from storage_lib.log_store.capture.written_changes import Operation, WrittenChanges
from storage_lib.schema.types.row_kind import RowKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.log_store.capture.row_images import RowImages
    from storage_lib.schema.types.nested_arrays import Mask

_NO_AFTER = "it has no row after the change (after is null)"
_NO_KEY = (
    "neither its row before the change nor its key tells the primary key ({keys}) of the table. Let the database log "
    "whole rows (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL, with source.before-image=whole here), or give the "
    "table the key of the source"
)
_NO_OLD_ROW = (
    "it does not tell the whole row before the change, which a table {kind} needs to find the row that it replaces. "
    "Let the database log whole rows (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL, with "
    "source.before-image=whole here), or use a table with the primary key of the source"
)
_UNAVAILABLE = (
    "it leaves out the value, which has not changed, and a table {kind} can't look it up. Let the database log whole "
    "rows (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL), or use a table with the primary key of the source. If "
    "it is a value of the column, set another placeholder (debezium.unavailable-value-placeholder)"
)
_TOMBSTONE = (
    "it is a tombstone, which deletes its key, but has no metadata of a value, from which column {column!r} of "
    "sequence.field is filled: nobody can tell whether the row is newer. Let deletions have values (in Debezium: "
    "delete.tombstone.handling.mode=rewrite, and no compaction), or fill sequence.field from Kafka's timestamp"
)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rows to keep of one image: ``position`` orders the at most two rows of a record."""

    image: RowImages
    records: np.ndarray
    kinds: np.ndarray
    position: int


def changes_of(written: WrittenChanges, table: CapturedTable) -> CapturedChanges:
    """Return the changes that a table makes of the records."""
    return _Changes(written, table).made()


class _Changes:
    """Masks over the records of one batch."""

    def __init__(self, written: WrittenChanges, table: CapturedTable) -> None:
        self._written = written
        self._table = table
        self._is_keyed = bool(table.primary_keys) and not table.needs_old_rows
        self._reasons: dict[int, tuple[str | None, str]] = {
            each.record_index: (each.column, each.reason) for each in written.refusals
        }
        keys = table.primary_keys
        before = written.before
        # Without a table, nobody knows the key; columns that the row before lacks are passed on as null.
        is_told = before.is_whole if table.is_known or keys else before.is_available
        self._whole: Mask = is_told & written.holds_whole_before
        if self._is_keyed and before.refusals:
            # Its key is enough.
            self._whole[[each.record_index for each in before.refusals]] = False
        nothing = np.zeros(len(written.operations), bool)
        self._key_told: Mask = written.keys.knows(keys) if self._is_keyed else nothing
        tells_before = before.knows(keys) if self._is_keyed else nothing
        # Where only the key of the row before is logged, that is the key that the record has, too.
        self._old_key: Mask = tells_before & (self._key_told | written.holds_whole_before)

    def made(self) -> CapturedChanges:
        written, table = self._written, self._table
        is_of = {each: written.operations == each for each in Operation}
        has_after = written.after.is_there
        adds = is_of[Operation.INSERT] | is_of[Operation.UPDATE]
        self._refuse(adds & ~has_after, _NO_AFTER)
        updates, deletes = is_of[Operation.UPDATE], is_of[Operation.DELETE]
        is_pair, whole_delete = updates & self._whole, deletes & self._whole
        kind = "without a primary key" if not table.primary_keys else "that combines the rows of a key"
        if self._is_keyed:
            names = ", ".join(table.primary_keys)
            alone = updates & ~self._whole
            # Programs that write whole rows leave out the row before to say that this is the newest of its key.
            is_upsert = alone & ~written.before.is_there & written.holds_whole_before
            self._refuse(alone & ~is_upsert & ~self._key_told & ~self._old_key, _NO_KEY.format(keys=names))
            tombstones = self._bare_tombstones(is_of[Operation.TOMBSTONE], deletes)
            by_key = (deletes & ~self._whole) | tombstones
            from_before, from_key = by_key & self._old_key, by_key & ~self._old_key & self._key_told
            self._refuse(deletes & ~self._whole & ~from_before & ~from_key, _NO_KEY.format(keys=names))
            from_before |= alone & self._old_key & self._moved()
            self._refuse_metadata(adds | deletes | tombstones)
        else:
            self._refuse_metadata(adds | deletes)
            # Without a table, an update without a row before is passed on, as the newest row of its key.
            passes = updates & ~written.before.is_there & written.holds_whole_before & (not table.is_known)
            self._refuse((updates | deletes) & ~self._whole & ~passes, _NO_OLD_ROW.format(kind=kind))
            from_before = from_key = np.zeros(len(adds), bool)
            for name, mask in written.after.unavailable.items():
                self._refuse(mask & adds, _UNAVAILABLE.format(kind=kind), name)
        self._refuse_values(written.before, is_pair | whole_delete)
        self._refuse_values(written.before.only(table.primary_keys), from_before)
        self._refuse_values(written.after, adds)
        self._refuse_values(written.keys, from_key)
        keys_of_before = written.before.only(table.primary_keys) if from_before.any() else written.before
        return self._gathered(
            (
                self._kept(written.before, is_pair, RowKind.UPDATE_BEFORE, 0),
                self._kept(written.before, whole_delete, RowKind.DELETE, 0),
                self._kept(keys_of_before, from_before, RowKind.DELETE, 0),
                self._kept(written.keys, from_key, RowKind.DELETE, 0),
                self._kept(written.after, adds & ~updates, RowKind.INSERT, 1),
                self._kept(written.after, adds & updates, RowKind.UPDATE_AFTER, 1),
            ),
            np.flatnonzero(is_of[Operation.TRUNCATE]),
        )

    def _moved(self) -> Mask:
        """Mask of the records whose key differs before and after the change."""
        moved = np.zeros(len(self._old_key), bool)
        for name in self._table.primary_keys:
            before, after = self._written.before.columns[name], self._written.after.columns[name]
            moved |= pc.fill_null(pc.not_equal(before, after), False).to_numpy(zero_copy_only=False)
        return moved

    def _bare_tombstones(self, tombstones: Mask, deletes: Mask) -> Mask:
        """Mask of the tombstones that tell a key and do not just follow the deletion of that key."""
        if self._table.ignores_tombstones:
            return np.zeros(len(tombstones), bool)
        follows = np.zeros(len(tombstones), bool)
        if tombstones.any():
            follows[1:] = deletes[:-1]
            for name in self._table.primary_keys:
                column = self._written.keys.columns[name]
                same = pc.fill_null(pc.equal(column[1:], column[:-1]), False)
                follows[1:] &= same.to_numpy(zero_copy_only=False)
        return tombstones & self._key_told & ~follows

    def _refuse(self, records: Mask, reason: str, column: str | None = None) -> None:
        for index in np.flatnonzero(records).tolist():
            self._reasons.setdefault(index, (column, reason))

    def _refuse_metadata(self, records: Mask) -> None:
        """Refuse those of the records whose metadata can't be taken."""
        for index, (column, reason) in self._written.metadata.problems.items():
            if records[index]:
                is_tombstone = self._written.operations[index] == Operation.TOMBSTONE
                told = _TOMBSTONE.format(column=column) if is_tombstone else reason
                self._reasons.setdefault(index, (column, told))

    def _refuse_values(self, image: RowImages, used: Mask) -> None:
        for each in image.refusals:
            if used[each.record_index]:
                self._reasons.setdefault(each.record_index, (each.column, each.reason))

    def _kept(self, image: RowImages, records: Mask, kind: RowKind, position: int) -> _Kept:
        mine = records & image.is_there
        mine[list(self._reasons)] = False
        indices = np.flatnonzero(mine)
        return _Kept(image, indices, np.full(len(indices), kind, np.int8), position)

    def _gathered(self, every: Sequence[_Kept], truncations: np.ndarray) -> CapturedChanges:
        parts = [each for each in every if len(each.records)]
        columns = all_nullable(self._table.every_column)
        metadata = self._written.metadata.columns
        records = np.concatenate([np.zeros(0, np.int64), *(each.records for each in parts)])
        positions = np.concatenate([np.zeros(0, np.int64), *(np.full(len(e.records), e.position) for e in parts)])
        order = np.lexsort((positions, records))
        kinds = np.concatenate([np.zeros(0, np.int8), *(each.kinds for each in parts)])[order]
        arrays = [
            _at(metadata[each.name], records[order])
            if each.name in metadata
            else _at(
                pa.concat_arrays(
                    [pa.nulls(0, each.type), *(_at(part.image.columns[each.name], part.records) for part in parts)]
                ),
                order,
            )
            for each in columns
        ]
        return CapturedChanges(
            rows=pa.RecordBatch.from_arrays(arrays, schema=columns),
            kinds=pa.array(kinds, pa.int8()),
            record_indices=records[order],
            unavailable=self._masks(parts, order, is_absent=False),
            absent=self._masks(parts, order, is_absent=True),
            truncations=truncations,
            schemas=self._written.schemas,
            leaves_out_nulls=self._written.leaves_out_nulls,
            refusals=tuple(
                Refusal(record_index=index, column=column, reason=reason)
                for index, (column, reason) in sorted(self._reasons.items())
            ),
        )

    def _masks(self, parts: Sequence[_Kept], order: np.ndarray, *, is_absent: bool) -> dict[str, Mask]:
        found = {}
        for name in self._table.columns.names:
            masks = [(each.image.absent if is_absent else each.image.unavailable).get(name) for each in parts]
            if any(mask is not None for mask in masks):
                of_rows = [
                    np.zeros(len(part.records), bool) if mask is None else mask[part.records]
                    for mask, part in zip(masks, parts, strict=True)
                ]
                whole = np.concatenate(of_rows)[order]
                if whole.any():
                    found[name] = whole
        return found


def _at(column: pa.Array, places: np.ndarray) -> pa.Array:
    """Return the values at ``places``, without a copy if these are all in order, as in most batches."""
    if len(places) == len(column) and (places == np.arange(len(places))).all():
        return column
    return column.take(pa.array(places))
