"""Prints any file of a table as text: ``python -m storage_lib.dump FILE [--rows 10]``.

The kind of a file follows from its name (docs/format.md). Binary rows of metadata are shown in hex: the arity, then the
row in words of eight bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from storage_lib.errors import CorruptFileError, InvalidInputError, StorageError
from storage_lib.file_store.data_file.deletion_vector import INDEX_FILE_VERSION, read_deletion_vector
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot
from storage_lib.file_store.value_count.counted_format import COUNTED_SUFFIX
from storage_lib.format.avro_container import decode_container
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.schema.encoding.json_document import decode_json

_ROWS = 10
_JSON_NAMES = ("schema-", "consumer-", "stat-", "lease-", "created-from", "dropped")
_SNAPSHOT_NAMES = ("snapshot-", "tag-", "changelog-")
_AVRO_NAMES = ("manifest-", "index-manifest-")
_INDEX_NAME = "index-"
_TEXT_NAMES = ("LATEST", "EARLIEST", "beat-", "released-", "waiting-")


def main(arguments: list[str] | None = None) -> int:
    """Print one file; return 0, or 2 after printing the reason to standard error."""
    parser = argparse.ArgumentParser(prog="python -m storage_lib.dump", description="Print a file of a table as text.")
    parser.add_argument("file", help="path of a snapshot, schema, manifest, tag, data file, ...")
    parser.add_argument("--rows", type=int, default=_ROWS, help="rows of a data file to show (default 10)")
    given = parser.parse_args(arguments)
    try:
        for line in dump(LocalFileIO(), given.file, rows=given.rows):
            print(line)
    except StorageError as error:
        print(f"dump: {error}", file=sys.stderr)
        return 2
    return 0


def dump(files: FileIO, path: str, *, rows: int = _ROWS) -> Iterator[str]:
    """Yield the file's content as lines of text.

    Raises ``NotFoundError`` if it does not exist, ``InvalidInputError`` if its name is not that of a table's file, and
    ``CorruptFileError`` if its content does not match its name.
    """
    name = path.rpartition("/")[2]
    data = files.read_bytes(path)
    suffix = name.rpartition(".")[2].removesuffix(COUNTED_SUFFIX)
    if name.startswith(".") and name.endswith(".tmp"):
        message = (
            f"{path} is a temporary file of a writer that crashed: it is not part of the table, and can be deleted"
        )
        raise InvalidInputError(message)
    if suffix in ("parquet", "orc", "avro"):
        yield from _data_file(data, path, suffix, rows)
    elif name.startswith(_AVRO_NAMES):
        yield from _records(decode_container(data, path))
    elif name.startswith(_INDEX_NAME):
        yield from _deletion_vectors(data, path, rows)
    elif name.startswith(_SNAPSHOT_NAMES):
        decode_snapshot(data, path)
        yield from _json(data, path)
    elif name.startswith(_JSON_NAMES):
        yield from _json(data, path)
    elif name.startswith(_TEXT_NAMES):
        yield data.decode("utf-8", "replace").strip() or "(empty)"
    else:
        message = (
            f"{path} is not named like a file of a table: *.parquet, *.orc, *.avro, or a name that begins with "
            f"{', '.join(sorted((*_AVRO_NAMES, _INDEX_NAME, *_SNAPSHOT_NAMES, *_JSON_NAMES, *_TEXT_NAMES)))}"
        )
        raise InvalidInputError(message)


def indented(record: Mapping[str, Any], indent: str = "") -> str:
    """Format an Avro record as lines ``name  value``, nested records indented."""
    lines = []
    for name, value in record.items():
        nested = isinstance(value, Mapping)
        shown = "\n" + indented(value, indent + "  ") if nested else f" {_shown(value)}"
        lines.append(f"{indent}{name}{'' if nested else ' ' * max(0, 24 - len(indent) - len(name))}{shown}")
    return "\n".join(lines)


def _records(records: list[dict[str, Any]]) -> Iterator[str]:
    yield f"{len(records)} record(s)"
    for number, record in enumerate(records):
        yield f"--- {number}"
        yield indented(record)


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return " ".join([value[:4].hex(), *(value[start : start + 8].hex() for start in range(4, len(value), 8))])
    return json.dumps(value, default=str)


def _deletion_vectors(data: bytes, path: str, rows: int) -> Iterator[str]:
    source, offset = pa.BufferReader(data), len(INDEX_FILE_VERSION)
    while offset < len(data):
        positions = read_deletion_vector(source, offset, path)
        shown = ", ".join(map(str, positions[:rows].tolist()))
        yield f"from byte {offset}: {len(positions)} deleted row(s): {shown}{', ...' if len(positions) > rows else ''}"
        offset = source.tell()


def _json(data: bytes, path: str) -> Iterator[str]:
    document = decode_json(data, lambda parsed: parsed, lambda defect: f"{path} is not JSON: {defect}")
    yield json.dumps(document, indent=2, ensure_ascii=False)


def _data_file(data: bytes, path: str, suffix: str, rows: int) -> Iterator[str]:
    if suffix == "avro":
        records = decode_container(data, path)
        yield f"{len(records)} rows"
        for record in records[:rows]:
            yield json.dumps(record, default=str)
        return
    try:
        if suffix == "parquet":
            file = pq.ParquetFile(pa.BufferReader(data))
            described = f"{file.metadata.num_rows} rows in {file.metadata.num_row_groups} row group(s)"
            schema, table = file.schema_arrow, file.read().slice(0, rows)
        else:
            stripes = orc.ORCFile(pa.BufferReader(data))
            described = f"{stripes.nrows} rows in {stripes.nstripes} stripe(s)"
            schema, table = stripes.schema, stripes.read().slice(0, rows)
    except (pa.ArrowInvalid, OSError) as error:
        message = f"{path} can't be read as {suffix}: {error}"
        raise CorruptFileError(message) from error
    yield f"{described}, {len(data)} bytes"
    for field in schema:
        yield f"  {field.name:<24}{field.type}{'' if field.nullable else ' not null'}"
    for row in table.to_pylist():
        yield ", ".join(f"{column}={value}" for column, value in row.items())


if __name__ == "__main__":
    sys.exit(main())
