"""Formats of data files by the names that options use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from storage_lib.errors import InvalidInputError
from storage_lib.format.avro_format import CODECS as AVRO_CODECS
from storage_lib.format.avro_format import AvroFormat
from storage_lib.format.file_format import FileFormat
from storage_lib.format.orc_format import CODECS as ORC_CODECS
from storage_lib.format.orc_format import OrcFormat
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.options.extensions import Extension, added, added_names
from storage_lib.schema.options.table_options import TableOptions

FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": ("zstd", "snappy", "gzip", "lz4", "brotli", "none"),
    "orc": tuple(ORC_CODECS),
    "avro": tuple(AVRO_CODECS),
}
"""Values of ``file.format``, with the values of ``file.compression`` for each."""


def new_format(name: str, *, compression: str, compression_level: int) -> FileFormat:
    """Return the format of an option; ``compression_level`` is zstd's. Formats of packages ignore both.

    Raises ``InvalidInputError`` for an unknown format or codec.
    """
    codec = compression.lower()
    if name not in FORMATS and name in added_names(Extension.FILE_FORMATS):
        added_format: FileFormat = added(Extension.FILE_FORMATS, name)()
        return added_format
    if name not in FORMATS:
        message = f"option file.format={name} is not supported by this version; use {' or '.join(FORMATS)}"
        raise InvalidInputError(message)
    if codec not in FORMATS[name]:
        message = (
            f"option file.compression={compression} is not known to {name} files; use {' or '.join(FORMATS[name])}"
        )
        raise InvalidInputError(message)
    if name == "orc":
        return OrcFormat(compression=codec)
    if name == "avro":
        return AvroFormat(compression=codec)
    return ParquetFormat(compression=codec, compression_level=compression_level if codec == "zstd" else None)


def format_of(options: TableOptions, level: int | None = None) -> FileFormat:
    """Return the format of a table's new data files at ``level`` (None: the default); raises as ``new_format``."""
    formats, codecs = options.file_format_per_level or {}, options.file_compression_per_level or {}
    return new_format(
        options.file_format if level is None else formats.get(level, options.file_format),
        compression=options.file_compression if level is None else codecs.get(level, options.file_compression),
        compression_level=options.file_compression_zstd_level,
    )


def formats_by_level(options: TableOptions) -> dict[int, FileFormat]:
    """Return the formats of the levels that the options name; raises as ``new_format``."""
    levels = {*(options.file_format_per_level or {}), *(options.file_compression_per_level or {})}
    return {level: format_of(options, level) for level in sorted(levels)}


def all_formats() -> tuple[FileFormat, ...]:
    """Return one of each format for reading, which needs no settings, including those of packages."""
    return (ParquetFormat(), OrcFormat(), AvroFormat(), *_added_formats())


@cache
def _added_formats() -> tuple[FileFormat, ...]:
    return tuple(added(Extension.FILE_FORMATS, name)() for name in added_names(Extension.FILE_FORMATS))
