"""Table on any storage, written, committed and read through the file store's verbs only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER, CommitMessage, Committable
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.store import FileStore
from storage_lib.file_store.write import FileStoreWrite
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.placing.bucketing import group_rows
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import parse_data_type
from storage_lib.schema.types.row_kind import RowKind

Rows = Sequence[Sequence[Any]]


@dataclass
class StoredTable:
    """Table below the table layer; ``rows`` are tuples in schema order."""

    schema: TableSchema
    environment: Environment
    root: str = "/warehouse/db.db/t"

    def __post_init__(self) -> None:
        """Write the schema, so that other readers find it, unless the table already exists."""
        self.paths = TablePaths(self.root)
        self.options = TableOptions.parse(self.schema.options)
        file_io = self.environment.file_io
        if not file_io.exists(self.paths.schema_path(self.schema.id)):
            file_io.create_if_absent(self.paths.schema_path(self.schema.id), self.schema.to_json())
        self.store = self.reopened()

    def reopened(self) -> FileStore:
        """Return the file store of a new process, without cached state."""
        return FileStore(
            table="db.t",
            environment=self.environment,
            paths=self.paths,
            schema=self.schema,
            options=self.options,
        )

    def batch(self, rows: Rows) -> pa.RecordBatch:
        """Convert tuples to a record batch of the table."""
        columns = [
            pa.array([row[index] for row in rows], each.type) for index, each in enumerate(self.schema.arrow_schema)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema.arrow_schema)

    def fill(self, write: FileStoreWrite, rows: Rows, kinds: Sequence[RowKind] | None = None) -> None:
        """Pass rows to a writer, bucket by bucket."""
        batch = self.batch(rows)
        codes = pa.array([int(kind) for kind in kinds or [RowKind.INSERT] * len(rows)], pa.int8())
        for partition, bucket, indices in group_rows(batch, self.schema):
            write.write(partition, bucket, batch, codes, indices)

    def messages(
        self, rows: Rows, kinds: Sequence[RowKind] | None = None, *, overwrite: bool = False
    ) -> tuple[CommitMessage, ...]:
        """Write the rows to files on top of the newest snapshot, without a commit."""
        write = self.store.new_write(self.store.snapshots.latest(), overwrite=overwrite)
        self.fill(write, rows, kinds)
        return write.prepare_commit()

    def append(
        self,
        rows: Rows,
        kinds: Sequence[RowKind] | None = None,
        *,
        user: str = "tests",
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Write and commit rows."""
        return self.commit(self.messages(rows, kinds), user=user, identifier=identifier, properties=properties)

    def commit(
        self,
        messages: Iterable[CommitMessage],
        *,
        user: str = "tests",
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        properties: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Snapshot:
        """Commit messages."""
        committable = committable_of(messages, user=user, identifier=identifier, properties=properties)
        return self.store.commit.commit(committable, **options)

    def overwrite(
        self,
        rows: Rows,
        *,
        partitions: Collection[bytes] | None = None,
        partition_filter: Predicate | None = None,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
    ) -> Snapshot:
        """Replace the content of some partitions with rows."""
        committable = committable_of(self.messages(rows, overwrite=True), identifier=identifier)
        return self.store.commit.overwrite(committable, partitions=partitions, partition_filter=partition_filter)

    def compact(self, *, full: bool = True) -> Snapshot | None:
        """Run and commit all due compactions; return None if there were none."""
        messages = self.compaction_messages(full=full)
        return self.commit(messages, user="compaction") if messages else None

    def compaction_messages(self, *, full: bool = True) -> list[CommitMessage]:
        """Run compactions without a commit."""
        tasks = self.store.compact.plan(self.store.snapshots.latest(), full=full)
        return [message for task in tasks if (message := self.store.compact.run(task)) is not None]

    def rows(
        self,
        snapshot: Snapshot | None = None,
        *,
        predicate: Predicate | None = None,
        columns: Sequence[str] | None = None,
        target_size: int | None = None,
        store: FileStore | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return all rows of a snapshot (default: the newest), sorted."""
        store = store or self.store
        plan = store.scan.plan(snapshot or store.snapshots.latest(), predicate=predicate)
        return sorted(
            (
                tuple(row.values())
                for split in plan.splits(target_size)
                for batch in store.read.read(split, columns, predicate)
                for row in batch.to_pylist()
            ),
            key=repr,
        )

    def files(self, snapshot: Snapshot | None = None) -> list[str]:
        """Return live files as ``bucket/level/rows``, sorted."""
        plan = self.store.scan.plan(snapshot or self.store.snapshots.latest())
        return sorted(f"{each.bucket}/{each.file.level}/{each.file.row_count}" for each in plan.entries)

    def names_on_storage(self, directory: str) -> list[str]:
        """Return the names of the files in one directory of the table."""
        return sorted(each.name for each in self.environment.file_io.list_directory(f"{self.root}/{directory}"))


def committable_of(
    messages: Iterable[CommitMessage],
    *,
    user: str = "tests",
    identifier: int = BATCH_COMMIT_IDENTIFIER,
    properties: Mapping[str, str] | None = None,
    watermark: int | None = None,
) -> Committable:
    """Combine messages with a commit identity."""
    return Committable(
        commit_user=user,
        commit_identifier=identifier,
        messages=tuple(messages),
        properties=properties or {},
        watermark=watermark,
    )


def orders_schema(options: Mapping[str, str] | None = None) -> TableSchema:
    """Return schema ``(dt STRING, id BIGINT, item STRING)``, key (dt, id), partitioned by dt, two buckets."""
    return new_table_schema(
        [("dt", parse_data_type("STRING")), ("id", parse_data_type("BIGINT")), ("item", parse_data_type("STRING"))],
        primary_keys=["dt", "id"],
        partition_keys=["dt"],
        options={"bucket": "2", **(options or {})},
        time_millis=0,
    )
