"""Raw records of one bucket as columns, before they are decoded."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import CorruptFileError
from storage_lib.log_store.codec.corrupt_records import decode_but_corrupt
from storage_lib.log_store.codec.log_codec import ChangeDecoder, CorruptRecordError
from storage_lib.log_store.codec.record_origin import RecordOrigin
from storage_lib.log_store.log_store import LogBatch
from storage_lib.schema.options.table_options import OnCorrupt

if TYPE_CHECKING:
    Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]

REPAIRS_HEADER = "repairs-snapshot"
"""Record header that holds the id of the snapshot that the record repairs, in decimal digits."""

_EXCERPT_BYTES = 200
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogColumns:
    """Records in log order. ``keys`` and ``values`` are binary and may be null, ``repairs`` is int64 or null.

    ``origin`` is None unless somebody asks for it, or the records are not in their topic any more.
    """

    keys: pa.Array
    values: pa.Array
    offsets: Int64s
    timestamps: Int64s
    repairs: pa.Array
    origin: RecordOrigin | None = None

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        """Size of keys and values in bytes."""
        return int(self.keys.nbytes + self.values.nbytes)

    def slice(self, start: int, stop: int) -> LogColumns:
        """Return the records from ``start`` to ``stop``, exclusive, without copying."""
        return LogColumns(
            keys=self.keys[start:stop],
            values=self.values[start:stop],
            offsets=self.offsets[start:stop],
            timestamps=self.timestamps[start:stop],
            repairs=self.repairs[start:stop],
            origin=None if self.origin is None else self.origin.at(slice(start, stop)),
        )

    def without(self, indices: Int64s) -> LogColumns:
        """Return the records but those at ``indices``."""
        kept = np.delete(np.arange(len(self)), indices)
        places = pa.array(kept)
        return LogColumns(
            keys=self.keys.take(places),
            values=self.values.take(places),
            offsets=self.offsets[kept],
            timestamps=self.timestamps[kept],
            repairs=self.repairs.take(places),
            origin=None if self.origin is None else self.origin.at(kept),
        )

    def between(self, first: int, stop: int) -> LogColumns:
        """Return the records with offsets from ``first`` to ``stop``, exclusive."""
        start_index, stop_index = np.searchsorted(self.offsets, [first, stop])
        return self.slice(int(start_index), int(stop_index))


def read_columns(
    codec: ChangeDecoder,
    columns: LogColumns,
    *,
    log: str,
    bucket: int,
    next_offset: int,
    on_corrupt: OnCorrupt = OnCorrupt.FAIL,
) -> LogBatch:
    """Decode records of the log.

    Corrupt values are reported with log, bucket and offset: by ``CorruptFileError``, or by a warning if they are
    skipped.
    """

    def tell(index: int, error: CorruptRecordError) -> None:
        place, excerpt = columns.offsets[index], (columns.values[index].as_py() or b"")[:_EXCERPT_BYTES]
        _log.warning(
            "log %r, bucket %d, offset %d: skipped a record that is not a %s change: %s. It starts with %r",
            *(log, bucket, place, codec.name, error, excerpt),
        )

    try:
        if on_corrupt is OnCorrupt.SKIP:
            changes = decode_but_corrupt(codec, columns.values, columns.keys, tell)
        else:
            changes = codec.decode(columns.values, columns.keys)
    except CorruptRecordError as error:
        value = columns.values[error.index].as_py() or b""
        excerpt = value[:_EXCERPT_BYTES]
        remedy = "Find out which program writes it; log.scan.on-corrupt=skip skips corrupt records"
        if codec.name == "debezium-json" and b'"payload"' in value:
            remedy = "It has a schema next to its payload: use the format debezium-json-schema"
        message = (
            f"log {log!r}, bucket {bucket}, offset {columns.offsets[error.index]}: not a {codec.name} change of this "
            f"table: {error}. It starts with {excerpt!r}. {remedy}"
        )
        raise CorruptFileError(message) from error
    indices = changes.record_indices
    return LogBatch(
        bucket=bucket,
        rows=changes.rows,
        kinds=changes.kinds,
        offsets=pa.array(columns.offsets[indices]),
        timestamps=pa.array(columns.timestamps[indices]),
        repairs=pc.take(columns.repairs, pa.array(indices)),
        next_offset=next_offset,
    )


def no_columns() -> LogColumns:
    """Return columns of no records."""
    nothing = np.zeros(0, np.int64)
    return LogColumns(
        keys=pa.nulls(0, pa.binary()),
        values=pa.nulls(0, pa.binary()),
        offsets=nothing,
        timestamps=nothing,
        repairs=pa.nulls(0, pa.int64()),
    )
