"""Data file reader that records its requests and counts the rows that it returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader


@dataclass
class CountingReader(DataFileReader):
    """Delegates reads to ``delegate`` and counts them."""

    delegate: DataFileReader
    columns_asked: list[tuple[str, ...]] = field(default_factory=list)
    rows_given: int = 0

    def read(self, file: DataFileMeta, columns: Sequence[str], **options: Any) -> Iterator[pa.RecordBatch]:
        self.columns_asked.append(tuple(columns))
        for batch in self.delegate.read(file, columns, **options):
            self.rows_given += batch.num_rows
            yield batch
