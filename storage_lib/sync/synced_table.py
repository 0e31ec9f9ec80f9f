"""One table of a sync and the topics that it follows, read in turns, so that a large topic does not delay others."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from polars.exceptions import PolarsError

from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.errors import AlreadyExistsError, InvalidInputError, StorageError
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.schema.options.source_options import KEY_CHANGE, KeyChange
from storage_lib.sync.first_columns import first_columns
from storage_lib.table.sources.ingest import IngestResult, SourceReader
from storage_lib.table.sources.source_lag import topics_read

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.log_store.codec.record_log import RecordLog
    from storage_lib.log_store.external.topic_list import TopicList
    from storage_lib.log_store.log_offsets import LogOffsets
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.sources.row_check import RowCheck

_OF_A_TOPIC = (
    StorageError,
    OSError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    PolarsError,
)
"""Errors that stop one topic, and are in the result. Others are of who calls, such as the end of its task."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSettings:
    """How the topics of a sync are read. ``options`` are those of the catalog and of the source, with the format.

    ``table_options`` are those of new tables. A turn reads about ``rows_per_turn`` records of a topic. ``expect`` has
    the checks of new rows, by table.
    """

    options: Mapping[str, str] = field(repr=False)
    table_options: Mapping[str, str]
    rows_per_turn: int
    skip_expired: bool
    change_tracking: bool | None
    expect: Mapping[str, RowCheck] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSync:
    """The work of a run for one table.

    ``snapshot_id`` is that of the last commit, None without one. ``lag`` is the number of offsets that its topics have
    and the table does not; None if that is unknown. ``schema_change_count`` counts changes of its columns,
    ``is_waiting``: the table does not exist, because its topics have no records yet. ``errors`` are by topic: reading
    it has stopped there until the next run.
    """

    table: str
    topics: tuple[str, ...]
    is_created: bool = False
    is_waiting: bool = False
    row_count: int = 0
    commit_count: int = 0
    snapshot_id: int | None = None
    skipped_count: int = 0
    rejected_count: int = 0
    schema_change_count: int = 0
    lag: int | None = None
    errors: Mapping[str, Exception] = field(default_factory=dict)


class SyncedTable:
    """Reads the topics of one table up to the ends that they had at the first turn. Used by one thread at a time."""

    def __init__(
        self,
        catalog: Catalog,
        topics: TopicList,
        settings: SyncSettings,
        name: str,
        of_table: Sequence[str],
        *,
        merge_shards: bool = False,
    ) -> None:
        self._catalog = catalog
        self._merge_shards = merge_shards
        self._topics = topics
        self._settings = settings
        # The table has the key of the source, unless somebody says otherwise.
        self._options = {KEY_CHANGE: KeyChange.FAIL.value, **settings.options}
        self._ends: dict[str, LogOffsets] = {}
        self._left = list(of_table)
        self.result = TableSync(table=name, topics=tuple(of_table))

    def turn(self) -> bool:
        """Read a part of each topic; return whether there is more. An error stops only its topic."""
        for topic in list(self._left):
            try:
                is_done = self._read_some(topic)
            except _OF_A_TOPIC as error:
                _log.warning("sync of %s: topic %r stops: %s", self.result.table, topic, error)
                self.result = replace(self.result, errors={**self.result.errors, topic: error})
                is_done = True
            if is_done:
                self._left.remove(topic)
        return bool(self._left)

    def _read_some(self, topic: str) -> bool:
        """Read a part of a topic; return whether its end is reached."""
        log = self._topics.log(topic)
        table = self._table(topic, log)
        if table is None:
            self.result = replace(self.result, is_waiting=True)
            return True
        if not self._merge_shards:
            _refuse_table_of_another_topic(table, topic)
        end = self._ends.setdefault(topic, log.latest_offsets())
        foreign = ExternalTopic.parse({**self._options, "topic": topic}, table.arrow_schema)
        reader = SourceReader(
            table,
            foreign,
            log,
            topic,
            self._settings.rows_per_turn,
            skip_expired=self._settings.skip_expired,
            expect=self._settings.expect.get(self.result.table),
        )
        target = self._target(table, topic, log, end)
        self.result = replace(self.result, is_waiting=False)
        try:
            read = reader.read_up_to(target, change_tracking=self._settings.change_tracking)
        finally:
            # What precedes a record that stops the topic is committed.
            self._count(reader.committed(), reader.schema_id - table.schema.id)
        if read.offsets.distance_to(end):
            return False
        behind = read.offsets.distance_to(log.latest_offsets())
        self.result = replace(self.result, lag=(self.result.lag or 0) + behind)
        return True

    def _count(self, read: IngestResult | None, schema_changes: int) -> None:
        result = replace(self.result, schema_change_count=self.result.schema_change_count + schema_changes)
        if read is not None:
            result = replace(
                result,
                row_count=result.row_count + read.row_count,
                commit_count=result.commit_count + read.commit_count,
                snapshot_id=result.snapshot_id if read.snapshot is None else read.snapshot.id,
                skipped_count=result.skipped_count + read.skipped_count,
                rejected_count=result.rejected_count + read.rejected_count,
            )
        self.result = result

    def _target(self, table: DynamicTable, topic: str, log: RecordLog, end: LogOffsets) -> LogOffsets:
        """Return where this turn ends: a share of the records in each partition, up to ``end``."""
        earliest = log.earliest_offsets()
        reached = table.inspect.source_offsets(topic)
        start = earliest if reached is None else reached.in_log(earliest.log_id).advanced_to(earliest.next_offsets)
        ahead = [each for each, offset in end.next_offsets.items() if offset > start.of(each)]
        share = max(1, self._settings.rows_per_turn // max(1, len(ahead)))
        nearer = {each: min(end.of(each), start.of(each) + share) for each in ahead}
        return replace(end, next_offsets={**end.next_offsets, **nearer})

    def _table(self, topic: str, log: RecordLog) -> DynamicTable | None:
        """Return the table, created from the topic's first schema if it is missing; None if there is none yet."""
        name = self.result.table
        if self._catalog.table_exists(name):
            return self._catalog.load_table(name)
        found = first_columns({**self._options, "topic": topic}, log)
        if found is None:
            return None
        try:
            descriptor = TableDescriptor(
                schema=tuple((column, of.not_null() if column in found.key else of) for column, of in found.columns),
                primary_key=found.key,
                options=dict(self._settings.table_options),
                column_comments=found.comments,
            )
            table = self._catalog.create_table(name, descriptor, if_not_exists=True)
        except AlreadyExistsError:
            if not self._catalog.table_exists(name):
                raise  # what exists is the topic of its log, or a view
            return self._catalog.load_table(name)  # another run has created it at this moment
        _log.info("sync: created table %s with key (%s) for topic %r", name, ", ".join(found.key), topic)
        self.result = replace(self.result, is_created=True)
        return table


def _refuse_table_of_another_topic(table: DynamicTable, topic: str) -> None:
    """Raise ``InvalidInputError`` if the table has read topics, but not this one: it may belong to another sync."""
    others = topics_read(table)
    if others and topic not in others:
        message = (
            f"table {table.name} has the rows of topic {others[0]!r}, and those of {topic!r} with the same keys would "
            "replace them. Give the topic's table another name (rename, prefix, another database); or drop the table "
            f"first, if {topic!r} has a snapshot of everything; or merge them on purpose with merge_shards=True. "
            "Nothing was written"
        )
        raise InvalidInputError(message)
