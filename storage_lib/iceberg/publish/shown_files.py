"""Data files that a view can show: Parquet, with the field ids by which readers of Iceberg find the columns.

Files of this library have them, and so have those of Paimon's Java engines; other writers may leave them out. Readers
would then see nulls, or columns by their former names.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.file_store.data_file.field_ids import FIELD_ID_KEY
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.file_io import FileIO
from storage_lib.schema.options.table_options import OWN_PREFIX

_FORMAT = ".parquet"
_ADVICE = "its Iceberg view ends before the snapshot that has it. Compact the table fully"


def refuse_unfit_files(table: str, stores: FileIO, paths: Iterable[str], *, are_ours: bool) -> None:
    """Raise ``InvalidInputError`` naming a file that readers of Iceberg could not read.

    Footers are read unless this library wrote all files.
    """
    for path in sorted(paths):
        if not path.endswith(_FORMAT):
            message = f"table {table}: data file {path} is not a Parquet file, so {_ADVICE} with file.format=parquet"
            raise InvalidInputError(message)
        if not are_ours and not _has_ids(stores, path):
            message = f"table {table}: data file {path} of another writer has no field ids, so {_ADVICE}"
            raise InvalidInputError(message)


def is_of_this_library(snapshot: Snapshot) -> bool:
    """Return whether this library made the snapshot, and so wrote the files that it adds."""
    return any(key.startswith(OWN_PREFIX) for key in snapshot.properties)


def _has_ids(stores: FileIO, path: str) -> bool:
    with stores.open_input(path) as source:
        try:
            schema = pq.read_schema(source)
        except (pa.ArrowException, OSError) as error:
            message = f"{path} is not a readable Parquet file: {error}"
            raise CorruptFileError(message) from error
    return all(field.metadata is not None and FIELD_ID_KEY in field.metadata for field in schema)
