"""Changes read from records of an external topic, with what the records leave out and which of them are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from storage_lib.log_store.conversion.captured_value_type import ValueType
    from storage_lib.schema.encoding.varint_columns import Int64s
    from storage_lib.schema.types.nested_arrays import Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A record that gives no rows: its index in the batch, and why. ``column`` is None if no single one is at fault.

    ``is_unreadable``: its bytes are not of the format; other records are read, but can't be applied.
    """

    record_index: int
    column: str | None
    reason: str
    is_unreadable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumns:
    """Columns of the source as the schema of a record says, with the first record that has this schema."""

    record_index: int
    columns: Mapping[str, ValueType]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedChanges:
    """Changes in the order of their records; ``record_indices[i]`` (ascending) is the record that row ``i`` came from.

    ``rows`` has the table's columns, all nullable; ``kinds`` are int8 codes of ``RowKind``. ``unavailable`` and
    ``absent`` hold masks by column, for columns with any such row; there ``rows`` has null. An unavailable value has
    not changed, and the record does not repeat it: it is a stored one. A value is absent if the record does not know
    its column. ``truncations`` are the indices of the records that delete all rows. ``schemas`` are those of records
    that carry one, in order. ``leaves_out_nulls``: an unavailable value may be null.
    """

    rows: pa.RecordBatch
    kinds: pa.Array
    record_indices: Int64s
    unavailable: Mapping[str, Mask] = field(default_factory=dict)
    absent: Mapping[str, Mask] = field(default_factory=dict)
    truncations: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    refusals: tuple[Refusal, ...] = ()
    schemas: tuple[SourceColumns, ...] = ()
    leaves_out_nulls: bool = False

    def between(self, first: int, stop: int) -> CapturedChanges:
        """Return what the records with indices from ``first`` to ``stop``, exclusive, say."""
        start, end = (int(each) for each in np.searchsorted(self.record_indices, [first, stop]))
        is_in = (self.truncations >= first) & (self.truncations < stop)
        return CapturedChanges(
            rows=self.rows.slice(start, end - start),
            kinds=self.kinds.slice(start, end - start),
            record_indices=self.record_indices[start:end],
            unavailable=_any(self.unavailable, slice(start, end)),
            absent=_any(self.absent, slice(start, end)),
            truncations=self.truncations[is_in],
            refusals=tuple(each for each in self.refusals if first <= each.record_index < stop),
            schemas=tuple(each for each in self.schemas if first <= each.record_index < stop),
            leaves_out_nulls=self.leaves_out_nulls,
        )

    def refusing(self, refused: Sequence[Refusal]) -> CapturedChanges:
        """Return the changes without the rows of further refused records."""
        if not refused:
            return self
        rest = self.without_rows(np.isin(self.record_indices, [each.record_index for each in refused]))
        return replace(rest, refusals=tuple(sorted((*self.refusals, *refused), key=lambda each: each.record_index)))

    def with_keys_only(self, keys: Sequence[str], rows: Mask) -> CapturedChanges:
        """Return the changes of which those in ``rows`` tell no column but their ``keys``."""
        places = pa.array(np.arange(len(rows)), mask=rows)
        columns = [
            column if name in keys else column.take(places)
            for name, column in zip(self.rows.schema.names, self.rows.columns, strict=True)
        ]
        others = [name for name in self.rows.schema.names if name not in keys]
        none = np.zeros(len(rows), bool)
        return replace(
            self,
            rows=pa.RecordBatch.from_arrays(columns, schema=self.rows.schema),
            unavailable={name: mask & ~rows for name, mask in self.unavailable.items()},
            absent={**self.absent, **{name: self.absent.get(name, none) | rows for name in others}},
        )

    def without_rows(self, dropped: Mask) -> CapturedChanges:
        """Return the changes without some rows, whose records may have others."""
        kept = ~dropped
        return replace(
            self,
            rows=self.rows.filter(pa.array(kept)),
            kinds=self.kinds.filter(pa.array(kept)),
            record_indices=self.record_indices[kept],
            unavailable=masks_at(self.unavailable, kept),
            absent=masks_at(self.absent, kept),
        )


def nothing_captured(columns: pa.Schema) -> CapturedChanges:
    """Return the changes of no records; ``columns`` are the table's."""
    return CapturedChanges(
        rows=pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in columns], schema=all_nullable(columns)),
        kinds=pa.array([], pa.int8()),
        record_indices=np.zeros(0, np.int64),
    )


def all_nullable(columns: pa.Schema) -> pa.Schema:
    """Return the same columns without NOT NULL."""
    return pa.schema([each.with_nullable(True) for each in columns])


def merged_changes(parts: Sequence[tuple[Int64s, CapturedChanges]]) -> CapturedChanges:
    """Merge the changes of parts of a batch, at least one; record ``i`` of a part is ``indices[i]`` of the batch."""
    if len(parts) == 1 and (parts[0][0] == np.arange(len(parts[0][0]))).all():
        return parts[0][1]
    indices = np.concatenate([of[changes.record_indices] for of, changes in parts])
    order = np.argsort(indices, kind="stable")
    rows, counts = pa.concat_batches([changes.rows for _, changes in parts]), [len(each.rows) for _, each in parts]
    truncations = np.concatenate([of[changes.truncations] for of, changes in parts])
    refusals = [
        replace(each, record_index=int(of[each.record_index])) for of, changes in parts for each in changes.refusals
    ]
    schemas = [
        replace(each, record_index=int(of[each.record_index])) for of, changes in parts for each in changes.schemas
    ]
    return CapturedChanges(
        rows=rows.take(pa.array(order)),
        kinds=pa.concat_arrays([changes.kinds for _, changes in parts]).take(pa.array(order)),
        record_indices=indices[order],
        unavailable=masks_at(joined_masks([changes.unavailable for _, changes in parts], counts), order),
        absent=masks_at(joined_masks([changes.absent for _, changes in parts], counts), order),
        truncations=np.sort(truncations),
        refusals=tuple(sorted(refusals, key=lambda each: each.record_index)),
        schemas=tuple(sorted(schemas, key=lambda each: each.record_index)),
        leaves_out_nulls=any(changes.leaves_out_nulls for _, changes in parts),
    )


def joined_masks(parts: Sequence[Mapping[str, Mask]], counts: Sequence[int]) -> dict[str, Mask]:
    """Concatenate masks by column of parts with ``counts`` rows; a part may lack the mask of a column."""
    names = dict.fromkeys(name for each in parts for name in each)
    return {
        name: np.concatenate([each.get(name, np.zeros(count, bool)) for each, count in zip(parts, counts, strict=True)])
        for name in names
    }


def any_mask(masks: Iterable[Mask], count: int) -> Mask:
    """Return the mask of the rows, of ``count``, that are in any of the masks."""
    found = np.zeros(count, bool)
    for mask in masks:
        found |= mask
    return found


def masks_at(masks: Mapping[str, Mask], rows: Mask | Int64s) -> dict[str, Mask]:
    """Return the masks of some rows."""
    return {name: mask[rows] for name, mask in masks.items()}


def _any(masks: Mapping[str, Mask], rows: slice) -> dict[str, Mask]:
    return {name: mask[rows] for name, mask in masks.items() if mask[rows].any()}
