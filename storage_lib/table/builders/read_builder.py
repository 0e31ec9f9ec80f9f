"""``table.new_read()``: a read that an engine plans on the driver and runs in tasks, split by split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.data_file.stored_columns import StoredColumns
from storage_lib.file_store.merge_tree.standing.standing_rows import StandingRows
from storage_lib.file_store.planning.partition_totals import PartitionTotals
from storage_lib.file_store.planning.plan import DividedPlan, Plan
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.split import Split
from storage_lib.schema.encoding.moment import Moment, optional_millis
from storage_lib.schema.filter.filter_text import Filter
from storage_lib.schema.options.table_options import ScanNormalize, StartupMode, UntrackedScan
from storage_lib.table.changelog.change_scan import ChangeMode, ChangeScan
from storage_lib.table.protocol.change_split import ChangeSplit
from storage_lib.table.protocol.stream_position import StreamPosition
from storage_lib.table.read.batch_reads import BatchReads
from storage_lib.table.read.large_runs import LargeRuns, NewerRows
from storage_lib.table.read.unmerged_file import UnmergedFile
from storage_lib.table.stream.hybrid_source import HybridSource
from storage_lib.table.stream.table_streams import TableStreams


class ReadParts(Protocol):
    """Parts of a table that read."""

    @property
    def batch_reads(self) -> BatchReads:
        """Reads the rows of a snapshot."""

    @property
    def change_scan(self) -> ChangeScan:
        """Reads the changes between two snapshots."""

    @property
    def streams(self) -> TableStreams:
        """Opens streams of changes."""


@dataclass(frozen=True)
class ReadBuilder:
    """A batch read of an engine, planned on the driver and read by tasks.

        plan = table.new_read(filter=f).plan()                               # driver
        table.new_read(columns=["id"], filter=f).read_split(split)           # task, for each of plan.splits()

    Changes and streams are read in the same way. ``find_snapshot`` returns the snapshot that is read.
    """

    columns: Sequence[str] | None
    filter: Filter | None
    find_snapshot: Callable[[], Snapshot | None]
    parts: ReadParts

    def plan(self) -> Plan:
        """Plan the read: pass each of its ``splits()`` to ``read_split`` of a read with the same filter.

        Raises ``InvalidInputError`` for a filter that does not fit the columns, ``NotFoundError`` or
        ``SnapshotExpiredError`` for the snapshot.
        """
        return self.parts.batch_reads.plan(self.find_snapshot(), self.filter)

    def plan_divided(self) -> DividedPlan:
        """Plan the read in two parts, for an engine that reads files by itself where no rows have to be merged.

        Raises as ``plan``.
        """
        return self.parts.batch_reads.plan_divided(self.find_snapshot(), self.filter)

    def totals(self, plan: DividedPlan, columns: Sequence[str]) -> tuple[PartitionTotals, ...] | None:
        """Return the number of rows and the bounds of ``columns`` in each partition, from metadata alone.

        ``plan`` is one of ``plan_divided`` without a filter, or with a filter of partition columns only. None if
        metadata does not give exactly what the rows would: read the files.
        """
        return self.parts.batch_reads.totals(plan, columns)

    def unmerged_files(self, unmerged: Plan) -> tuple[UnmergedFile, ...]:
        """Return the files of ``plan_divided().unmerged``, in the plan's order."""
        return self.parts.batch_reads.unmerged_files(unmerged)

    def large_runs(self, merged: Plan) -> LargeRuns | None:
        """Divide ``plan_divided().merged`` into large files and few newer ones; None if all have to be merged.

        The table's rows are those of the large files without one of the keys of ``newer_rows``, and the rows of it.
        """
        return self.parts.batch_reads.large_runs(merged)

    def newer_rows(self, runs: LargeRuns, columns: Sequence[str]) -> NewerRows | None:
        """Read the newer files of ``runs``, with ``columns`` of their rows; None if all files have to be merged.

        Raises as ``read_split``.
        """
        return self.parts.batch_reads.newer_rows(runs, columns)

    def tells_standing_rows(self, merged: Plan) -> bool:
        """Return whether the keys alone tell which rows of ``plan_divided().merged`` are rows of the table.

        So they do if the newest version of each key is its row, or its deletion.
        """
        return self.parts.batch_reads.tells_standing_rows(merged)

    def standing_rows(self, split: Split) -> Iterator[StandingRows]:
        """Read the keys of a split of ``plan_divided().merged``, and yield which rows of its files are the table's.

        REQUIRES ``tells_standing_rows``. Rows of a file that no split yields as standing are left out. Raises as
        ``read_split``.
        """
        return self.parts.batch_reads.standing_rows(split)

    def stored_columns(self, schema_id: int) -> StoredColumns:
        """Return where the table's columns are in files written under that schema."""
        return self.parts.batch_reads.stored_columns(schema_id)

    def names_in_files(self, schema_id: int) -> frozenset[str]:
        """Return the names of all columns of the table in files written under that schema, also of dropped ones."""
        return self.parts.batch_reads.names_in_files(schema_id)

    def deleted_rows(self, file: UnmergedFile) -> npt.NDArray[np.int64]:
        """Return the positions of the file's rows that its deletion vector marks, ascending.

        Raises ``CorruptFileError`` for a vector that does not fit the file, ``NotFoundError`` for an expired one.
        """
        return self.parts.batch_reads.deleted_rows(file)

    def splits(self, plan: Plan, target_size_bytes: int | None = None) -> tuple[Split, ...]:
        """Return the splits of ``plan`` for tasks that run in parallel, of about the target size.

        Default: ``source.split.target-size``. Unlike ``plan.splits``, this divides a bucket whose files have to be
        merged by ranges of its keys, with bounds from footers of its files. Don't store positions in these splits:
        later versions may divide differently. Raises as ``read_split``.
        """
        return self.parts.batch_reads.splits(plan, target_size_bytes)

    def read_split(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Read the matching rows of one split of ``plan``, with the columns of this read.

        Raises ``SnapshotExpiredError`` if the files were deleted since, ``CorruptFileError`` for a damaged one.
        """
        return self.parts.batch_reads.read_split(split, self.columns, self.filter)

    def to_table(self) -> pa.Table:
        """Read all rows in this process, under the table's schema even if the snapshot is of an older one.

        Raises as ``plan`` and ``read_split``.
        """
        return self.parts.batch_reads.planned(self.find_snapshot(), self.columns, self.filter).to_table()

    def plan_changes(
        self,
        *,
        start_snapshot_id: int | None = None,
        end_snapshot_id: int | None = None,
        start_timestamp: Moment | None = None,
        end_timestamp: Moment | None = None,
        mode: str | ChangeMode = ChangeMode.NET,
    ) -> tuple[ChangeSplit, ...]:
        """Plan ``DynamicTable.changes`` for tasks: one picklable split per bucket, each for ``read_changes``.

        Raises ``InvalidInputError`` for an invalid range, ``SnapshotExpiredError`` or ``NotFoundError`` for a snapshot
        that does not exist.
        """
        return self.parts.change_scan.plan_range(
            snapshots=(start_snapshot_id, end_snapshot_id),
            times=(
                optional_millis(start_timestamp, "start_timestamp"),
                optional_millis(end_timestamp, "end_timestamp"),
            ),
            mode=mode,
        )

    def read_changes(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """Read the changes of one split of ``plan_changes``, with their row kinds."""
        return self.parts.change_scan.read(split)

    def snapshots_between(self, start_timestamp_millis: int, end_timestamp_millis: int) -> tuple[int, int]:
        """Return the snapshots committed in ``[start, end)`` as a pair of ids (exclusive, inclusive), equal if none.

        Pass the ids to ``changes`` to read the same changes again later. Raises ``SnapshotExpiredError`` if some of
        these snapshots may have expired, ``InvalidInputError`` if the end is before the start.
        """
        return self.parts.change_scan.range_of_times(start_timestamp_millis, end_timestamp_millis)

    def stream(
        self,
        *,
        position: StreamPosition | None = None,
        startup: str | StartupMode | None = None,
        timestamp: Moment | None = None,
        normalize: str | ScanNormalize | None = None,
        on_untracked: str | UntrackedScan | None = None,
        state_directory: str | None = None,
        whole_commits: bool = False,
    ) -> HybridSource:
        """Stream as ``DynamicTable.stream`` does, but without resolving the start, for engines that store positions.

        With ``whole_commits`` a poll never returns part of a commit, except from an eventual log, which has no commits.
        """
        return self.parts.streams.open(
            position=position,
            startup=startup,
            timestamp_millis=optional_millis(timestamp, "timestamp"),
            normalize=normalize,
            on_untracked=on_untracked,
            state_directory=state_directory,
            whole_commits=whole_commits,
        )

    @property
    def stream_row_kind_column(self) -> str | None:
        """The column of a stream that contains the row kind; None if all rows are inserts."""
        return self.parts.streams.row_kind_column

    @property
    def stream_is_complete(self) -> bool:
        """Whether streams return the pre-image of each change, whatever ``scan.normalize`` is."""
        return self.parts.streams.is_complete

    def keeps_stream_state(self, normalize: str | None) -> bool:
        """Return whether a stream with this ``normalize`` stores rows.

        Raises ``InvalidInputError`` for an unknown value, and for ``state`` of a table with a key and without a log.
        """
        return self.parts.streams.keeps_state(normalize)
