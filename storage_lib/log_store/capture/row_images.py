"""Rows as some side of each record of a batch has them: before the change, after it, or in the record's key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.log_store.capture.captured_changes import joined_masks, masks_at

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_changes import Refusal
    from storage_lib.schema.encoding.varint_columns import Int64s
    from storage_lib.schema.types.nested_arrays import Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class RowImages:
    """One row per record, in the table's types. ``is_there`` is false where the record has no such side.

    ``unavailable`` and ``absent`` are those of ``CapturedChanges``, ``refusals`` those of values that do not fit.
    """

    columns: Mapping[str, pa.Array]
    is_there: Mask
    unavailable: Mapping[str, Mask] = field(default_factory=dict)
    absent: Mapping[str, Mask] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()

    def knows(self, names: Iterable[str]) -> Mask:
        """Mask of the records that have a value in each of the columns."""
        known = self.is_there.copy()
        for name in names:
            known &= self.columns[name].is_valid().to_numpy(zero_copy_only=False)
        return known

    @property
    def is_whole(self) -> Mask:
        """Mask of the records that tell each column of the row."""
        whole = self.is_there.copy()
        for lacks in (*self.unavailable.values(), *self.absent.values()):
            whole &= ~lacks
        return whole

    @property
    def is_available(self) -> Mask:
        """Mask of the records that leave out no unchanged value of the row."""
        available = self.is_there.copy()
        for lacks in self.unavailable.values():
            available &= ~lacks
        return available

    def only(self, names: Sequence[str]) -> RowImages:
        """Return the same rows, of which only the columns ``names`` are told."""
        absent = {name: self.is_there for name in self.columns if name not in names}
        unavailable = {name: lacks for name, lacks in self.unavailable.items() if name in names}
        kept = {name: mask for name, mask in self.absent.items() if name in names}
        columns = {
            name: column if name in names else pa.nulls(len(column), column.type)
            for name, column in self.columns.items()
        }
        return RowImages(
            columns=columns,
            is_there=self.is_there,
            unavailable=unavailable,
            absent=kept | absent,
            refusals=tuple(each for each in self.refusals if each.column in names),
        )

    def where(self, mask: Mask) -> RowImages:
        """Return the images of which only those in ``mask`` are there."""
        return RowImages(
            columns=self.columns,
            is_there=self.is_there & mask,
            unavailable={name: lacks & mask for name, lacks in self.unavailable.items()},
            absent={name: lacks & mask for name, lacks in self.absent.items()},
            refusals=tuple(each for each in self.refusals if mask[each.record_index]),
        )


def no_images(columns: pa.Schema, count: int) -> RowImages:
    """Return the images of records that have no such side."""
    return RowImages(
        columns={each.name: pa.nulls(count, each.type) for each in columns}, is_there=np.zeros(count, bool)
    )


def merged_images(parts: Sequence[tuple[Int64s, RowImages]]) -> RowImages:
    """Merge the images of parts of a batch, at least one; the record ``i`` of a part is ``indices[i]`` of the batch."""
    parts = [each for each in parts if len(each[0])] or parts[:1]
    if len(parts) == 1 and (parts[0][0] == np.arange(len(parts[0][0]))).all():
        return parts[0][1]
    order = np.argsort(np.concatenate([indices for indices, _ in parts]), kind="stable")
    images, counts = [each for _, each in parts], [len(indices) for indices, _ in parts]
    refusals = [
        replace(each, record_index=int(indices[each.record_index])) for indices, part in parts for each in part.refusals
    ]
    return RowImages(
        columns={
            name: pa.concat_arrays([each.columns[name] for each in images]).take(pa.array(order))
            for name in images[0].columns
        },
        is_there=np.concatenate([each.is_there for each in images])[order],
        unavailable=masks_at(joined_masks([each.unavailable for each in images], counts), order),
        absent=masks_at(joined_masks([each.absent for each in images], counts), order),
        refusals=tuple(refusals),
    )
