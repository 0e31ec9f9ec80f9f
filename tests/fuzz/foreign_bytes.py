"""Decoders of bytes from other programs: for invalid input they may only raise their declared errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import cast

import numpy as np
import pyarrow as pa

from storage_lib.errors import CorruptFileError, InvalidInputError, StorageError
from storage_lib.file_store.data_file.deletion_vector import encode_index_file, read_deletion_vector
from storage_lib.file_store.manifest.index_manifest import decode_index_manifest
from storage_lib.file_store.manifest.manifest_file import decode_manifest
from storage_lib.file_store.manifest.manifest_list import decode_manifest_list
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot
from storage_lib.log_store.codec.corrupt_records import decode_but_corrupt
from storage_lib.log_store.codec.debezium_avro import DebeziumAvro
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.log_store.codec.log_codec import ChangeDecoder
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.schema.options.table_options import ChangelogMode
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.type_spelling import parse_type
from tests.fuzz.damage import damaged
from tests.fuzz.damaged_tables import prepared
from tests.support.kept_schemas import KeptSchemas

SOURCE = "the file that is damaged"


def fuzz(decode: Callable[[bytes], object], sound: bytes, chance: random.Random) -> None:
    """Decode damaged bytes; errors other than the decoder's own propagate."""
    data = damaged(sound, chance)
    try:
        decode(data)
    except (CorruptFileError, InvalidInputError) as error:
        if SOURCE not in str(error):
            message = f"names no file: {error}"
            raise AssertionError(message) from error


def manifest(chance: random.Random) -> None:
    """Fuzz manifests, manifest lists and index manifests."""
    kind = chance.choice(("/manifest-list-", "/index-manifest-", "/manifest-"))
    decode = {
        "/manifest-list-": decode_manifest_list,
        "/index-manifest-": decode_index_manifest,
        "/manifest-": decode_manifest,
    }[kind]
    files = prepared(vectors=True, file_format="parquet").files
    paths = [path for path in sorted(files) if kind in path and (kind != "/manifest-" or "-list-" not in path)]
    fuzz(lambda data: decode(data, SOURCE), files[chance.choice(paths)], chance)


def snapshot(chance: random.Random) -> None:
    """Fuzz snapshots' JSON."""
    files = prepared(vectors=True, file_format="parquet").files
    paths = [path for path in sorted(files) if "/snapshot-" in path]
    fuzz(lambda data: decode_snapshot(data, SOURCE), files[chance.choice(paths)], chance)


def schema(chance: random.Random) -> None:
    """Fuzz schemas' JSON; the caller adds the file's name."""
    files = prepared(vectors=True, file_format="parquet").files
    path = chance.choice([path for path in sorted(files) if "/schema-" in path])

    def decode(data: bytes) -> None:
        try:
            TableSchema.from_json(data)
        except (CorruptFileError, InvalidInputError) as error:
            raise type(error)(f"{SOURCE}: {error}") from error

    fuzz(decode, files[path], chance)


def deletion_vector(chance: random.Random) -> None:
    """Fuzz index files; their offset is also external input."""
    vectors = {"a": np.sort(np.array(chance.sample(range(5_000), chance.randrange(1, 200)), np.int64))}
    data, ranges = encode_index_file(vectors)
    offset = ranges["a"].offset if chance.randrange(4) else chance.choice((-1, 0, 2, len(data), 2**40))
    fuzz(lambda found: read_deletion_vector(pa.BufferReader(found), offset, SOURCE), data, chance)


@cache
def _codecs() -> dict[str, tuple[ChangeDecoder, tuple[bytes, ...]]]:
    types = {"id": "INT", "name": "STRING", "price": "DECIMAL(10, 2)", "at": "TIMESTAMP(3)", "tags": "ARRAY<STRING>"}
    columns = [(name, parse_type(spelled)) for name, spelled in types.items()]
    of = new_table_schema(columns, primary_keys=("id",), options={"bucket": "1"}, time_millis=0)
    rows = pa.RecordBatch.from_pylist(
        [{"id": number, "name": "x" * number, "price": None, "at": None, "tags": ["a", None]} for number in range(5)],
        of.arrow_schema,
    )
    json = DebeziumJson.for_table(of, ChangelogMode.ALL)
    avro = DebeziumAvro(of, cast("SchemaRegistry", KeptSchemas()), "shop.orders")
    return {
        codec.name: (codec, tuple(value.as_py() for part in codec.encode(rows, kinds) for value in part.values))
        for codec in (json, avro)
        for kinds in (pa.array([0, 0, 2, 3, 0], pa.int8()),)
    }


def change(chance: random.Random) -> None:
    """Fuzz records of a log: each damaged one is skipped or decoded as a change, and all intact ones are returned."""
    codec, values = _codecs()[chance.choice(sorted(_codecs()))]
    records = [damaged(value, chance) if chance.randrange(3) == 0 else value for value in values]
    told: list[int] = []
    sound = [index for index, value in enumerate(values) if records[index] == value]
    found = decode_but_corrupt(
        codec,
        pa.array(records, pa.binary()),
        pa.nulls(len(records), pa.binary()),
        lambda index, _: told.append(index),
    )
    assert not set(told) & set(sound)
    assert set(sound) <= {int(index) for index in found.record_indices}


TARGETS: dict[str, Callable[[random.Random], None]] = {
    each.__name__: each for each in (manifest, snapshot, schema, deletion_vector, change)
}
__all__ = ["SOURCE", "TARGETS", "StorageError"]
