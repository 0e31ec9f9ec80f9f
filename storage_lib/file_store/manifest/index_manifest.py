"""Codec of the index manifest: every index file of a table at one snapshot (docs/format.md, 1.13).

Only deletion vectors and hash indexes are interpreted; records of other kinds, and fields of other releases, are
preserved unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.data_file.deletion_vector import DeletionFile, DeletionRange
from storage_lib.file_store.manifest.hash_index import HASH, HashIndexChange
from storage_lib.file_store.manifest.manifest_entry import FileKind
from storage_lib.file_store.manifest.manifest_schemas import INDEX_FORMAT_VERSION, INDEX_MANIFEST_SCHEMA
from storage_lib.format.avro_container import Record, container_schema, decode_container, encode_container

DELETION_VECTORS = "DELETION_VECTORS"
_RANGES = "_DELETIONS_VECTORS_RANGES"

Bucket: TypeAlias = tuple[bytes, int]
"""Serialized partition and bucket number."""

DeletionFiles: TypeAlias = Mapping[Bucket, Mapping[str, DeletionFile]]
"""Deletion vectors by bucket and name of the data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPath:
    """Location of an index file: below the table, unless another engine put it elsewhere."""

    file_name: str
    external_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexManifest:
    """Records of an index manifest, and the Avro schema that they are written with."""

    schema_json: str
    records: tuple[Record, ...]

    @property
    def file_names(self) -> list[str]:
        """Names of its index files."""
        return [record["_FILE_NAME"] for record in self.records]

    @property
    def index_paths(self) -> list[IndexPath]:
        """Names and locations of its index files."""
        return [
            IndexPath(file_name=record["_FILE_NAME"], external_path=record.get("_EXTERNAL_PATH"))
            for record in self.records
        ]

    def deletion_files(self) -> DeletionFiles:
        """Return the location of every data file's deletion vector, if it has one."""
        found: dict[Bucket, dict[str, DeletionFile]] = {}
        for record in self.records:
            if record["_INDEX_TYPE"] == DELETION_VECTORS:
                of_bucket = found.setdefault((record["_PARTITION"], record["_BUCKET"]), {})
                for each in _ranges(record):
                    of_bucket[each["f0"]] = DeletionFile(
                        file_name=record["_FILE_NAME"],
                        offset=each["f1"],
                        row_count=each.get("_CARDINALITY"),
                        external_path=record.get("_EXTERNAL_PATH"),
                    )
        return found

    def hash_files(self, partition: bytes) -> Mapping[int, IndexPath]:
        """Return the hash index files of a partition, by bucket."""
        return {
            record["_BUCKET"]: IndexPath(file_name=record["_FILE_NAME"], external_path=record.get("_EXTERNAL_PATH"))
            for record in self.records
            if record["_INDEX_TYPE"] == HASH and record["_PARTITION"] == partition
        }

    def without_hashes(self, partitions: Collection[bytes]) -> IndexManifest:
        """Return the manifest without the hash indexes of these partitions."""
        return replace(
            self,
            records=tuple(
                record
                for record in self.records
                if record["_INDEX_TYPE"] != HASH or record["_PARTITION"] not in partitions
            ),
        )

    def with_hashes(self, changes: Mapping[Bucket, HashIndexChange]) -> IndexManifest:
        """Return the manifest with new hash indexes instead of the previous ones of those buckets or partitions."""
        changed = self.without_hashes(
            {partition for (partition, _), each in changes.items() if each.replaces_partition}
        )
        files = {bucket: each.file for bucket, each in changes.items() if each.file is not None}
        retained = (
            record
            for record in changed.records
            if record["_INDEX_TYPE"] != HASH or (record["_PARTITION"], record["_BUCKET"]) not in files
        )
        added = (
            {
                "_VERSION": INDEX_FORMAT_VERSION,
                "_KIND": int(FileKind.ADD),
                "_PARTITION": partition,
                "_BUCKET": bucket,
                "_INDEX_TYPE": HASH,
                "_FILE_NAME": file.file_name,
                "_FILE_SIZE": file.size_bytes,
                "_ROW_COUNT": file.hash_count,
                _RANGES: None,
            }
            for (partition, bucket), file in files.items()
        )
        return replace(self, records=(*retained, *added))

    def without(self, deleted: Mapping[Bucket, Collection[str]]) -> IndexManifest:
        """Return the manifest without the vectors of these data files; itself if it has none of them."""
        records: list[Record] = []
        for record in self.records:
            names = deleted.get((record.get("_PARTITION", b""), record.get("_BUCKET", 0)), ())
            ranges = _ranges(record)
            retained = [each for each in ranges if each["f0"] not in names]
            if len(retained) == len(ranges):
                records.append(record)
            elif retained:
                records.append({**record, _RANGES: retained})
        return (
            self
            if records == list(self.records)
            else IndexManifest(schema_json=self.schema_json, records=tuple(records))
        )

    def with_names(self, renamed: Mapping[Bucket, Mapping[str, str]]) -> IndexManifest:
        """Return the manifest with vectors of some data files under new file names; itself if none has a vector."""
        records: list[Record] = []
        for record in self.records:
            names = renamed.get((record.get("_PARTITION", b""), record.get("_BUCKET", 0)), {})
            ranges = [
                None if each is None else {**each, "f0": names.get(each["f0"], each["f0"])}
                for each in record.get(_RANGES) or ()
            ]
            is_touched = any(each["f0"] in names for each in _ranges(record))
            records.append({**record, _RANGES: ranges} if is_touched else record)
        return self if records == list(self.records) else replace(self, records=tuple(records))

    def with_files(self, copies: Mapping[str, str]) -> IndexManifest:
        """Return the manifest with index files replaced by copies in the table, by name; itself without copies."""
        records: list[Record] = []
        for record in self.records:
            name = copies.get(record["_FILE_NAME"])
            elsewhere = {"_EXTERNAL_PATH": None} if "_EXTERNAL_PATH" in record else {}
            records.append(record if name is None else {**record, "_FILE_NAME": name, **elsewhere})
        return replace(self, records=tuple(records)) if copies else self

    def with_vectors(
        self, bucket: Bucket, index_file: str | None, size_bytes: int, ranges: Mapping[str, DeletionRange]
    ) -> IndexManifest:
        """Return the manifest with these vectors instead of the bucket's; none if ``index_file`` is None."""
        records = [
            record
            for record in self.records
            if record["_INDEX_TYPE"] != DELETION_VECTORS or (record["_PARTITION"], record["_BUCKET"]) != bucket
        ]
        if index_file is not None:
            records.append(
                {
                    "_VERSION": INDEX_FORMAT_VERSION,
                    "_KIND": int(FileKind.ADD),
                    "_PARTITION": bucket[0],
                    "_BUCKET": bucket[1],
                    "_INDEX_TYPE": DELETION_VECTORS,
                    "_FILE_NAME": index_file,
                    "_FILE_SIZE": size_bytes,
                    "_ROW_COUNT": len(ranges),
                    _RANGES: [
                        {"f0": name, "f1": each.offset, "f2": each.length, "_CARDINALITY": each.row_count}
                        for name, each in ranges.items()
                    ],
                }
            )
        return IndexManifest(schema_json=self.schema_json, records=tuple(records))


NO_INDEXES = IndexManifest(schema_json=INDEX_MANIFEST_SCHEMA, records=())
"""Index manifest of a table without index files."""


def encode_index_manifest(manifest: IndexManifest) -> bytes:
    """Return the content of the file."""
    return encode_container(manifest.schema_json, manifest.records)


def decode_index_manifest(data: bytes, source: str) -> IndexManifest:
    """Decode an index manifest; raises ``CorruptFileError`` naming ``source`` if it is not one."""
    manifest = IndexManifest(schema_json=container_schema(data, source), records=tuple(decode_container(data, source)))
    try:
        "".join(
            str.__str__(record.get(key, "")) for record in manifest.records for key in ("_FILE_NAME", "_INDEX_TYPE")
        )
        if all("_INDEX_TYPE" in record for record in manifest.records):
            manifest.deletion_files()
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        message = f"{source} is an Avro file but not an index manifest: {error!r}"
        raise CorruptFileError(message) from error
    return manifest


def _ranges(record: Record) -> list[Mapping[str, Any]]:
    return [each for each in record.get(_RANGES) or () if each is not None]
