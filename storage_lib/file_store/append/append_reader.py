"""Reads the rows of an append table's files as stored: without a merge, any condition can prune."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.schema.filter.predicate import Predicate

BATCH_ROWS_MAX = 131_072


def read_appended(
    files: Iterable[DataFileMeta],
    reader: DataFileReader,
    *,
    columns: Sequence[str],
    predicate: Predicate | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield matching rows, file after file, as non-empty batches of ``columns`` in the given order.

    Row groups without a match are not decoded. Raises ``NotFoundError`` or ``CorruptFileError`` naming the file.
    """
    if not columns:
        message = "A read needs at least one column; ask for any column to count rows."
        raise InvalidInputError(message)
    filtered = () if predicate is None else sorted(predicate.columns)
    wanted = tuple(dict.fromkeys((*columns, *filtered)))
    for file in files:
        for batch in reader.read(file, wanted, predicate=predicate, batch_rows=BATCH_ROWS_MAX):
            matching = batch
            if predicate is not None:
                mask = predicate.mask(batch)
                matching = batch if mask.true_count == batch.num_rows else batch.filter(mask)
            if matching.num_rows:
                yield matching.select(list(columns))


def in_append_order(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    """Sort files of one bucket, oldest rows first; files of parallel writers stay in commit order."""
    return sorted(files, key=lambda file: file.min_sequence_number)
