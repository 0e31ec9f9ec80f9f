"""Expiry of old snapshots and the files only they need; data of the newest snapshot never expires.

If the table's options retain changelogs for longer than snapshots, the changelog of an expired snapshot is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from storage_lib.errors import InvalidInputError, NotFoundError, SnapshotExpiredError, note_outcome
from storage_lib.file_store.cleanup.file_deletion import FileDeletion
from storage_lib.file_store.cleanup.references import FileReferences, Files
from storage_lib.file_store.committing.snapshot_view import SnapshotView
from storage_lib.file_store.manifest.manifest_entry import FileKind
from storage_lib.file_store.snapshot.changelog_history import ChangelogHistory
from storage_lib.file_store.snapshot.consumer_directory import ConsumerDirectory
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.io.environment import Clock

_SECONDS_UNCHECKED = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireResult:
    """Result of an expiry; ``earliest_id`` is the oldest snapshot kept, None for a table without a commit."""

    snapshot_count: int = 0
    data_file_count: int = 0
    manifest_count: int = 0
    earliest_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogRetention:
    """How many changelogs are retained, at least and at most, and for how many milliseconds."""

    count_min: int
    count_max: int
    time_ms: int


class _StillThere:
    """Checks that a table was not dropped and recreated, as it may be while this process is suspended.

    A new table has snapshots of the same numbers.
    """

    def __init__(self, check_table: Callable[[], None], clock: Clock) -> None:
        self._check_table = check_table
        self._clock = clock
        self._checked_at = clock.monotonic()

    def check(self) -> None:
        """Raise ``NotFoundError`` if it was."""
        at = self._clock.monotonic()
        self._check_table()
        self._checked_at = at

    def check_if_late(self) -> None:
        """Check again if the last check was a while ago."""
        if self._clock.monotonic() - self._checked_at > _SECONDS_UNCHECKED:
            self.check()


class FileStoreExpire:
    """Expires the oldest snapshots, never one in the middle.

    0. If changelogs are retained for longer, copy the snapshots that are about to expire to the changelog directory.
    1. Choose the first snapshot to keep, F. Tags and branches protect their files, consumers every snapshot they have
       yet to read.
    2. Store the commits of the snapshots below F (``ExpiredCommits``). Write F into EARLIEST: from now on every
       snapshot below F counts as expired, even while its files exist. If a faster expiry has moved EARLIEST further
       meanwhile, start over from there.
    3. If the table has a view that has to stay at an expired snapshot, tag it. Drop the other expired snapshots from
       the view. Then delete the data files that snapshots up to F removed, unless something still needs them
       (``references``).
    4. Delete the manifests and lists that only expired snapshots name.
    5. Delete the expired snapshot files, oldest first. While one exists, its cleanup may be unfinished: the next run
       completes it after a crash, and never deletes a file of a snapshot that still counts. Then delete older lists of
       commits.
    """

    def __init__(
        self,
        *,
        snapshots: SnapshotHistory,
        consumers: ConsumerDirectory,
        references: FileReferences,
        deletion: FileDeletion,
        check_table: Callable[[], None],
        changelogs: ChangelogHistory,
        changelog_retention: ChangelogRetention | None,
        commit_retention_ms: int,
        clock: Clock,
        newest_view: Callable[[], SnapshotView | None],
    ) -> None:
        """``changelog_retention`` is None if changelogs expire with their snapshots.

        ``newest_view`` returns the view that the table's newest schema asks for, None if it asks for none.
        """
        self._newest_view = newest_view
        self._commit_retention_ms = commit_retention_ms
        self._changelogs = changelogs
        self._changelog_retention = changelog_retention
        self._clock = clock
        self._snapshots = snapshots
        self._consumers = consumers
        self._references = references
        self._deletion = deletion
        self._check_table = check_table

    def expire(
        self,
        *,
        retain_min: int = 1,
        retain_max: int | None = None,
        older_than_millis: int | None = None,
        snapshot_count_max: int | None = None,
        keep_from: int | None = None,
    ) -> ExpireResult:
        """Expire snapshots made before ``older_than_millis`` (epoch), and all beyond the newest ``retain_max``.

        The newest ``retain_min`` are always kept, and so are snapshots from the id ``keep_from`` on and those that a
        consumer has yet to read.
        ``snapshot_count_max`` limits how many snapshots one run expires. Without age and ``retain_max`` nothing new
        expires, but leftovers of an interrupted run are cleaned up. Raises ``InvalidInputError`` for counts below 1.
        """
        for name, count in (("retain_min", retain_min), ("retain_max", retain_max)):
            if count is not None and count < 1:
                message = f"{name} is {count}, but at least the newest snapshot has to stay: give 1 or more"
                raise InvalidInputError(message)
        still_there = _StillThere(self._check_table, self._clock)
        while True:
            still_there.check()
            earliest_id = self._snapshots.earliest_id()
            if earliest_id is None:
                return ExpireResult()
            lists_before = self._snapshots.lists_of_commits()
            latest_id = self._snapshots.latest_id() or earliest_id
            try:
                first_retained = self._first_retained(
                    range(earliest_id, latest_id + 1), retain_min, retain_max or latest_id, older_than_millis
                )
                if keep_from is not None:
                    first_retained = min(first_retained, max(keep_from, earliest_id))
                if snapshot_count_max is not None:
                    first_retained = min(first_retained, earliest_id + snapshot_count_max)
                return self._expire_up_to(first_retained, latest_id, lists_before, still_there)
            except (NotFoundError, SnapshotExpiredError):
                # A concurrent expiry has removed more: start over with the remaining snapshots.
                if self._snapshots.earliest_id() == earliest_id:
                    raise

    def _expire_up_to(
        self, first_retained: int, latest_id: int, lists_before: frozenset[str], still_there: _StillThere
    ) -> ExpireResult:
        result = self._expire_below(first_retained, lists_before, still_there)
        if self._changelog_retention is not None:
            self._expire_changelogs(latest_id, self._changelog_retention)
        return result

    def _first_retained(self, ids: range, retain_min: int, retain_max: int, older_than_millis: int | None) -> int:
        newest = ids[-1]
        stop = max(ids[0], min(newest + 1 - retain_min, *self._next_of_consumers(), newest))
        first = max(ids[0], newest + 1 - max(retain_min, retain_max))
        while first < stop and older_than_millis is not None:
            if self._snapshots.load(first).time_millis >= older_than_millis:
                break
            first += 1
        return min(first, stop)

    def _expire_below(
        self, first_retained: int, lists_before: frozenset[str], still_there: _StillThere
    ) -> ExpireResult:
        expiring = self._expiring(first_retained)
        if self._changelog_retention is not None:
            # Before the snapshots count as expired: a reader that misses a snapshot looks for its changelog.
            for snapshot in expiring:
                self._changelogs.keep(snapshot)
        if expiring:
            # Likewise: a commit whose snapshot is missing is looked up there.
            since_millis = self._clock.now_millis() - self._commit_retention_ms
            self._snapshots.keep_commits(expiring, self._snapshots.load(first_retained), since_millis)
        still_there.check_if_late()
        expired_ids = self._snapshots.expire_below(first_retained, lists_before)
        try:
            still_there.check_if_late()
        except NotFoundError:
            # EARLIEST of another table was written.
            self._snapshots.forget_earliest()
            raise
        try:
            result = self._cleaned_up(expired_ids, first_retained, {each.id: each for each in expiring}, still_there)
            if expired_ids:
                # Only now: a slower expiry may move EARLIEST back to one of these snapshots while its file is there.
                self._snapshots.forget_older_commits()
        except BaseException as error:
            # These snapshots count as expired; the next run deletes their remaining files.
            note_outcome(error, committed=True)
            raise
        return result

    def _expiring(self, first_retained: int) -> list[Snapshot]:
        earliest = self._snapshots.earliest_id() or first_retained
        return self._snapshots.load_all(range(earliest, first_retained))

    def _cleaned_up(
        self,
        expired_ids: Sequence[int],
        first_retained: int,
        expiring: Mapping[int, Snapshot],
        still_there: _StillThere,
    ) -> ExpireResult:
        view = self._newest_view()
        if view is not None:
            # A view that can't show newer snapshots tags the one that it shows; below, tags are read.
            view.hold(first_retained)
        loaded = [expiring.get(each) or self._snapshots.load_expired(each) for each in expired_ids]
        expired = [snapshot for snapshot in loaded if snapshot is not None]
        if not expired:
            return ExpireResult(earliest_id=first_retained)
        # Read the needs of other branches before those of this one: see ``references``.
        needed = self._references.of_others()
        needed |= self._references.of_own(self._snapshots, first_retained)
        unneeded = self._taken_out(expired, self._snapshots.load(first_retained)) - needed
        if view is not None:
            # Its readers find a missing snapshot, rather than one whose files are missing.
            view.drop_expired()
        still_there.check()
        self._deletion.delete_all(unneeded.in_order())
        for snapshot in expired:
            still_there.check_if_late()
            self._snapshots.delete_expired(snapshot.id)
        return ExpireResult(
            snapshot_count=len(expired),
            data_file_count=len(unneeded.data),
            manifest_count=len(unneeded.manifests) + len(unneeded.lists),
            earliest_id=first_retained,
        )

    def _taken_out(self, expired: Sequence[Snapshot], first_retained: Snapshot) -> Files:
        """Return the files removed up to the first kept snapshot by expired deltas, and the expired metadata.

        A move to another level removes and adds the same file, so kept files are identified by path, not by identity.
        """
        files = Files()
        for snapshot in expired:
            files |= self._references.metadata_of(snapshot, strict=False)
            for name, kind in (
                (snapshot.delta_manifest_list, FileKind.DELETE),
                (snapshot.changelog_manifest_list, FileKind.ADD),
            ):
                if name is not None:
                    files.data.update(self._references.paths_in(name, kind, strict=False))
        files.data.update(self._references.paths_in(first_retained.delta_manifest_list, FileKind.DELETE, strict=True))
        return files

    def _expire_changelogs(self, latest_id: int, retention: ChangelogRetention) -> None:
        """Drop changelogs beyond their retention, as Paimon's engines do."""
        ids = self._changelogs.ids()
        if not ids:
            return
        first_retained = self._first_changelog_retained(ids, latest_id, retention)
        expired_ids = [each for each in ids if each < first_retained]
        if not expired_ids:
            return
        loaded = {each: self._changelogs.load(each) for each in ids}
        expired = [changelog for each in expired_ids if (changelog := loaded[each]) is not None]
        retained = [changelog for each, changelog in loaded.items() if each >= first_retained and changelog is not None]
        files = self._references.of_changelogs(expired)
        needed = self._references.of_others(but_changelogs=True)
        needed |= self._references.of_changelogs(retained)
        needed |= self._references.of_own_whole(self._snapshots)
        self._changelogs.give_up_below(first_retained)
        self._deletion.delete_all((files - needed).in_order())
        self._changelogs.delete(expired_ids)

    def _first_changelog_retained(self, ids: Sequence[int], latest_id: int, retention: ChangelogRetention) -> int:
        stop = min(latest_id - retention.count_min + 1, *self._next_of_consumers(), ids[-1] + 1)
        first = max(latest_id - retention.count_max + 1, ids[0])
        young = self._clock.now_millis() - retention.time_ms
        while first < stop:
            changelog = self._changelogs.load(first)
            if changelog is not None and changelog.time_millis >= young:
                break
            first += 1
        return min(first, stop)

    def _next_of_consumers(self) -> list[int]:
        """Return the next snapshot id of each consumer."""
        return [consumer.next_snapshot_id for consumer in self._consumers.load_all()]
