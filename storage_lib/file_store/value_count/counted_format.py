"""File format under another extension, so that no other engine reads a table with counts as a plain one.

Paimon's readers and writers choose a file's format by its extension, and refuse this unknown one.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from storage_lib.format.file_format import FileFormat, FormatReader, FormatWriter

COUNTED_SUFFIX = "-counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedFormat:
    """A ``FileFormat``: ``parquet-counts`` for Parquet."""

    inner: FileFormat

    @property
    def extension(self) -> str:
        """File extension, without the dot."""
        return f"{self.inner.extension}{COUNTED_SUFFIX}"

    def refuse_unsupported(self, schema: pa.Schema) -> None:
        """Check as the inner format does."""
        self.inner.refuse_unsupported(schema)

    def writer(self, output: pa.NativeFile, schema: pa.Schema, sample: pa.RecordBatch) -> FormatWriter:
        """Return a writer of the inner format."""
        return self.inner.writer(output, schema, sample)

    def reader(self, source: pa.NativeFile, path: str) -> FormatReader:
        """Return a reader of the inner format."""
        return self.inner.reader(source, path)
