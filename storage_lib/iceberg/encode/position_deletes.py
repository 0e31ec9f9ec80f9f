"""Position delete files (https://iceberg.apache.org/spec/#position-delete-files), which hide rows in version 2.

A Parquet file of two columns, the data file's path and the position of a row in it, here of one data file only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.data_file.field_ids import FIELD_ID_KEY

_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_PATH, _POSITION = "file_path", "pos"
_FILE_SCHEMA = pa.schema(
    [
        pa.field(_PATH, pa.dictionary(pa.int32(), pa.string()), nullable=False, metadata={FIELD_ID_KEY: str(_PATH_ID)}),
        pa.field(_POSITION, pa.int64(), nullable=False, metadata={FIELD_ID_KEY: str(_POSITION_ID)}),
    ]
)
_POSITION_BYTES = 8
_CODEC = "zstd"


def encode_position_deletes(rows: BitMap64, data_file: str) -> bytes:
    """Encode the file that hides ``rows`` of one data file."""
    positions = pa.array(np.asarray(rows.to_array(), dtype=np.int64))
    # As a dictionary: otherwise the path would be hashed once for each row, which takes longer than all the rest.
    paths = pa.DictionaryArray.from_arrays(np.zeros(len(positions), np.int32), [data_file])
    out = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays([paths, positions], schema=_FILE_SCHEMA),
        out,
        compression=_CODEC,
        use_dictionary=[_PATH],
        column_encoding={_POSITION: "DELTA_BINARY_PACKED"},
        store_schema=False,
    )
    return bytes(out.getvalue())


def decode_position_deletes(source: pa.NativeFile, path: str) -> npt.NDArray[np.int64]:
    """Return the hidden positions, ascending. Raises ``CorruptFileError`` naming ``path``."""
    try:
        column = pq.read_table(source, columns=[_POSITION]).column(_POSITION)
    except (pa.ArrowException, OSError, KeyError) as error:
        message = f"{path} is not a readable position delete file: {error}"
        raise CorruptFileError(message) from error
    return np.asarray(column.to_numpy(), dtype=np.int64)


def path_bounds(rows: BitMap64, data_file: str) -> dict[str, list[dict[str, Any]]]:
    """Return the bounds of both columns, by which readers find the data file."""
    path = data_file.encode()
    return {
        "lower_bounds": _by_id(path, rows.min()),
        "upper_bounds": _by_id(path, rows.max()),
    }


def _by_id(path: bytes, position: int) -> list[dict[str, Any]]:
    return [
        {"key": _PATH_ID, "value": path},
        {"key": _POSITION_ID, "value": position.to_bytes(_POSITION_BYTES, "little")},
    ]
