"""Deletions that remove a whole record, so that later rows start a new one (``...remove-record-on-delete``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.data_file.key_value import SEQUENCE_NUMBER, VALUE_KIND
from storage_lib.file_store.merge_tree.merge_function.versions import Versions
from storage_lib.schema.types.row_kind import RowKind


@dataclass(frozen=True, kw_only=True)
class AfterRemoval:
    """``versions`` without removed rows; ``removed`` are the deletions followed by new rows, None if there are none.

    A key that ends with its deletion has only that version. ``restarts`` is the mask of the keys of ``removed``.
    """

    versions: Versions
    removed: pa.RecordBatch | None
    restarts: npt.NDArray[np.bool_]


def after_removal(versions: Versions) -> AfterRemoval:
    """Omit the versions before the last ``-D`` of each key."""
    if versions.retracts is None:
        return AfterRemoval(versions=versions, removed=None, restarts=np.zeros(len(versions.starts), dtype=np.bool_))
    kinds = versions.rows.column(VALUE_KIND).to_numpy()
    positions = np.arange(len(kinds))
    last = np.maximum.reduceat(np.where(kinds == RowKind.DELETE, positions, -1), versions.starts)
    last_of_row = np.repeat(last, versions.ends - versions.starts)
    follows = positions > last_of_row
    restarts = np.logical_or.reduceat(follows & ~versions.retracts, versions.starts) & (last >= 0)
    stays = follows & np.repeat(restarts | (last < 0), versions.ends - versions.starts)
    stays[last[(last >= 0) & ~restarts]] = True
    removed = versions.rows.take(pa.array(last[restarts])) if restarts.any() else None
    return AfterRemoval(versions=only_rows(versions, stays), removed=removed, restarts=restarts)


def deletions_below(removal: AfterRemoval, retained: frozenset[str]) -> pa.RecordBatch | None:
    """Return the deletions followed by new rows, with nulls in all columns except the ``retained`` ones.

    The column values of a deletion are no longer needed, and readers that merge further versions would take them for
    part of the new row.
    """
    return None if removal.removed is None else without_deleted_values(removal.removed, retained)


def without_deleted_values(rows: pa.RecordBatch, retained: frozenset[str]) -> pa.RecordBatch:
    """Set all columns of deletions to null except the ``retained`` ones: see ``deletions_below``."""
    deleted = rows.column(VALUE_KIND).to_numpy() == RowKind.DELETE
    if not deleted.any():
        return rows
    retained |= {SEQUENCE_NUMBER, VALUE_KIND}
    place = pa.array(np.arange(len(deleted)), mask=deleted)
    columns = [
        column if field.name in retained else column.take(place)
        for field, column in zip(rows.schema, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def only_rows(versions: Versions, rows: npt.NDArray[np.bool_]) -> Versions:
    """Select rows, at least one of each key."""
    if rows.all():
        return versions
    selected = np.flatnonzero(rows)
    group = versions.group_of_row[selected]
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    return Versions(rows=versions.rows.take(pa.array(selected)), starts=starts)
