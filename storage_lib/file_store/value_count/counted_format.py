"""A file format under another extension, so that no other engine takes a table with counts for a plain one.

Paimon's readers and writers choose a file's format by its extension; to each of them this one is unknown, and says so.
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
        """The end of a file name, without dot."""
        return f"{self.inner.extension}{COUNTED_SUFFIX}"

    def refuse_unsupported(self, schema: pa.Schema) -> None:
        """As the format itself."""
        self.inner.refuse_unsupported(schema)

    def writer(self, output: pa.NativeFile, schema: pa.Schema, sample: pa.RecordBatch) -> FormatWriter:
        """Of the format itself."""
        return self.inner.writer(output, schema, sample)

    def reader(self, source: pa.NativeFile, path: str) -> FormatReader:
        """Of the format itself."""
        return self.inner.reader(source, path)
