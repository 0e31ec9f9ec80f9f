"""Planning: from a snapshot and its manifests to live files and splits, pruned by predicate."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence

from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError, SnapshotExpiredError
from storage_lib.file_store.kind.file_grouping import FileGrouping
from storage_lib.file_store.manifest.index_manifest import Bucket, DeletionFiles
from storage_lib.file_store.manifest.manifest_directory import ManifestDirectory
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta
from storage_lib.file_store.planning.file_pruning import FilePruning
from storage_lib.file_store.planning.live_files import LiveFiles
from storage_lib.file_store.planning.partition_totals import PartitionTotals, totals_by_partition
from storage_lib.file_store.planning.plan import DividedPlan, Plan
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.placing.partition import PartitionCodec

_REMEMBERED_SNAPSHOTS = 4
_FOLLOWED_SNAPSHOTS_MAX = 100
_LIVE_ENTRIES_MAX = 100_000
_CHEAP_ENTRIES_MAX = 2_000


class FileStoreScan:
    """Finds the files that make up a snapshot. Safe to use from several threads.

    The live files of the last few snapshots are cached and updated from commit to commit, so the cost of planning
    after a commit depends on its changes, not on the table's size. If a plan needs a small part of a table with many
    files, manifests of other partitions are not opened.
    """

    def __init__(
        self,
        *,
        snapshots: SnapshotHistory,
        manifests: ManifestDirectory,
        schemas: SchemaVersions,
        grouping: FileGrouping,
        partitions: PartitionCodec,
    ) -> None:
        self._snapshots = snapshots
        self._manifests = manifests
        self._schemas = schemas
        self.grouping = grouping
        self._partitions = partitions
        self._live: OrderedDict[int, LiveFiles] = OrderedDict()
        self._lock = threading.Lock()

    def plan(
        self,
        snapshot: Snapshot | None,
        *,
        partition_filter: Predicate | None = None,
        predicate: Predicate | None = None,
        buckets: Collection[int] | None = None,
        partitions: Collection[bytes] | None = None,
        only_compacted: bool = False,
    ) -> Plan:
        """Plan the files of ``snapshot`` that may have matching rows; empty if it is None (a table without a commit).

        ``partition_filter`` may use partition columns only; ``partitions`` are serialized. Files are skipped by
        partition, by bucket if the predicate fixes the bucket key, by the bounds of their keys, and by the bounds of
        their values if they hide no row of another file. Rows still have to be filtered. ``only_compacted`` skips
        level 0.

        Raises ``SnapshotExpiredError`` if the snapshot's metadata no longer exists, ``InvalidInputError`` for filters
        with unknown columns or values of other types.
        """
        pruning = self._pruning(
            partition_filter=partition_filter, predicate=predicate, buckets=buckets, partitions=partitions
        )
        if snapshot is None:
            return Plan(snapshot=None, entries=(), grouping=self.grouping)
        live = self._live_of(snapshot, lambda: pruning)
        entries = (entry for _, found in self._pruned(live, pruning, _level_min(only_compacted)) for entry in found)
        return Plan(snapshot=snapshot, entries=tuple(entries), grouping=self.grouping)

    def plan_divided(
        self,
        snapshot: Snapshot | None,
        *,
        partition_filter: Predicate | None = None,
        predicate: Predicate | None = None,
        only_compacted: bool = False,
    ) -> DividedPlan:
        """Plan as ``plan`` does, divided into files that need no merge and all others."""
        pruning = self._pruning(partition_filter=partition_filter, predicate=predicate)
        unmerged: list[ManifestEntry] = []
        merged: list[ManifestEntry] = []
        live = LiveFiles.empty() if snapshot is None else self._live_of(snapshot, lambda: pruning)
        for entries, found in self._pruned(live, pruning, _level_min(only_compacted)):
            alone = {file.identity for file in self.grouping.unmerged([entry.file for entry in entries])}
            for entry in found:
                (unmerged if entry.file.identity in alone else merged).append(entry)
        return DividedPlan(
            unmerged=Plan(snapshot=snapshot, entries=tuple(unmerged), grouping=self.grouping),
            merged=Plan(snapshot=snapshot, entries=tuple(merged), grouping=self.grouping),
        )

    def totals(self, plan: DividedPlan, columns: Sequence[str]) -> tuple[PartitionTotals, ...] | None:
        """Return the totals of a plan by partition, with the bounds of ``columns``; None if files have to be read."""
        return totals_by_partition(plan, columns, self._schemas)

    def live_files(self, snapshot: Snapshot | None, *, partitions: Collection[bytes] | None = None) -> LiveFiles:
        """Return all live files; with ``partitions``, the result need only be complete for those."""
        if snapshot is None:
            return LiveFiles.empty()
        return self._live_of(snapshot, lambda: self._pruning(partitions=partitions))

    def entries(
        self,
        snapshot: Snapshot | None,
        *,
        partitions: Collection[bytes] | None = None,
        partition_filter: Predicate | None = None,
    ) -> list[ManifestEntry]:
        """Return the live entries of exactly the matching partitions, in a fixed order; filters as in ``plan``."""
        pruning = self._pruning(partitions=partitions, partition_filter=partition_filter)
        if snapshot is None:
            return []
        live = self._live_of(snapshot, lambda: pruning)
        wanted = pruning.matching_partitions(live.partitions)
        return [
            entry
            for partition in sorted(wanted)
            for bucket in sorted(live.buckets_of(partition))
            for entry in live.of(partition, bucket)
        ]

    def delta(self, snapshot: Snapshot) -> tuple[ManifestEntry, ...]:
        """Return the entries that this snapshot alone added and deleted."""
        manifests = self._list(snapshot, snapshot.delta_manifest_list)
        return tuple(entry for entries in self._read(snapshot, manifests) for entry in entries)

    def changed_buckets(self, snapshot: Snapshot) -> set[Bucket]:
        """Return the buckets in which this snapshot alone added or deleted files, or changed deletion vectors.

        A restore may change the vectors alone. If the previous snapshot has expired, all buckets with vectors count as
        changed.
        """
        changed = {(entry.partition, entry.bucket) for entry in self.delta(snapshot)}
        try:
            before = self._deletion_files(self._snapshots.load(snapshot.id - 1)) if snapshot.id > 1 else {}
        except (NotFoundError, SnapshotExpiredError):
            before = {}
        after = self._deletion_files(snapshot)
        return changed | {each for each in {*before, *after} if before.get(each) != after.get(each)}

    def changelog(self, snapshot: Snapshot) -> tuple[ManifestEntry, ...]:
        """Return the changelog files of this snapshot; empty if it has none."""
        if snapshot.changelog_manifest_list is None:
            return ()
        manifests = self._list(snapshot, snapshot.changelog_manifest_list)
        return tuple(entry for entries in self._read(snapshot, manifests) for entry in entries)

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
        """Return the manifests of a snapshot, in commit order."""
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        return tuple(manifest for name in lists for manifest in self._list(snapshot, name))

    def matching_partitions(self, partitions: Collection[bytes], partition_filter: Predicate) -> set[bytes]:
        """Return the serialized partitions that match exactly."""
        return self._pruning(partition_filter=partition_filter).matching_partitions(partitions)

    def partition_text(self, partition: bytes) -> str:
        """Format a serialized partition for messages."""
        values = self._partitions.decode(partition)
        return ", ".join(f"{name}={value}" for name, value in values.items()) or "(none)"

    def _pruned(
        self, live: LiveFiles, pruning: FilePruning, level_min: int
    ) -> Iterator[tuple[Sequence[ManifestEntry], Sequence[ManifestEntry]]]:
        """Yield all entries of each bucket from ``level_min`` on, and those of them that may have matching rows."""
        for partition in sorted(pruning.matching_partitions(live.partitions)):
            for bucket in sorted(live.buckets_of(partition)):
                entries = [entry for entry in live.of(partition, bucket) if entry.file.level >= level_min]
                if entries and pruning.bucket_may_match(bucket, entries[0].total_buckets):
                    yield entries, pruning.files_that_may_match(entries)

    def _live_of(self, snapshot: Snapshot, new_pruning: Callable[[], FilePruning]) -> LiveFiles:
        return self._marked(snapshot, self._files_of(snapshot, new_pruning))

    def _files_of(self, snapshot: Snapshot, new_pruning: Callable[[], FilePruning]) -> LiveFiles:
        """Return the live files; the filter is only built if manifests have to be read."""
        is_in_history = self._is_in_history(snapshot)
        known = self._followed(snapshot) if is_in_history else None
        if known is not None:
            return known
        pruning = new_pruning()
        manifests = self.manifests(snapshot)
        # A DELETE is in the same partition and bucket as its ADD, so manifests of other buckets need not be read: the
        # result is complete for all that the pruning keeps.
        wanted = tuple(manifest for manifest in manifests if pruning.manifest_may_match(manifest))
        count, wanted_count = (sum(each.num_entries for each in some) for some in (manifests, wanted))
        # Complete live files can be cached and followed; not worth it if most of them are not wanted.
        complete = count <= _LIVE_ENTRIES_MAX and (count <= _CHEAP_ENTRIES_MAX or 2 * wanted_count > count)
        if not complete:
            manifests = wanted
        read = self._read(snapshot, manifests)
        live = LiveFiles.empty().apply(entry for entries in read for entry in entries)
        if complete and is_in_history:
            self._remember(snapshot.id, live)
        return live

    def _is_in_history(self, snapshot: Snapshot) -> bool:
        """Return whether the history has this very snapshot: a tagged one may be expired, or of another branch."""
        try:
            known = self._snapshots.load(snapshot.id)
        except (NotFoundError, SnapshotExpiredError):
            return False
        return known.delta_manifest_list == snapshot.delta_manifest_list

    def _followed(self, snapshot: Snapshot) -> LiveFiles | None:
        """Return cached live files, or advance cached ones by a few snapshots' changes; None if not possible."""
        with self._lock:
            if snapshot.id in self._live:
                self._live.move_to_end(snapshot.id)
                return self._live[snapshot.id]
            earlier = [known for known in self._live if known < snapshot.id]
            start = max(earlier, default=None)
            live = None if start is None else self._live[start]
        if start is None or live is None or snapshot.id - start > _FOLLOWED_SNAPSHOTS_MAX:
            return None
        try:
            for snapshot_id in range(start + 1, snapshot.id):
                live = live.apply(self.delta(self._snapshots.load(snapshot_id)))
        except (NotFoundError, SnapshotExpiredError):
            return None
        live = live.apply(self.delta(snapshot))
        self._remember(snapshot.id, live)
        return live

    def _remember(self, snapshot_id: int, live: LiveFiles) -> None:
        with self._lock:
            self._live[snapshot_id] = live
            while len(self._live) > _REMEMBERED_SNAPSHOTS:
                self._live.popitem(last=False)

    def _marked(self, snapshot: Snapshot, live: LiveFiles) -> LiveFiles:
        """Return the live files with their deletion vectors, which depend on the snapshot."""
        deletion_files = self._deletion_files(snapshot)
        return live.marked(deletion_files) if deletion_files else live

    def _deletion_files(self, snapshot: Snapshot) -> DeletionFiles:
        if snapshot.index_manifest is None:
            return {}
        try:
            return self._manifests.read_index(snapshot.index_manifest).deletion_files()
        except NotFoundError as error:
            raise self._missing_metadata(snapshot, error) from error

    def _list(self, snapshot: Snapshot, name: str) -> tuple[ManifestFileMeta, ...]:
        try:
            return self._manifests.read_list(name)
        except NotFoundError as error:
            raise self._missing_metadata(snapshot, error) from error

    def _read(self, snapshot: Snapshot, manifests: Sequence[ManifestFileMeta]) -> list[tuple[ManifestEntry, ...]]:
        try:
            return self._manifests.read_manifests(manifests)
        except NotFoundError as error:
            raise self._missing_metadata(snapshot, error) from error

    def _missing_metadata(self, snapshot: Snapshot, error: NotFoundError) -> SnapshotExpiredError | CorruptFileError:
        """Return the error for missing metadata: damage for the newest snapshot, which never expires; else expiry."""
        if snapshot.id == self._snapshots.latest_id():
            message = (
                f"snapshot {snapshot.id} is the newest and its metadata is gone ({error}): the table is damaged, or "
                "just being dropped. Restore that file from a backup, or read an older snapshot or tag into a new table"
            )
            return CorruptFileError(message)
        message = f"snapshot {snapshot.id} was expired, its metadata is gone ({error}): plan again from a newer one"
        return SnapshotExpiredError(message)

    def _pruning(
        self,
        *,
        partition_filter: Predicate | None = None,
        predicate: Predicate | None = None,
        buckets: Collection[int] | None = None,
        partitions: Collection[bytes] | None = None,
    ) -> FilePruning:
        schema = self._schemas.current
        strangers = () if partition_filter is None else sorted(partition_filter.columns - set(schema.partition_keys))
        if strangers:
            message = (
                f"{strangers[0]!r} is not a partition column; the table is partitioned by "
                f"({', '.join(schema.partition_keys)}). Name partitions by these only"
            )
            raise InvalidInputError(message)
        return FilePruning(
            schemas=self._schemas,
            grouping=self.grouping,
            partition_filter=None if partition_filter is None else partition_filter.validated(schema),
            predicate=None if predicate is None else predicate.validated(schema),
            buckets=buckets,
            partitions=partitions,
        )


def _level_min(only_compacted: bool) -> int:  # noqa: FBT001  the name says what it means
    return 1 if only_compacted else 0
