"""Records that are decoded by a decoder of captured records."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from storage_lib.log_store.capture.capture_decoder import CaptureDecoder
from storage_lib.log_store.capture.captured_changes import CapturedChanges
from storage_lib.log_store.capture.captured_table import CapturedTable
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.schema.options.source_options import BeforeImage
from storage_lib.schema.table_schema import TableSchema
from tests.support.raw_topic import columns_of


def captured_table(
    schema: TableSchema, before_image: BeforeImage = BeforeImage.AUTO, *, needs_old_rows: bool = False
) -> CapturedTable:
    """Describe a table whose changes are decoded in Debezium's default modes."""
    return CapturedTable(schema=schema, modes=CaptureModes(), before_image=before_image, needs_old_rows=needs_old_rows)


def captured(
    decoder: CaptureDecoder, values: Sequence[object], keys: Sequence[object] | None = None
) -> CapturedChanges:
    """Decode values and keys (bytes, texts or None; an array of bytes will do)."""
    every = keys if keys is not None else [None] * len(values)
    records = [
        (index, _bytes(key), _bytes(value)) for index, (key, value) in enumerate(zip(every, values, strict=True))
    ]
    return decoder.captured(columns_of(records))


def _bytes(part: object) -> bytes | None:
    found = part.as_py() if isinstance(part, pa.Scalar) else part
    if found is None or isinstance(found, bytes):
        return found
    return str(found).encode()
