"""``table.tags``: named snapshots that do not expire.

What changes them raises ``NotFoundError`` if the table was dropped, also if another one has its name now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from storage_lib.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    SnapshotExpiredError,
    StorageError,
)
from storage_lib.file_store.cleanup.references import Files
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.tag import WORK_TAG_PREFIX, Tag
from storage_lib.io.after_commit import after_commit
from storage_lib.schema.options.option_values import parse_millis
from storage_lib.table.protocol.outcome import outcome, reports_outcome
from storage_lib.table.protocol.table_context import TableContext

_WORK_RETAINED_MS = 24 * 60 * 60 * 1000
_MILLIS_MAX = 2**63


class TableTags:
    """Creates, lists and deletes the tags of a table or of one of its branches."""

    def __init__(self, context: TableContext) -> None:
        self._table = context.name
        self._environment = context.environment
        self._file_store = context.file_store
        self._refresh_view = context.refresh_view

    @reports_outcome
    def create(self, name: str, snapshot_id: int | None = None, *, time_retained: timedelta | str | None = None) -> Tag:
        """Protect a snapshot (default: the newest) from expiry until the tag is deleted, or for ``time_retained`` ("7
        d").

        Raises ``AlreadyExistsError`` if the tag exists, ``NotFoundError`` or ``SnapshotExpiredError`` for the snapshot,
        and ``InvalidInputError`` for an invalid name and for a table without a commit.
        """
        self._file_store.check_still_there()
        history = self._file_store.snapshots
        snapshot = history.latest() if snapshot_id is None else history.load(snapshot_id)
        if snapshot is None:
            message = f"table {self._table} has no snapshot to tag yet; commit something first"
            raise InvalidInputError(message)
        tag = self._keep(name, snapshot, retained_millis(self._table, time_retained))
        with outcome(committed=True):
            self._refresh_view()
        return tag

    @reports_outcome
    def delete(self, name: str) -> None:
        """Delete a tag, and the files that only it needs; ``NotFoundError`` if it does not exist."""
        self._file_store.check_still_there()
        tag = self._file_store.tags.load(name)
        files = None if self._is_in_history(tag.snapshot) else self._file_store.references.all_of(tag.snapshot)
        self._file_store.tags.delete(name)
        self._refresh_view()
        if files is not None:
            with after_commit(f"table {self._table}: deleting the files that only tag {name!r} kept"):
                if self._file_store.view is not None:
                    self._file_store.view.drop_expired()
                self._delete_unneeded(files)

    def exists(self, name: str) -> bool:
        """Return whether a tag exists."""
        return self._file_store.tags.exists(name)

    def load(self, name: str) -> Tag:
        """Return a tag with its snapshot; ``NotFoundError`` if it does not exist."""
        return self._file_store.tags.load(name)

    def list(self) -> tuple[Tag, ...]:
        """Return all tags, sorted by name."""
        return tuple(self._file_store.tags.load_all())

    def expire(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Delete, or only list, the tags whose ``time_retained`` has passed; return their names."""
        now_ms = self._environment.clock.now_millis()
        names = [tag.name for tag in self.list() if tag.is_expired(now_ms)]
        return tuple(name for name in names if dry_run or is_deleted(self.delete, name))

    @contextmanager
    def keeping(self, snapshot: Snapshot, *, is_of_branch: bool = False) -> Iterator[None]:
        """Protect the files of a snapshot while the body uses them, by a tag that is deleted afterwards.

        Raises ``SnapshotExpiredError`` if they have expired. After a crash the tag stays for a day, until ``expire``
        removes it.
        """
        name = f"{WORK_TAG_PREFIX}{self._environment.new_name()}"
        self._keep(name, snapshot, _WORK_RETAINED_MS, is_checked=not is_of_branch)
        try:
            yield
        finally:
            with suppress(StorageError):
                self._file_store.tags.delete(name)

    def _keep(self, name: str, snapshot: Snapshot, retained_ms: int | None, *, is_checked: bool = True) -> Tag:
        tag = Tag(
            name=name,
            snapshot=snapshot,
            create_time_ms=self._environment.clock.now_millis(),
            time_retained_ms=retained_ms,
        )
        if not self._file_store.tags.create(tag):
            message = f"table {self._table} has a tag {name!r} already; delete it first, or choose another name"
            raise AlreadyExistsError(message)
        # Expiry moves EARLIEST before it reads the tags: if EARLIEST has not passed this snapshot, expiry will see the
        # tag.
        with outcome(committed=None):
            is_retained = not is_checked or self._is_held(snapshot) or self._is_tagged(snapshot, name)
        if not is_retained:
            self._file_store.tags.delete(name)
            message = (
                f"table {self._table}: snapshot {snapshot.id} was expired before tag {name!r} could keep it; "
                "name a newer snapshot"
            )
            raise SnapshotExpiredError(message)
        return tag

    def _is_tagged(self, snapshot: Snapshot, but: str) -> bool:
        """Return whether another tag protects the snapshot."""
        return any(
            tag.name != but and tag.snapshot.delta_manifest_list == snapshot.delta_manifest_list for tag in self.list()
        )

    def _is_held(self, snapshot: Snapshot) -> bool:
        """Return whether the snapshot is in force, and not another one with its number: of a recreated table."""
        return self._is_in_history(snapshot) and self._file_store.snapshots.holds(snapshot)

    def _is_in_history(self, snapshot: Snapshot) -> bool:
        earliest_id = self._file_store.snapshots.earliest_id()
        return earliest_id is not None and snapshot.id >= earliest_id

    def _delete_unneeded(self, files: Files) -> None:
        needed = self._file_store.references.of_others()
        needed |= self._file_store.references.of_own(self._file_store.snapshots)
        self._file_store.deletion.delete_all((files - needed).in_order())


def is_deleted(delete: Callable[[str], None], name: str) -> bool:
    """Delete an expired tag or branch; return whether it existed, because two processes may do so at the same time."""
    try:
        delete(name)
    except NotFoundError:
        return False
    return True


def retained_millis(table: str, duration: timedelta | str | None) -> int | None:
    """Return the time for which to retain a tag or a branch in milliseconds; ``InvalidInputError`` if it is invalid."""
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        millis = round(duration.total_seconds() * 1000)
    else:
        try:
            millis = parse_millis(duration)
        except (TypeError, ValueError) as error:
            message = f"table {table}: time_retained={duration!r}; {error}"
            raise InvalidInputError(message) from error
    # Other engines store it in 64 bits, and cannot list the tags of a table if one is larger.
    if not 0 < millis < _MILLIS_MAX:
        message = f"table {table}: time_retained={duration!r} is not a duration to keep something for"
        raise InvalidInputError(message)
    return millis
