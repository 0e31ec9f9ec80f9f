"""Changes of a source that are committed together, and the records among them that were refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.log_store.capture.captured_changes import all_nullable, joined_masks, masks_at

if TYPE_CHECKING:
    from storage_lib.log_store.external.captured_topic import CapturedBatch, RefusedRecord
    from storage_lib.schema.types.nested_arrays import Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredChanges:
    """Changes of several batches, in order, each row with its partition, offset and record's key. May be empty.

    A key (binary) may be null where no row of a batch leaves out an unchanged value. ``refused`` are the records that
    give no rows.
    """

    rows: pa.Table
    kinds: pa.Array
    buckets: np.ndarray
    offsets: np.ndarray
    keys: pa.ChunkedArray
    unavailable: Mapping[str, Mask]
    absent: Mapping[str, Mask]
    refused: tuple[RefusedRecord, ...] = ()
    leaves_out_nulls: bool = False

    @classmethod
    def of(cls, batches: Sequence[CapturedBatch], columns: pa.Schema) -> GatheredChanges:
        """Concatenate batches; ``columns`` are the table's."""
        every = [each.changes for each in batches]
        counts = [each.rows.num_rows for each in every]
        return cls(
            rows=pa.Table.from_batches([each.rows for each in every], all_nullable(columns)),
            kinds=pa.concat_arrays([pa.array([], pa.int8()), *(each.kinds for each in every)]),
            buckets=np.concatenate(
                [np.zeros(0, np.int64), *(np.full(each.changes.rows.num_rows, each.bucket) for each in batches)]
            ),
            offsets=np.concatenate([np.zeros(0, np.int64), *(each.offsets for each in batches)]),
            keys=pa.chunked_array([each.keys.cast(pa.binary()) for each in batches], pa.binary()),
            unavailable=joined_masks([each.unavailable for each in every], counts),
            absent=joined_masks([each.absent for each in every], counts),
            refused=tuple(record for each in batches for record in each.refused),
            leaves_out_nulls=any(each.leaves_out_nulls for each in every),
        )

    def where(self, mask: Mask) -> GatheredChanges:
        """Return the rows in ``mask``."""
        chosen = pa.array(mask)
        return replace(
            self,
            rows=self.rows.filter(chosen),
            kinds=self.kinds.filter(chosen),
            buckets=self.buckets[mask],
            offsets=self.offsets[mask],
            keys=self.keys.filter(chosen),
            unavailable=masks_at(self.unavailable, mask),
            absent=masks_at(self.absent, mask),
        )
