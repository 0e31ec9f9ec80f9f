"""A snapshot's JSON: reading that of other engines, and writing what they can read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot, encode_snapshot

FROM_SPARK = b"""{"version":3,"uuid":"1ca9ddfb","id":2,"schemaId":0,
 "baseManifestList":"manifest-list-e1cbb8ab-2","baseManifestListSize":1108,
 "deltaManifestList":"manifest-list-e1cbb8ab-3","deltaManifestListSize":1110,
 "changelogManifestList":"manifest-list-e1cbb8ab-4","changelogManifestListSize":1108,
 "commitUser":"56bfbd10","commitIdentifier":9223372036854775807,"commitKind":"COMPACT","timeMillis":1795228227200,
 "totalRecordCount":2,"deltaRecordCount":0,"changelogRecordCount":2,"nextRowId":0,"operation":"WRITE"}"""

SNAPSHOT = Snapshot(
    id=7,
    schema_id=1,
    base_manifest_list="manifest-list-a-0",
    base_manifest_list_size=1085,
    delta_manifest_list="manifest-list-b-0",
    delta_manifest_list_size=1110,
    commit_user="stream",
    commit_identifier=41,
    commit_kind=CommitKind.APPEND,
    time_millis=1795228227200,
    total_record_count=12,
    delta_record_count=4,
    watermark=1795228227000,
    properties={"dynamic-table.log.offsets": '{"0": 17}'},
    uuid="1ca9ddfb",
)


def test_a_snapshot_that_spark_wrote_is_read() -> None:
    snapshot = decode_snapshot(FROM_SPARK, "snapshot-2")
    assert snapshot.id == 2
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert snapshot.changelog_manifest_list == "manifest-list-e1cbb8ab-4"
    assert (snapshot.base_manifest_list_size, snapshot.next_row_id, snapshot.operation) == (1108, 0, "WRITE")
    assert snapshot.properties == {}
    assert snapshot.index_manifest is None


def test_what_was_read_is_written_back_key_for_key() -> None:
    assert json.loads(encode_snapshot(decode_snapshot(FROM_SPARK, "snapshot-2"))) == json.loads(FROM_SPARK)


def test_a_snapshot_survives_the_round_trip() -> None:
    assert decode_snapshot(encode_snapshot(SNAPSHOT), "snapshot-7") == SNAPSHOT


def test_keys_come_in_the_order_of_the_format_and_null_ones_are_left_out() -> None:
    assert list(json.loads(encode_snapshot(SNAPSHOT))) == [
        "version",
        "uuid",
        "id",
        "schemaId",
        "baseManifestList",
        "baseManifestListSize",
        "deltaManifestList",
        "deltaManifestListSize",
        "commitUser",
        "commitIdentifier",
        "commitKind",
        "timeMillis",
        "totalRecordCount",
        "deltaRecordCount",
        "watermark",
        "properties",
    ]


def test_every_key_that_readers_insist_on_is_written() -> None:
    bare = replace(SNAPSHOT, watermark=None, properties={}, uuid=None, base_manifest_list_size=None)
    required = {
        "version", "id", "schemaId", "baseManifestList", "deltaManifestList", "commitUser", "commitIdentifier",
        "commitKind", "timeMillis", "totalRecordCount", "deltaRecordCount",
    }  # fmt: skip
    assert required <= set(json.loads(encode_snapshot(bare)))


def test_keys_of_other_releases_are_carried() -> None:
    document = {**json.loads(FROM_SPARK), "logOffsets": {"0": 4}, "tagCreateTime": [2026, 11, 21]}
    snapshot = decode_snapshot(json.dumps(document).encode(), "tag-x")
    assert snapshot.unknown == {"logOffsets": {"0": 4}, "tagCreateTime": [2026, 11, 21]}
    assert json.loads(encode_snapshot(snapshot)) == document


def test_nulls_that_old_releases_wrote_count_as_missing() -> None:
    nulls = {"changelogManifestList": None, "totalRecordCount": None, "indexManifest": None}
    document = {**json.loads(FROM_SPARK), **nulls}
    snapshot = decode_snapshot(json.dumps(document).encode(), "snapshot-2")
    assert snapshot.changelog_manifest_list is None
    assert snapshot.total_record_count == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"commitKind": "FOO"}, "'FOO'"),
        ({"id": "two"}, "'id'"),
        ({"commitUser": None}, "'commitUser'"),
    ],
)
def test_a_wrong_key_is_named_with_its_file(change: dict[str, object], words: str) -> None:
    document = {**json.loads(FROM_SPARK), **change}
    with pytest.raises(CorruptFileError, match=f"snapshot-2.*{words}"):
        decode_snapshot(json.dumps(document).encode(), "snapshot-2")


@pytest.mark.parametrize("data", [b"", b"[]", b'{"id":'])
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="snapshot-2"):
        decode_snapshot(data, "snapshot-2")
