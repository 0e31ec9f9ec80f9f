"""Paths of manifest entries' files: given by partition, bucket and name, unless the entry has a path of its own."""

from __future__ import annotations

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.options.external_paths import io_path
from storage_lib.schema.placing.partition import PartitionCodec


class DataFilePaths:
    """Computes storage paths, including those of files in external data directories."""

    def __init__(self, paths: TablePaths, partitions: PartitionCodec) -> None:
        self._paths = paths
        self._partitions = partitions
        self._directories: dict[bytes, str] = {}

    def partition_path(self, partition: bytes) -> str:
        """Return the directory of a serialized partition, ``dt=2024-05-14/``; empty without partitions."""
        path = self._directories.get(partition)
        if path is None:
            path = self._directories[partition] = self._partitions.path(partition)
        return path

    def of(self, entry: ManifestEntry) -> list[str]:
        """Return the data file of an entry, followed by its extra files."""
        return self.of_file(entry.partition, entry.bucket, entry.file)

    def of_file(self, partition: bytes, bucket: int, file: DataFileMeta) -> list[str]:
        """Return a data file, followed by its extra files, which are in the same directory."""
        data_file = data_file_path(self._paths, self.partition_path(partition), bucket, file)
        if not file.extra_files:
            return [data_file]
        directory = data_file.rpartition("/")[0]
        return [data_file, *(f"{directory}/{name}" for name in file.extra_files)]


def data_file_path(paths: TablePaths, partition_path: str, bucket: int, file: DataFileMeta) -> str:
    """Return the path of one data file."""
    if file.external_path is not None:
        return io_path(file.external_path)
    return paths.data_file_path(partition_path, bucket, file.file_name)
