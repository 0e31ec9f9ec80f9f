"""Where the files of manifest entries lie: manifests don't say, it follows from partition, bucket and name."""

from __future__ import annotations

from collections.abc import Iterable

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.io.table_paths import TablePaths
from storage_lib.schema.partition import PartitionCodec


class DataFilePaths:
    """Files under an external path are left out: whoever put them there looks after them."""

    def __init__(self, paths: TablePaths, partitions: PartitionCodec) -> None:
        self._paths = paths
        self._partitions = partitions
        self._directories: dict[bytes, str] = {}

    def partition_path(self, partition: bytes) -> str:
        """``dt=2024-05-14/`` of a serialized partition; empty without partitions."""
        path = self._directories.get(partition)
        if path is None:
            path = self._directories[partition] = self._partitions.path(partition)
        return path

    def of(self, entry: ManifestEntry) -> list[str]:
        """The data file of an entry and what belongs to it."""
        return self.of_file(entry.partition, entry.bucket, entry.file)

    def of_file(self, partition: bytes, bucket: int, file: DataFileMeta) -> list[str]:
        """A data file and what belongs to it."""
        if file.external_path is not None:
            return []
        names: Iterable[str] = (file.file_name, *file.extra_files)
        path = self.partition_path(partition)
        return [self._paths.data_file_path(path, bucket, name) for name in names]
