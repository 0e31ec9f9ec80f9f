"""Manifests and manifest lists, byte for byte as the format defines, and tolerant of other releases."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import pytest

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource, SimpleStats
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.manifest.manifest_file import (
    ManifestFileMeta,
    decode_manifest,
    describe_manifest,
    encode_manifest,
)
from storage_lib.file_store.manifest.manifest_list import decode_manifest_list, encode_manifest_list
from storage_lib.file_store.manifest.manifest_schemas import MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from storage_lib.format.avro_container import decode_container, encode_container
from tests.support.manifest_entries import entry, no_bounds

KEY_1 = bytes.fromhex("0000000100000000000000000100000000000000")
KEY_4 = bytes.fromhex("0000000100000000000000000400000000000000")
DAY = bytes.fromhex("0000000100000000000000000a00000010000000323032342d30352d3134000000000000")
STATS = SimpleStats(min_values=KEY_1, max_values=KEY_4, null_counts=(0,))

FULL = ManifestEntry(
    kind=FileKind.ADD,
    partition=DAY,
    bucket=0,
    total_buckets=2,
    file=DataFileMeta(
        file_name="data-7c08bc60-0.parquet",
        file_size=4294,
        row_count=3,
        min_key=KEY_1,
        max_key=KEY_4,
        key_stats=STATS,
        value_stats=SimpleStats(min_values=KEY_1, max_values=KEY_4, null_counts=(None,)),
        min_sequence_number=6,
        max_sequence_number=8,
        schema_id=0,
        level=5,
        extra_files=("data-7c08bc60-0.index",),
        creation_time_ms=1715648523456,
        delete_row_count=1,
        embedded_file_index=b"\x01\x02",
        file_source=FileSource.COMPACT,
        value_stats_cols=("id",),
        external_path="s3://elsewhere/data-7c08bc60-0.parquet",
        first_row_id=10,
        write_cols=("id",),
    ),
)


def test_every_field_survives_the_round_trip() -> None:
    bare = replace(
        FULL.file,
        extra_files=(),
        creation_time_ms=None,
        delete_row_count=None,
        embedded_file_index=None,
        file_source=None,
        value_stats_cols=None,
        external_path=None,
        first_row_id=None,
        write_cols=None,
    )
    entries = (FULL, replace(FULL, kind=FileKind.DELETE), replace(FULL, file=bare))
    assert decode_manifest(encode_manifest(entries), "manifest-x") == entries


def test_the_same_entries_give_the_same_bytes() -> None:
    assert encode_manifest([FULL]) == encode_manifest([FULL])


def test_the_top_level_fields_have_exactly_the_names_types_and_order_that_java_checks() -> None:
    fields = json.loads(MANIFEST_SCHEMA)["fields"]
    assert [field["name"] for field in fields] == [
        "_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_FILE",
    ]  # fmt: skip
    assert [field["type"] for field in fields[:5]] == ["int", "int", "bytes", "int", "int"]
    assert fields[5]["type"]["type"] == "record"


def test_a_file_has_the_twenty_fields_of_release_1_3() -> None:
    names = [field["name"] for field in json.loads(MANIFEST_SCHEMA)["fields"][5]["type"]["fields"]]
    assert names == [
        "_FILE_NAME", "_FILE_SIZE", "_ROW_COUNT", "_MIN_KEY", "_MAX_KEY", "_KEY_STATS", "_VALUE_STATS",
        "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID", "_LEVEL", "_EXTRA_FILES", "_CREATION_TIME",
        "_DELETE_ROW_COUNT", "_EMBEDDED_FILE_INDEX", "_FILE_SOURCE", "_VALUE_STATS_COLS", "_EXTERNAL_PATH",
        "_FIRST_ROW_ID", "_WRITE_COLS",
    ]  # fmt: skip


@pytest.mark.parametrize("schema", [MANIFEST_SCHEMA, MANIFEST_LIST_SCHEMA])
def test_every_union_has_null_first_and_a_null_default(schema: str) -> None:
    unions = [field for field in _fields(json.loads(schema)) if isinstance(field["type"], list)]
    assert unions
    for field in unions:
        assert field["type"][0] == "null", field
        assert field["default"] is None, field


def test_an_entry_is_spelled_as_the_format_says() -> None:
    (record,) = decode_container(encode_manifest([FULL]), "manifest-x")
    assert record["_VERSION"] == 2
    assert record["_KIND"] == 0
    assert record["_PARTITION"].hex() == DAY.hex()
    assert (record["_BUCKET"], record["_TOTAL_BUCKETS"]) == (0, 2)
    assert record["_FILE"]["_MIN_KEY"].hex() == "0000000100000000000000000100000000000000"
    assert record["_FILE"]["_KEY_STATS"] == {"_MIN_VALUES": KEY_1, "_MAX_VALUES": KEY_4, "_NULL_COUNTS": [0]}
    assert record["_FILE"]["_CREATION_TIME"] == 1715648523456
    assert (record["_FILE"]["_FILE_SOURCE"], record["_FILE"]["_DELETE_ROW_COUNT"]) == (1, 1)


def test_a_manifest_of_a_large_commit_has_several_blocks_and_loses_nothing() -> None:
    entries = tuple(entry(f"data-{index}.parquet", bucket=index % 4) for index in range(10_000))
    assert decode_manifest(encode_manifest(entries), "manifest-x") == entries


def test_an_empty_list_is_a_readable_file() -> None:
    assert decode_manifest_list(encode_manifest_list([]), "manifest-list-x") == ()


def test_a_list_says_what_is_in_its_manifests() -> None:
    entries = [
        entry("a", bucket=3, level=0),
        entry("b", bucket=1, level=5),
        entry("c", "DELETE", bucket=2, level=0),
    ]
    described = describe_manifest("manifest-x", 1234, entries, no_bounds)
    assert (described.num_added_files, described.num_deleted_files) == (2, 1)
    assert (described.min_bucket, described.max_bucket) == (1, 3)
    assert (described.min_level, described.max_level) == (0, 5)
    assert (described.min_row_id, described.max_row_id) == (None, None)
    assert decode_manifest_list(encode_manifest_list([described]), "manifest-list-x") == (described,)


@pytest.mark.parametrize("field_count", [16, 18, 21])
def test_manifests_of_other_releases_are_read(field_count: int) -> None:
    """0.9 wrote 16 fields of a file, 1.0 wrote 18, 2.1 writes 21: missing fields are null, unknown ones ignored."""
    schema = json.loads(MANIFEST_SCHEMA)
    file_fields = schema["fields"][5]["type"]["fields"]
    if field_count > len(file_fields):
        longs = ["null", {"type": "array", "items": "long"}]
        file_fields.append({"name": "_WRITE_COLS_SEQUENCES", "type": longs, "default": None})
    del file_fields[field_count:]
    (record,) = decode_container(encode_manifest([FULL]), "manifest-x")
    file = {**record["_FILE"], "_WRITE_COLS_SEQUENCES": [1]}
    data = encode_container(json.dumps(schema), [{**record, "_FILE": file}])
    (read,) = decode_manifest(data, "manifest-x")
    assert (read.file.file_name, read.file.file_source) == (FULL.file.file_name, FileSource.COMPACT)
    assert read.file.value_stats_cols == (None if field_count == 16 else ("id",))
    assert read.file.first_row_id == (10 if field_count == 21 else None)


def test_a_list_of_an_old_release_has_no_bounds() -> None:
    schema = json.loads(MANIFEST_LIST_SCHEMA)
    del schema["fields"][7:]
    record = {
        "_VERSION": 2,
        "_FILE_NAME": "manifest-x",
        "_FILE_SIZE": 10,
        "_NUM_ADDED_FILES": 1,
        "_NUM_DELETED_FILES": 0,
        "_PARTITION_STATS": {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": None},
        "_SCHEMA_ID": 0,
    }
    (read,) = decode_manifest_list(encode_container(json.dumps(schema), [record]), "manifest-list-x")
    assert read == ManifestFileMeta(
        file_name="manifest-x",
        file_size=10,
        num_added_files=1,
        num_deleted_files=0,
        partition_stats=SimpleStats(min_values=bytes(12), max_values=bytes(12), null_counts=()),
        schema_id=0,
    )


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_other_codecs_are_read(codec: str) -> None:
    (record,) = decode_container(encode_manifest([FULL]), "manifest-x")
    out = io.BytesIO()
    fastavro.writer(out, json.loads(MANIFEST_SCHEMA), [record], codec=codec)
    assert decode_manifest(out.getvalue(), "manifest-x") == (FULL,)


def test_an_unknown_codec_is_named() -> None:
    data = encode_manifest([FULL]).replace(b"zstandard", b"snappily9")
    with pytest.raises(CorruptFileError, match="manifest-x is compressed with 'snappily9'"):
        decode_manifest(data, "manifest-x")


def test_a_newer_format_version_is_refused() -> None:
    (record,) = decode_container(encode_manifest([FULL]), "manifest-x")
    data = encode_container(MANIFEST_SCHEMA, [{**record, "_VERSION": 3}])
    with pytest.raises(CorruptFileError, match="version 3"):
        decode_manifest(data, "manifest-x")


def test_a_file_that_was_cut_short_anywhere_is_refused() -> None:
    data = encode_manifest([FULL, replace(FULL, bucket=1)])
    for length in range(len(data)):
        try:
            read = decode_manifest(data[:length], "manifest-x")
        except CorruptFileError as error:
            assert "manifest-x" in str(error)  # noqa: PT017  the loop needs both outcomes
        else:
            # Cut exactly between the header and the first block, a container is complete and empty.
            assert read == ()


def _fields(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [field for each in schema for field in _fields(each)]
    if not isinstance(schema, dict):
        return []
    nested = [field for field in schema.get("fields", []) for field in (field, *_fields(field["type"]))]
    return [*nested, *_fields(schema.get("items"))]
