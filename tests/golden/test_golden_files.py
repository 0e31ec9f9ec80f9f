"""Golden files of earlier releases, which users have, and bytes that must not change."""

from __future__ import annotations

import io
from pathlib import Path

import fastavro
import pytest

from storage_lib.file_store.manifest.manifest_file import decode_manifest, encode_manifest
from storage_lib.file_store.manifest.manifest_list import decode_manifest_list, encode_manifest_list
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot, encode_snapshot
from storage_lib.format.avro_container import decode_container
from tests.interop.table_cases import TABLES
from tests.support.golden_kinds import KINDS, TAG, expected, golden_kind, names_of, shown, slug
from tests.support.golden_tables import GOLDEN, ROWS, golden_table

KIND_RELEASES = sorted(path.name for path in KINDS.iterdir())
RELEASES = sorted(path.name for path in (GOLDEN / "tables").iterdir())


def files_of(release: str, pattern: str) -> list[Path]:
    return sorted((GOLDEN / "tables" / release).glob(pattern))


@pytest.mark.parametrize("release", RELEASES)
def test_tables_of_every_release_are_read_at_every_snapshot(release: str) -> None:
    table = golden_table(release)
    assert table.store.snapshots.latest_id() == max(ROWS)
    for snapshot_id, rows in ROWS.items():
        assert table.rows(table.store.snapshots.load(snapshot_id)) == sorted(rows, key=repr)
    found = table.store.snapshots.find_commit("stream", 1)
    assert found is not None
    assert found.properties == {"offsets": '{"0": 3}'}


@pytest.mark.parametrize("release", KIND_RELEASES)
def test_tables_of_every_kind_show_what_they_showed_when_they_were_written(release: str) -> None:
    for name in names_of(release):
        table = golden_kind(release, name)
        assert {TAG: shown(table, TAG), "now": shown(table)} == expected(release, name), name


def test_every_kind_of_table_has_its_golden_table() -> None:
    assert {slug(name) for name in TABLES} <= {name for release in KIND_RELEASES for name in names_of(release)}


def test_a_snapshot_is_written_as_it_always_was() -> None:
    for path in files_of("v1", "snapshot/snapshot-*"):
        assert encode_snapshot(decode_snapshot(path.read_bytes(), path.name)) == path.read_bytes()


def test_a_manifest_is_written_as_it_always_was() -> None:
    """Compare schema and records instead of the compressed bytes, which depend on the zstandard release."""
    for path in files_of("v1", "manifest/manifest-v1-*"):
        data = path.read_bytes()
        again = encode_manifest(decode_manifest(data, path.name))
        assert decode_container(again, path.name) == decode_container(data, path.name)
        assert header_of(again) == header_of(data)


def test_a_manifest_list_is_written_as_it_always_was() -> None:
    for path in files_of("v1", "manifest/manifest-list-*"):
        data = path.read_bytes()
        again = encode_manifest_list(decode_manifest_list(data, path.name))
        assert decode_container(again, path.name) == decode_container(data, path.name)
        assert header_of(again) == header_of(data)


def header_of(data: bytes) -> object:
    """Return codec and schema, read by an independent library; without the newer files' mark."""
    stream = io.BytesIO(data)
    assert stream.read(4) == b"Obj\x01"
    header = fastavro.schemaless_reader(stream, {"type": "map", "values": "bytes"}, None)
    assert isinstance(header, dict)
    return {key: value for key, value in header.items() if key != "dynamic-table.sync"}
