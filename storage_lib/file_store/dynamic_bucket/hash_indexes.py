"""Reads and writes the hash indexes of a table with dynamic buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from storage_lib.file_store.manifest.hash_index import HashIndexFile, decode_hashes, encode_hashes
from storage_lib.file_store.manifest.manifest_directory import ManifestDirectory
from storage_lib.file_store.scan import FileStoreScan
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.split import Split
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.options.external_paths import io_path
from storage_lib.schema.table_schema import BUCKET_UNAWARE


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHashes:
    """Hashes of the keys in each bucket of a partition; ``unindexed`` buckets have files but no index."""

    of_buckets: Mapping[int, npt.NDArray[np.int32]]
    unindexed: frozenset[int] = frozenset()


class HashIndexes:
    """``read_hashes`` computes the hashes of keys in data files, for buckets that were written without an index."""

    def __init__(
        self,
        *,
        environment: Environment,
        paths: TablePaths,
        manifests: ManifestDirectory,
        scan: FileStoreScan,
        read_hashes: Callable[[Split], npt.NDArray[np.int32]],
    ) -> None:
        self._environment = environment
        self._paths = paths
        self._manifests = manifests
        self._scan = scan
        self._read_hashes = read_hashes

    def of_partition(self, snapshot: Snapshot | None, partition: bytes) -> PartitionHashes:
        """Return the hashes of the keys in each bucket of a partition; empty if it has a fixed number of buckets.

        Raises ``CorruptFileError`` or ``NotFoundError`` for a damaged or missing index file.
        """
        if snapshot is None or self._scan.live_files(snapshot, partitions=(partition,)).bucket_count(partition) not in (
            None,
            BUCKET_UNAWARE,
        ):
            return PartitionHashes(of_buckets={})
        found: dict[int, npt.NDArray[np.int32]] = {}
        if snapshot.index_manifest is not None:
            for bucket, path in self._manifests.read_index(snapshot.index_manifest).hash_files(partition).items():
                named = path.external_path
                place = self._paths.index_path(path.file_name) if named is None else io_path(named)
                files = self._environment.file_io if named is None else self._environment.stores
                found[bucket] = decode_hashes(files.read_bytes(place), place)
        plan = self._scan.plan(snapshot, partitions=(partition,))
        unindexed: dict[int, list[npt.NDArray[np.int32]]] = {}
        for split in plan.splits():
            if split.bucket not in found:
                unindexed.setdefault(split.bucket, []).append(self._read_hashes(split))
        read = {bucket: np.unique(np.concatenate(hashes)) for bucket, hashes in unindexed.items()}
        return PartitionHashes(of_buckets=found | read, unindexed=frozenset(read))

    def write(self, hashes: npt.NDArray[np.int32]) -> HashIndexFile:
        """Write a durable index file of a bucket's hashes."""
        name = TablePaths.new_index_name(self._environment.new_name(), 0)
        path = self._paths.index_path(name)
        data = encode_hashes(hashes)
        with self._environment.file_io.open_output(path) as out:
            out.write(data)
        self._environment.file_io.sync([path])
        return HashIndexFile(file_name=name, size_bytes=len(data), hash_count=len(hashes))
