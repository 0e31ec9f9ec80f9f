"""``ingest``: writes the new changes of an external topic into a table, exactly once.

    newest snapshot ─▶ offsets of the source ─▶ records from there ─▶ rows and new offsets in one snapshot ─▶ and again

No other state is kept that could disagree: a process that crashes has committed both or neither, and after a rollback
the source is read again from where the restored content ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from storage_lib.errors import CorruptFileError, InvalidInputError, LogOffsetsExpiredError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.log_store.external.captured_topic import CapturedBatch
from storage_lib.log_store.external.external_format import ExternalFormat
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.log_store.external.source_schema_change import described, is_made
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.progress.operation import Operation, operation, report_to
from storage_lib.progress.progress import ProgressOption
from storage_lib.schema.encoding.moment import Moment, optional_millis
from storage_lib.schema.options.source_options import (
    ON_TRUNCATE,
    SCHEMA_CHANGE,
    OnReject,
    OnTruncate,
    SchemaChangeOfSource,
)
from storage_lib.schema.options.table_options import MergeEngine
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.protocol.source_offsets import SourceRange
from storage_lib.table.sources.gathered_changes import GatheredChanges
from storage_lib.table.sources.grown_topic import has_grown, warn_of_growth
from storage_lib.table.sources.new_column_defaults import warn_of_defaults
from storage_lib.table.sources.reject_watch import RejectWatch
from storage_lib.table.sources.row_check import RowCheck
from storage_lib.table.sources.source_changes import SourceChanges, Written

if TYPE_CHECKING:
    from storage_lib.log_store.codec.record_log import RecordLog

ROWS_PER_COMMIT = 1_000_000
"""Default of ``rows_per_commit``."""

_BYTES_PER_COMMIT = 256 << 20
_ATTEMPTS = 3
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """Result of ``ingest``: ``snapshot`` is its last commit, None if there were no new records.

    ``row_count`` counts changes; an update with its pre-image counts as two. ``skipped_count`` counts records that were
    refused and skipped, ``rejected_count`` those that are now in ``<table>$rejected``.
    """

    row_count: int
    commit_count: int
    skipped_count: int
    rejected_count: int
    snapshot: Snapshot | None
    offsets: LogOffsets


def ingest(
    table: DynamicTable,
    topic: str,
    *,
    options: Mapping[str, str],
    format: str = ExternalFormat.DEBEZIUM_JSON,  # noqa: A002  the field's word for it
    source: str | None = None,
    startup: str | None = None,
    timestamp: Moment | None = None,
    rows_per_commit: int = ROWS_PER_COMMIT,
    change_tracking: bool | None = None,
    skip_expired: bool = False,
    expect: RowCheck | None = None,
    progress: ProgressOption = None,
) -> IngestResult:
    """Write the new changes of an external topic into the table, each record exactly once.

    Reading resumes at the offsets that the newest snapshot stores for ``source`` (default: the topic's name). If it
    stores none, ``startup`` decides: ``full`` (default), ``latest``, or ``from-timestamp`` with ``timestamp``.
    ``format`` is ``debezium-json``, ``debezium-json-schema`` (a schema in each record), ``debezium-avro``, one of
    these with ``flattened`` in its name (``debezium-flattened-json``: rows without envelopes), ``upsert-kafka`` (JSON
    keys and values; a record without a value deletes the row of its key), or ``upsert-kafka-avro``. ``options`` are
    those of the Kafka client, ``log.kafka.*``, of a schema registry, ``log.schema-registry.*``, and of the source,
    ``source.*`` and ``debezium.*`` (docs/cdc.md). Columns are matched by name: columns that the table lacks are
    added if records carry a schema (``source.schema-change``), else ignored; of columns that a record lacks, and of
    values that it leaves out as unchanged, the stored values are kept.
    A commit has about ``rows_per_commit`` rows, or more if the broker returns more at once; only
    these are in memory. ``skip_expired`` continues after records that the topic's retention has deleted, and at the
    beginning of a topic that was deleted and recreated. ``expect`` is called with the new rows of each commit, and
    returns those that are not to be written, by position, with the column (or None) and the reason: their records are
    refused, as ``source.on-reject`` says. ``progress`` counts the offsets that were read, including those
    between records.

    Raises ``NotFoundError`` for the topic, ``LogOffsetsExpiredError`` for deleted records, and, unless ``options`` set
    ``source.on-reject`` to quarantine or skip, ``CorruptFileError`` for a record that cannot be decoded and
    ``InvalidInputError`` for one that does not fit the table; everything before it is committed. ``InvalidInputError``
    also if more records are refused than ``source.reject-max`` allows. Repeat the call after ``UnavailableError``,
    ``LeaseLostError`` and ``CommitConflictError`` (another process reads the same source). Earlier commits of the call
    stay.
    """
    if rows_per_commit < 1:
        message = f"table {table.name}: rows_per_commit is {rows_per_commit}; give 1 or more"
        raise InvalidInputError(message)
    arguments = {
        "log.format": format,
        "log.scan": startup,
        "log.scan.timestamp-millis": optional_millis(timestamp, "timestamp"),
    }
    given = {**options, **{key: str(value) for key, value in arguments.items() if value is not None}}
    foreign = ExternalTopic.parse({**given, "topic": topic}, table.arrow_schema)
    log = foreign.log()
    reader = SourceReader(
        table, foreign, log, source or topic, rows_per_commit, skip_expired=skip_expired, expect=expect
    )
    with report_to(progress):
        return reader.read_up_to(log.latest_offsets(), change_tracking=change_tracking)


class SourceReader:
    """Reads one source into one table."""

    def __init__(
        self,
        table: DynamicTable,
        foreign: ExternalTopic,
        log: RecordLog,
        source: str,
        rows_per_commit: int,
        *,
        skip_expired: bool,
        expect: RowCheck | None = None,
    ) -> None:
        self._table = table
        self._foreign = foreign
        self._log = log
        self._source = source
        self._rows_per_commit = rows_per_commit
        self._skip_expired = skip_expired
        self._expect = expect
        self._is_in_order = True
        self._done: _Done | None = None
        settings = foreign.settings
        self._watch = RejectWatch(table, settings.reject_limit, source, keeps=self._keeps)
        if foreign.settings.schema_change is None:
            evolving = replace(foreign.settings, schema_change=SchemaChangeOfSource.EVOLVE)
            self._foreign = replace(foreign, settings=evolving)
        self._refuse_truncation()
        self._follow_schema()

    def _refuse_truncation(self) -> None:
        """Refuse ``source.on-truncate=apply`` for a table whose rows a deletion does not remove."""
        if self._foreign.settings.on_truncate is not OnTruncate.APPLY:
            return
        options = self._table.options
        newest_wins = options.merge_engine in (MergeEngine.DEDUPLICATE, MergeEngine.VALUE_COUNT)
        if self._table.schema.is_append_only:
            what = "is append-only"
        elif options.ignore_delete:
            what = "has ignore-delete=true"
        elif not (newest_wins or options.removes_on_delete):
            what = f"has merge-engine={options.merge_engine}"
        else:
            return
        message = (
            f"table {self._table.name} {what}, so a deletion does not remove its rows, and {ON_TRUNCATE}=apply can't "
            f"empty it. Use {ON_TRUNCATE}=ignore to keep the rows, or leave it out to stop at a TRUNCATE"
        )
        raise InvalidInputError(message)

    def _follow_schema(self) -> None:
        self._captured = self._foreign.captured(self._log, self._table.schema)
        self._changes = SourceChanges(
            self._table, self._captured, self._source, is_in_order=self._is_in_order, expect=self._expect
        )

    def read_up_to(self, end: LogOffsets, *, change_tracking: bool | None) -> IngestResult:
        """Read up to ``end``, commit by commit; the first commit happens even without rows, to record the start.

        It also records the topic's id if an older snapshot lacks it: the topic may be recreated before its next record.
        """
        recorded = self._table.inspect.source_offsets(self._source)
        is_in_order = recorded is None or not has_grown(recorded, end)
        if recorded is not None and not is_in_order:
            warn_of_growth(self._table, self._foreign.name, recorded, end)
        if is_in_order is not self._is_in_order:
            self._is_in_order = is_in_order
            self._follow_schema()
        position = self._start(recorded)
        done = self._done = _Done(recorded)
        with operation("ingest", self._table.name, total=position.distance_to(end), unit="offsets") as offsets:
            while self._read_under_schema(position, end, offsets, done, change_tracking=change_tracking):
                # What precedes the change of the schema is committed.
                position = done.reached or position
        return done.result(position, keeps=self._keeps)

    def committed(self) -> IngestResult | None:
        """Return what the last ``read_up_to`` has committed, also if it has raised an error; None without a commit."""
        done = self._done
        return None if done is None or done.reached is None else done.result(done.reached, keeps=self._keeps)

    @property
    def schema_id(self) -> int:
        """Version of the table's columns that the last record was read with."""
        return self._table.schema.id

    @property
    def _keeps(self) -> bool:
        return self._foreign.settings.on_reject is OnReject.QUARANTINE

    def _read_under_schema(
        self, position: LogOffsets, end: LogOffsets, offsets: Operation, done: _Done, *, change_tracking: bool | None
    ) -> bool:
        """Commit what can be read under the table's schema; return whether it was changed before ``end``."""
        for step in self._steps(position, end, offsets):
            if step.change is not None:
                self._alter(step.change)
                return True
            recorded = done.reached
            if recorded is not None and recorded.is_same_place(step.end) and recorded.log_id == step.end.log_id:
                continue
            reached = SourceRange(source=self._source, start=recorded, end=step.end)
            if step.is_truncation:
                written = self._changes.truncate(reached, change_tracking=change_tracking)
            else:
                gathered = GatheredChanges.of(step.batches, self._table.arrow_schema)
                admit = partial(self._watch.check, gathered)
                written = self._changes.commit(gathered, reached, change_tracking=change_tracking, admit=admit)
                self._watch.passed()
            done.add(written, step.end)
        return False

    def _alter(self, change: CapturedBatch) -> None:
        """Make the changes of a source's columns, of which another process may have made some, even meanwhile."""
        for attempt in range(_ATTEMPTS):
            self._table = self._table.refresh()
            needed = [each for each in change.schema_changes if not is_made(self._table.schema, each)]
            if not needed:
                break
            what = " and ".join(map(described, needed))
            try:
                self._table = self._table.alter(*needed)
            except InvalidInputError as error:
                if attempt < _ATTEMPTS - 1:
                    continue
                message = (
                    f"topic {self._foreign.name!r}, partition {change.bucket}, offset {change.next_offset}: the source "
                    f"{what}, which the table can't follow: {error}. Everything before this record was committed. Set "
                    f"{SCHEMA_CHANGE}=ignore to leave out new columns and keep the types"
                )
                raise InvalidInputError(message) from error
            _log.info("table %s follows source %s, which %s", self._table.name, self._source, what)
            warn_of_defaults(self._table, self._source, change, [each.name for each in needed])
            break
        self._follow_schema()

    def _start(self, recorded: LogOffsets | None) -> LogOffsets:
        if recorded is None:
            return self._foreign.first_offsets(self._log)
        if self._skip_expired:
            earliest = self._log.earliest_offsets()
            return recorded.in_log(earliest.log_id).advanced_to(earliest.next_offsets)
        log_id = self._log.log_id()
        self._foreign.refuse_recreated(recorded, log_id)
        return recorded.in_log(log_id)

    def _steps(self, start: LogOffsets, end: LogOffsets, offsets: Operation) -> Iterator[_Step]:
        """Yield what to commit, at least one step; the last one ends at ``end``.

        If a record is refused, everything before it is yielded before the error is raised.
        """
        reached, gathered, row_count, byte_count = start, list[CapturedBatch](), 0, 0
        refused: Exception | None = None
        try:
            for batch in self._captured.read(
                start, start.advanced_to(end.next_offsets), check=self._changes.fitting.checked
            ):
                if batch.schema_changes:
                    yield _Step(gathered, reached.advanced_to({batch.bucket: batch.next_offset}))
                    yield _Step([], reached, change=batch)
                    return
                if batch.truncation_offset is not None:
                    yield _Step(gathered, reached)
                    reached = reached.advanced_to({batch.bucket: batch.truncation_offset + 1})
                    yield _Step([], reached, is_truncation=True)
                    gathered, row_count, byte_count = [], 0, 0
                gathered.append(batch)
                offsets.advance(max(0, batch.next_offset - reached.of(batch.bucket)))
                reached = reached.advanced_to({batch.bucket: batch.next_offset})
                row_count, byte_count = row_count + batch.changes.rows.num_rows, byte_count + batch.changes.rows.nbytes
                if row_count >= self._rows_per_commit or byte_count >= _BYTES_PER_COMMIT:
                    yield _Step(gathered, reached)
                    gathered, row_count, byte_count = [], 0, 0
        except LogOffsetsExpiredError as error:
            message = (
                f"table {self._table.name}: source {self._source!r} was read up to offsets {start.to_json()}, but "
                f"topic {self._foreign.name!r} does not hold what follows: {error}. Read it more often, or raise the "
                "topic's retention; ingest(skip_expired=True) continues with what it still holds, without the rest"
            )
            raise LogOffsetsExpiredError(message) from error
        except (CorruptFileError, InvalidInputError) as error:
            refused = error
        yield _Step(gathered, reached)
        if refused is not None:
            raise refused


@dataclass(frozen=True, slots=True)
class _Step:
    """What one commit contains: changes up to ``end``, or the deletion of all rows; or a change of the schema."""

    batches: list[CapturedBatch]
    end: LogOffsets
    is_truncation: bool = False
    change: CapturedBatch | None = None


class _Done:
    """The commits so far; ``reached`` is where the last one ends."""

    def __init__(self, reached: LogOffsets | None) -> None:
        self.reached = reached
        self._row_count = self._commit_count = self._refused_count = 0
        self._snapshot: Snapshot | None = None

    def add(self, written: Written, end: LogOffsets) -> None:
        """Count a commit."""
        self.reached, self._snapshot = end, written.snapshot
        self._row_count += written.row_count
        self._refused_count += written.refused_count
        self._commit_count += 1

    def result(self, start: LogOffsets, *, keeps: bool) -> IngestResult:
        """Return the result; ``keeps``: refused records are kept apart."""
        return IngestResult(
            row_count=self._row_count,
            commit_count=self._commit_count,
            skipped_count=0 if keeps else self._refused_count,
            rejected_count=self._refused_count if keeps else 0,
            snapshot=self._snapshot,
            offsets=self.reached or start,
        )
