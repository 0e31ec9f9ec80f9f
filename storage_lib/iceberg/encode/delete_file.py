"""Files that hide rows of one data file: a deletion vector, in version 3 of the format, or a position delete file.

A data file has at most one, with all of its hidden rows, so that a later one replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from storage_lib.file_store.data_file.deletion_vector import bitmap_of, read_deletion_vector
from storage_lib.iceberg.encode.position_deletes import decode_position_deletes, encode_position_deletes, path_bounds
from storage_lib.iceberg.encode.puffin_vector import BLOB_OFFSET, encode_puffin
from storage_lib.schema.options.table_options import IcebergVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """Bytes of a file that hides rows, and the suffix of its name.

    ``offset`` and ``blob_size`` locate a vector in its Puffin file; ``bounds`` name the data file to older readers.
    """

    data: bytes
    suffix: str
    offset: int | None = None
    blob_size: int | None = None
    bounds: Mapping[str, Any] = field(default_factory=dict)


def encode_delete_file(rows: BitMap64, data_file: str, version: IcebergVersion) -> DeleteFile:
    """Encode the file that hides ``rows``, positions of the data file with this path, of which there is at least one.

    Memory is 16 bytes for each row.
    """
    if version is IcebergVersion.V3:
        puffin = encode_puffin(rows, data_file)
        return DeleteFile(data=puffin.data, suffix="puffin", offset=BLOB_OFFSET, blob_size=puffin.blob_size)
    return DeleteFile(
        data=encode_position_deletes(rows, data_file), suffix="parquet", bounds=path_bounds(rows, data_file)
    )


def decode_delete_file(data: bytes, offset: int | None, source: str) -> BitMap64:
    """Return the positions that a file hides; ``offset`` is that of a vector. Raises ``CorruptFileError``."""
    buffer = pa.BufferReader(data)
    if offset is None:
        return bitmap_of(decode_position_deletes(buffer, source))
    return bitmap_of(read_deletion_vector(buffer, offset, source))
