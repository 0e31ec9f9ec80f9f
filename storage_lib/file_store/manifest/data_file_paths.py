"""Where the files of manifest entries lie: it follows from partition, bucket and name, unless an entry says where."""

from __future__ import annotations

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.options.external_paths import io_path
from storage_lib.schema.placing.partition import PartitionCodec


class DataFilePaths:
    """Paths as storage knows them, also of files in data directories apart from the table's own."""

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
        """A data file and what belongs to it, which lies in the same directory; the data file is the first."""
        data_file = data_file_path(self._paths, self.partition_path(partition), bucket, file)
        if not file.extra_files:
            return [data_file]
        directory = data_file.rpartition("/")[0]
        return [data_file, *(f"{directory}/{name}" for name in file.extra_files)]


def data_file_path(paths: TablePaths, partition_path: str, bucket: int, file: DataFileMeta) -> str:
    """The path of one data file."""
    if file.external_path is not None:
        return io_path(file.external_path)
    return paths.data_file_path(partition_path, bucket, file.file_name)
