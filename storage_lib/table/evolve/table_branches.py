"""``table.branches``: write to a copy of the table, check the result, then publish it all at once.

    main      1 ── 2 ── 3 ─────────────── 4      fast-forward: one snapshot with the branch's content
                   └ dev  2 ── 3 ── 4 ────┘

Writes to a branch never go to the table's log. A fast-forward appends the net change to the log, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Generic, TypeVar

from storage_lib.errors import InvalidInputError, NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.schema_in_force import schema_in_force
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.io.after_commit import after_commit
from storage_lib.io.table_directory.table_paths import MAIN_BRANCH, TablePaths
from storage_lib.log_store.codec.log_evolution import refuse_for_log
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.table_options import OWN_PREFIX
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.commit.table_restore import TableRestore
from storage_lib.table.evolve.table_tags import TableTags, is_deleted, retained_millis
from storage_lib.table.protocol.identity import identity_of
from storage_lib.table.protocol.outcome import outcome, reports_outcome
from storage_lib.table.protocol.table_context import TableContext

RESTORED_BRANCH = f"{OWN_PREFIX}restored.branch"
RESTORED_SNAPSHOT = f"{OWN_PREFIX}restored.snapshot"
_ROWS_UNCHANGED = (CommitKind.COMPACT, CommitKind.ANALYZE)


def tag_of_branch(name: str) -> str:
    """Return the name of the tag that protects a branch's first snapshot if other engines expire snapshots."""
    return f"branch-{name}"


TableT = TypeVar("TableT")


class TableBranches(Generic[TableT]):
    """Creates, opens, publishes and deletes the branches of a table."""

    def __init__(
        self,
        context: TableContext,
        *,
        tags: TableTags,
        restore: TableRestore,
        tracks: bool,
        of_newest_schema: Callable[[], TableBranches[TableT]],
        open_branch: Callable[[str, TableSchema], TableT],
    ) -> None:
        self._table = context.name
        self._environment = context.environment
        self._paths = context.paths
        self._file_store = context.file_store
        self._tags = tags
        self._restore = restore
        self._schema_id = context.schema.id
        self._has_log = context.log is not None
        self._tracks = tracks
        self._others_expire = context.options.others_expire
        self._of_newest_schema = of_newest_schema
        self._open_branch = open_branch

    def open(self, name: str) -> TableT:
        """Return the branch as a table, for reads and writes; it has no log.

        Raises ``NotFoundError`` for an unknown branch.
        """
        self._file_store.check_still_there()
        self._file_store.branches.check_exists(name)
        schema = schema_in_force(self._environment.file_io, TablePaths(self._paths.root, name))
        if schema is None:
            message = f"branch {name!r} of table {self._table} was deleted by another process"
            raise NotFoundError(message)
        return self._open_branch(name, schema)

    @reports_outcome
    def create(
        self,
        name: str,
        *,
        tag: str | None = None,
        snapshot_id: int | None = None,
        time_retained: timedelta | str | None = None,
    ) -> None:
        """Create a branch that starts at a tag, a snapshot, or (by default) the newest snapshot.

        It exists until it is deleted or, with ``time_retained`` ("7 d"), until ``expire`` deletes it after that time.
        Other engines' expiry ignores branches: if other engines may expire snapshots (``snapshot.num-retained.min`` is
        not at its maximum), a branch that does not start at a tag gets the tag ``branch-<name>``, which is deleted with
        it. Raises ``AlreadyExistsError`` if the branch exists, ``NotFoundError`` or ``SnapshotExpiredError`` for the
        tag or snapshot, and ``InvalidInputError`` for an invalid name.
        """
        self._refuse_on_branch()
        self._file_store.check_still_there()
        if tag is not None and snapshot_id is not None:
            message = f"table {self._table}: branch {name!r} begins with one snapshot; give its tag or its id, not both"
            raise InvalidInputError(message)
        retained_ms = retained_millis(self._table, time_retained)
        store = self._file_store
        start_tag = None if tag is None else store.tags.load(tag)
        if start_tag is not None:
            start: Snapshot | None = start_tag.snapshot
        else:
            start = store.snapshots.latest() if snapshot_id is None else store.snapshots.load(snapshot_id)
        is_newest = tag is None and snapshot_id is None
        is_tagged = self._others_expire and start is not None and tag is None
        if is_tagged and start is not None and not store.branches.exists(name):
            self._tag(name, start)
        store.branches.create(
            name,
            schemas=self._schemas(None if start is None or is_newest else start.schema_id),
            snapshot=start,
            tag=start_tag,
            retained_until_ms=None if retained_ms is None else self._environment.clock.now_millis() + retained_ms,
            is_protected_by_tag=is_tagged,
        )
        with outcome(committed=None):
            is_retained = start is None or self._is_retained(start, tag)
        if start is not None and not is_retained:
            store.branches.delete(name)
            if is_tagged:
                store.tags.delete(tag_of_branch(name))
            message = (
                f"table {self._table}: snapshot {start.id} was expired before branch {name!r} could keep it; "
                "begin the branch with a newer one"
            )
            raise SnapshotExpiredError(message)

    def list(self) -> tuple[str, ...]:
        """Return the names of all branches, sorted, without the table itself."""
        return tuple(self._file_store.branches.names())

    def expire(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Delete, or only list, the branches whose ``time_retained`` has passed; return their names."""
        self._refuse_on_branch()
        names = self._file_store.branches.expired(self._environment.clock.now_millis())
        return tuple(name for name in names if dry_run or is_deleted(self.delete, name))

    @reports_outcome
    def delete(self, name: str) -> None:
        """Delete a branch, and the files that only it needs; ``NotFoundError`` if it does not exist."""
        self._refuse_on_branch()
        self._file_store.check_still_there()
        branches, references = self._file_store.branches, self._file_store.references
        deletion = self._file_store.deletion
        branches.check_exists(name)
        files = references.of_branch(name)
        is_tagged = branches.is_protected_by_tag(name) and self._file_store.tags.exists(tag_of_branch(name))
        deletion.learn()
        with outcome(committed=None):
            branches.delete(name)
        with after_commit(f"table {self._table}: deleting the files that only branch {name!r} kept"):
            if is_tagged:
                self._tags.delete(tag_of_branch(name))
            needed = references.of_others()
            needed |= references.of_branch(MAIN_BRANCH)
            deletion.delete_all((files - needed).in_order())

    @reports_outcome
    def fast_forward(
        self,
        name: str,
        *,
        change_tracking: bool | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Replace the table's content by the branch's, in one new snapshot; None if they are equal already.

        The table's rows must not have changed since the branch was created or last fast-forwarded; compactions do not
        count. If the branch was altered, the table is altered in the same way. With ``change_tracking`` (default: if
        the table has a log or a changelog producer) streams see the net change. Raises ``InvalidInputError`` if the
        table's rows have changed, ``NotFoundError`` for an unknown branch.
        """
        self._refuse_on_branch()
        self._file_store.check_still_there()
        user, identifier = identity_of(self._table, self._environment, commit_user, commit_identifier)
        earlier = self._restore.committed(user, identifier)
        if earlier is not None:
            return earlier
        branches = self._file_store.branches
        branches.check_exists(name)
        history = branches.history(name)
        head = history.latest()
        if head is None:
            return None
        guard = self._guard(name, self._synced(name, history))
        # Checked before the schema is changed as well, so that a refusal leaves the table unchanged.
        guard(self._file_store.snapshots.latest())
        if self._take_over_schemas(name):
            return self._of_newest_schema().fast_forward(
                name, change_tracking=change_tracking, commit_user=user, commit_identifier=identifier
            )
        tracked = self._tracks if change_tracking is None else change_tracking
        with self._tags.keeping(head, is_of_branch=True):
            branches.check_exists(name)
            return self._restore.restore(
                head,
                tracked=tracked,
                commit_user=user,
                commit_identifier=identifier,
                properties={RESTORED_BRANCH: name, RESTORED_SNAPSHOT: str(head.id)},
                guard=guard,
                history=history,
            )

    def check_unchanged(self, name: str) -> None:
        """Check that a fast-forward would not undo changes of the table's rows.

        Raises ``InvalidInputError`` if they have changed since the branch was created or last fast-forwarded, and
        ``NotFoundError`` for an unknown branch.
        """
        self._refuse_on_branch()
        self._file_store.branches.check_exists(name)
        guard = self._guard(name, self._synced(name, self._file_store.branches.history(name)))
        guard(self._file_store.snapshots.latest())

    def _tag(self, name: str, start: Snapshot) -> None:
        """Tag a branch's first snapshot, unless an interrupted creation has done so."""
        tags, tag = self._file_store.tags, tag_of_branch(name)
        if tags.exists(tag) and tags.load(tag).snapshot.delta_manifest_list == start.delta_manifest_list:
            return
        self._tags.create(tag, start.id)

    def _guard(self, name: str, synced: int) -> Callable[[Snapshot | None], None]:
        """Return a check, run before the new snapshot, that the table's rows have not changed since ``synced``."""

        def guard(latest: Snapshot | None) -> None:
            for snapshot_id in range(synced + 1, (0 if latest is None else latest.id) + 1):
                snapshot = self._file_store.snapshots.load(snapshot_id)
                if snapshot.commit_kind in _ROWS_UNCHANGED or not self._file_store.scan.changed_buckets(snapshot):
                    continue
                message = (
                    f"table {self._table} has changed since branch {name!r} was made from it: snapshot {snapshot_id} "
                    f"is {snapshot.commit_kind} by {snapshot.commit_user}. A fast-forward would undo that; make a new "
                    "branch and write to it again"
                )
                raise InvalidInputError(message)

        return guard

    def _synced(self, name: str, branch: SnapshotHistory) -> int:
        """Return the newest snapshot of the table whose content the branch is known to contain."""
        history = self._file_store.snapshots
        newest, earliest = history.latest_id() or 0, history.earliest_id() or 1
        origin = self._origin(name, branch)
        for snapshot_id in range(newest, max(earliest, origin + 1) - 1, -1):
            properties = history.load(snapshot_id).properties
            if properties.get(RESTORED_BRANCH) == name and RESTORED_SNAPSHOT in properties:
                return snapshot_id
        if origin and earliest > origin + 1:
            message = (
                f"table {self._table}: the snapshots since branch {name!r} was made from snapshot {origin} have been "
                "expired, so it is not known whether the table changed. Make a new branch and write to it again"
            )
            raise InvalidInputError(message)
        return origin

    def _origin(self, name: str, branch: SnapshotHistory) -> int:
        """Return the snapshot from which the branch was created; 0 if it started empty."""
        made_from = self._file_store.branches.origin(name)
        # A branch of another engine starts with a copy of the snapshot, or empty.
        return (branch.earliest_id() or 0) if made_from is None else made_from

    def _take_over_schemas(self, name: str) -> bool:
        """Copy the branch's schemas to the table; return whether the table then has a newer schema than this object."""
        own = SchemaHistory(self._environment.file_io, self._paths)
        theirs = SchemaHistory(self._environment.file_io, self._paths.of_branch(name))
        schemas = [theirs.load(schema_id) for schema_id in theirs.ids()]
        if self._has_log and schemas:
            refuse_for_log(schemas[-1], self._schemas(None))
        for schema in schemas:
            schema_id = schema.id
            if not own.append(schema) and own.load(schema_id) != schema:
                message = (
                    f"branch {name!r} cannot be published: table {self._table} and the branch were both altered since "
                    f"the branch was created, so schema {schema_id} differs between them. Create a new branch and "
                    "repeat its writes there"
                )
                raise InvalidInputError(message)
        return (own.latest_id() or 0) > self._schema_id

    def _schemas(self, up_to: int | None) -> Sequence[TableSchema]:
        history = SchemaHistory(self._environment.file_io, self._paths)
        return [history.load(each) for each in history.ids() if up_to is None or each <= up_to]

    def _is_retained(self, start: Snapshot, tag: str | None) -> bool:
        """Return whether the snapshot's files were still protected when the branch became visible."""
        earliest_id = self._file_store.snapshots.earliest_id()
        if earliest_id is not None and start.id >= earliest_id and self._file_store.snapshots.holds(start):
            return True
        return tag is not None and self._file_store.tags.exists(tag)

    def _refuse_on_branch(self) -> None:
        if self._paths.branch != MAIN_BRANCH:
            message = f"table {self._table} is a branch itself; ask the table for its branches"
            raise InvalidInputError(message)
