"""State of one stream for one bucket: the last row per key (``scan.normalize=state``).

    snapshot 1 ─ up to offset 17 ─▶ snapshot 2 ─ up to offset 40 ─▶ …     versions of the state, each a snapshot

The state is a file store without a log: look-ups by key read few row groups, the memtable bounds memory, versions are
atomic, and versions of the last hour are kept for a stream that returns to an earlier position. A version's content is
a function of the stream's positions, so repeating an interrupted write is safe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    RetryableError,
    StorageError,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER, CommitMessage, Committable
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.store import FileStore
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.encoding.json_document import UNDECODABLE
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.table_options import OWN_PREFIX, TableOptions
from storage_lib.schema.placing.bucketing import group_rows
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.read.point_lookup import PointLookup

_VERSION = f"{OWN_PREFIX}stream-state"
_OPTIONS = {"bucket": "1", "write-buffer-size": "64 mb", "file.compression": "lz4"}
_VERSIONS_KEPT = 20
_KEPT_MS = 60 * 60 * 1000
_ORPHANED_MS = 24 * 60 * 60 * 1000
_EXPIRES_EVERY = 16
"""Versions between two expiries; orphan files of killed writers are removed sixteen times less often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVersion:
    """Version of a state that contains the log up to ``offset``.

    The state was initialised from the table's snapshot ``base_snapshot_id`` (0: none), which contains the log up to
    ``base_offset``.
    """

    offset: int
    base_snapshot_id: int
    base_offset: int
    snapshot: Snapshot


class ChangelogState:
    """State of one bucket in ``directory``. Created on first use, safely by several processes."""

    def __init__(self, *, table: str, environment: Environment, directory: str, schema: TableSchema) -> None:
        own = replace(schema, partition_keys=(), options=_OPTIONS, comment=None)
        paths = TablePaths(directory)
        self._name = f"state of a stream of {table} in {directory}"
        self._schema = own
        self._environment = environment
        # Under the table's schema id and field ids, so that rows of older schemas are read as in the table. Versions
        # before the stream began, or between two of its reads, are missing.
        SchemaHistory(environment.file_io, paths).append(own, has_gaps=True)
        self._store = FileStore(
            table=self._name,
            environment=environment,
            paths=paths,
            schema=own,
            options=TableOptions.parse(own.options),
        )
        self._lookup = PointLookup(table=self._name, schema=own, file_store=self._store, only_compacted=False)

    def newest(self) -> StateVersion | None:
        """Return the version with the highest offset; None for a state without versions."""
        latest = self._store.snapshots.latest()
        return None if latest is None else self._version_of(latest)

    def at(self, offset: int) -> StateVersion | None:
        """Return the last version that contains nothing from ``offset`` on; None if no such version is kept."""
        history = self._store.snapshots
        newest, earliest = history.latest_id(), history.earliest_id()
        if newest is None or earliest is None:
            return None
        low, end = earliest, newest + 1
        while low < end:
            middle = (low + end) // 2
            if self._version_of(history.load(middle)).offset > offset:
                end = middle
            else:
                low = middle + 1
        return None if low == earliest else self._version_of(history.load(low - 1))

    def rows_of(self, version: StateVersion, keys: pa.Table) -> pa.Table:
        """Return whole rows of ``keys`` (columns of the primary key, repetitions allowed), in any order."""
        return self._lookup.rows_of(version.snapshot, keys)

    def advance(
        self,
        onto: StateVersion | None,
        changes: Iterable[tuple[pa.RecordBatch, pa.Array]],
        *,
        offset: int,
        base_snapshot_id: int = 0,
        base_offset: int = 0,
    ) -> None:
        """Create the version of ``offset`` by applying changes (rows with int8 kinds) to the newest version, ``onto``.

        Does nothing if another process has created a newer version meanwhile. The bases are used for the first version
        only.
        """
        if onto is not None:
            base_snapshot_id, base_offset = onto.base_snapshot_id, onto.base_offset
        value = {"offset": offset, "base": base_snapshot_id, "base-offset": base_offset}
        write = self._store.new_write(None if onto is None else onto.snapshot)
        try:
            for rows, kinds in changes:
                for partition, bucket, _ in group_rows(rows, self._schema):
                    write.write(partition, bucket, rows, kinds)
            messages = write.prepare_commit()
            made = self._commit(messages, {_VERSION: json.dumps(value)}, onto)
        except CommitConflictError:
            write.abort()
            return
        except CommitOutcomeUnknownError:
            raise
        except BaseException:
            with suppress(StorageError):
                write.abort()
            raise
        with suppress(RetryableError):
            self._care_for(made, messages)

    def _commit(
        self, messages: tuple[CommitMessage, ...], properties: dict[str, str], onto: StateVersion | None
    ) -> Snapshot:
        committable = Committable(
            commit_user=self._environment.new_name(), commit_identifier=BATCH_COMMIT_IDENTIFIER, messages=messages
        )
        return self._store.commit.commit(
            committable, guard=self._refuse_another(onto), properties_of=lambda _: properties
        )

    def _refuse_another(self, onto: StateVersion | None) -> Callable[[Snapshot | None], None]:
        def guard(latest: Snapshot | None) -> None:
            if (None if latest is None else latest.id) != (None if onto is None else onto.snapshot.id):
                message = (
                    f"{self._name}: another process committed a new version based on the same one, so this version "
                    "was discarded; read the newest version and continue from it"
                )
                raise CommitConflictError(message)

        return guard

    def _care_for(self, made: Snapshot, messages: tuple[CommitMessage, ...]) -> None:
        """Run due compactions, and expire versions that streams no longer need."""
        tasks = self._store.compact.plan_buckets(made, {(each.partition, each.bucket) for each in messages})
        outputs = tuple(each for each in map(self._store.compact.run, tasks) if each is not None)
        if outputs:
            version = self._version_of(made)
            try:
                self._commit(outputs, dict(made.properties), version)
            except CommitConflictError:
                self._store.abort(outputs)
        if made.id % _EXPIRES_EVERY == 0:
            now = self._environment.clock.now_millis()
            self._store.expire.expire(retain_min=_VERSIONS_KEPT, older_than_millis=now - _KEPT_MS)
            if made.id % (_EXPIRES_EVERY * _EXPIRES_EVERY) == 0:
                self._store.orphans.remove(modified_until_ms=now - _ORPHANED_MS, dry_run=False)

    def _version_of(self, snapshot: Snapshot) -> StateVersion:
        try:
            value = json.loads(snapshot.properties[_VERSION])
            return StateVersion(
                offset=int(value["offset"]),
                base_snapshot_id=int(value["base"]),
                base_offset=int(value["base-offset"]),
                snapshot=snapshot,
            )
        except UNDECODABLE as error:
            message = f"{self._name}: snapshot {snapshot.id} is not the state of a stream; name a directory of its own"
            raise CorruptFileError(message) from error
