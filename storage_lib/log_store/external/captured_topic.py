"""An external topic that is read as changes of one table: decoded, checked, and refused records treated as asked.

records ─▶ decoder ─▶ check ─▶ refusals: fail, skip, keep apart ─▶ divided at each TRUNCATE ─▶ batches
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.errors import CorruptFileError, InvalidInputError, LogOffsetsExpiredError
from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal
from storage_lib.log_store.codec.record_origin import RecordOrigin
from storage_lib.log_store.external.changed_key import first_other_key
from storage_lib.log_store.external.compacted_topic import sure_changes
from storage_lib.log_store.external.skipped_offsets import places_of
from storage_lib.log_store.external.source_schema_change import changes_for, described
from storage_lib.log_store.external.told_tombstones import without_told_tombstone
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.evolution.schema_changes import AddColumn
from storage_lib.schema.options.source_options import (
    KEY_CHANGE,
    ON_REJECT,
    SCHEMA_CHANGE,
    SKIP,
    KeyChange,
    OnReject,
    OnTruncate,
    SchemaChangeOfSource,
)

if TYPE_CHECKING:
    from storage_lib.log_store.capture.capture_decoder import CaptureDecoder
    from storage_lib.log_store.codec.log_columns import LogColumns
    from storage_lib.log_store.codec.record_log import RecordLog
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    from storage_lib.log_store.external.source_settings import SourceSettings
    from storage_lib.schema.evolution.schema_changes import AlterType

    Check = Callable[[CapturedChanges], CapturedChanges]
    """Adds refusals of rows that do not fit the table, and takes these rows away."""

_EXCERPT_BYTES = 200
_NEAR = 1000
"""Records with at most so many offsets between them are read at once."""

_NOTHING_WRITTEN = "Nothing of the commit that it belongs to was written"
_BEFORE_COMMITTED = "Everything before it was committed"
_BY_HAND = f"it is skipped by option {SKIP}"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRecord:
    """A record that gave no rows, where it is, and why; ``timestamp_millis`` is Kafka's."""

    partition: int
    offset: int
    timestamp_millis: int
    key: bytes | None
    value: bytes | None
    column: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedBatch:
    """Changes of one partition, in order. ``offsets`` (int64) and ``keys`` (binary) are those of the rows' records.

    ``keys`` are null if no row leaves out an unchanged value. ``truncation_offset``: the record there deleted all rows
    of the source, before these changes. ``refused`` are the records that were refused, and are skipped or kept apart.
    ``schema_changes`` have to be made, by a reader that evolves its table, before it reads on from there; ``defaults``
    are those that the source has for columns among them, as written. The next read starts at ``next_offset``.
    """

    bucket: int
    changes: CapturedChanges
    offsets: np.ndarray
    keys: pa.Array
    next_offset: int
    truncation_offset: int | None = None
    refused: tuple[RefusedRecord, ...] = ()
    schema_changes: tuple[AddColumn | AlterType, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTopic:
    """One topic with the decoder of its records; picklable. ``registry`` has the schemas of records in Avro.

    ``outcome`` says in errors whether the records were committed that precede the one that stops the reader.
    """

    name: str
    log: RecordLog
    decoder: CaptureDecoder
    settings: SourceSettings
    registry: SchemaRegistry | None = None
    outcome: str = _BEFORE_COMMITTED

    def read(
        self,
        start: LogOffsets,
        end: LogOffsets | None = None,
        *,
        buckets: tuple[int, ...] | None = None,
        check: Check | None = None,
    ) -> Iterator[CapturedBatch]:
        """Yield the changes between two positions, as ``LogStore.read`` does.

        A TRUNCATE starts a batch of its own. Before an error for a refused record is raised, everything before it has
        been yielded. Raises ``CorruptFileError`` for a record that can't be read, ``InvalidInputError`` for one that
        can't be applied, and for a TRUNCATE unless ``source.on-truncate`` allows it. Ends after a batch that asks for
        changes of the table.
        """
        for records in self.log.records(start, end, buckets=buckets):
            skipped = self._skipped_by_hand(records.bucket, records.columns)
            columns = without_told_tombstone(records.bucket, records.columns, self.decoder, self.log)
            columns = self._with_origin(records.bucket, columns)
            columns = columns.without(skipped[0]) if len(skipped[0]) else columns
            changes = sure_changes(self.decoder.captured(columns), self.decoder.table, self.log)
            waiting = skipped[1]
            for batch in self._settled(
                records.bucket, columns, check(changes) if check else changes, records.next_offset
            ):
                passed = tuple(each for each in waiting if each.offset < batch.next_offset)
                waiting = waiting[len(passed) :]
                yield replace(batch, refused=(*passed, *batch.refused))
                if batch.schema_changes:
                    return

    def _with_origin(self, bucket: int, columns: LogColumns) -> LogColumns:
        """Return the records with their places in the topic, if columns are filled with them."""
        if not self.decoder.table.metadata or columns.origin is not None:
            return columns
        return replace(columns, origin=RecordOrigin.in_partition(bucket, columns.offsets))

    def _skipped_by_hand(self, bucket: int, columns: LogColumns) -> tuple[np.ndarray, tuple[RefusedRecord, ...]]:
        """Return the records that ``source.skip`` names, and their indices."""
        places = places_of(self.settings.skipped, bucket, columns)
        records = tuple(
            _record(bucket, columns, Refusal(record_index=int(index), column=None, reason=_BY_HAND)) for index in places
        )
        for each in records:
            _log.warning("%s", self._description(each, is_unreadable=False))
        return places, records

    def refuse_later(self, bucket: int, problems: Mapping[int, tuple[str | None, str]]) -> list[RefusedRecord]:
        """Treat records that turned out not to fit when their commit was prepared: raise, or return them.

        ``problems`` has by offset the column, if a single one is at fault, and the reason.
        """
        found: list[RefusedRecord] = []
        for first, last in _runs(sorted(problems)):
            start, end = LogOffsets({bucket: first}), LogOffsets({bucket: last + 1})
            for records in self.log.records(start, end, buckets=(bucket,)):
                held = np.flatnonzero(np.isin(records.columns.offsets, list(problems)))
                for index in held.tolist():
                    column, reason = problems[int(records.columns.offsets[index])]
                    refusal = Refusal(record_index=index, column=column, reason=reason)
                    found.append(self._settle(bucket, records.columns, refusal, _NOTHING_WRITTEN))
        lost = min(problems.keys() - {each.offset for each in found}, default=None)
        if lost is not None:
            message = (
                f"topic {self.name!r}, partition {bucket}: the record at offset {lost} is no longer held, and could "
                f"not be applied: {problems[lost][1]}. {_NOTHING_WRITTEN}"
            )
            raise LogOffsetsExpiredError(message)
        return found

    def _settled(
        self, bucket: int, columns: LogColumns, changes: CapturedChanges, next_offset: int
    ) -> Iterator[CapturedBatch]:
        truncations = set[int]() if self.settings.on_truncate is OnTruncate.IGNORE else {*changes.truncations.tolist()}
        fails = changes.refusals[:1] if self.settings.on_reject is OnReject.FAIL else ()
        changed = self._first_changed(changes)
        other_keys = self._other_key(columns, changes)
        begin, truncated = 0, None
        for stop in sorted({*truncations, *(each.record_index for each in fails), *changed, *other_keys}):
            offset = int(columns.offsets[stop])
            if stop > begin or truncated is not None:
                yield self._batch(bucket, columns, changes.between(begin, stop), offset, truncated)
            if stop in other_keys:
                raise self._key_error(bucket, offset, other_keys[stop])
            if stop in changed:
                yield self._change(bucket, changes, offset, changed[stop])
                return
            for each in fails:
                if each.record_index == stop:
                    self._settle(bucket, columns, each)
            self._refuse_truncation(bucket, offset)
            begin, truncated = stop, offset
        rest = changes.between(begin, len(columns))
        yield self._batch(bucket, columns, rest, next_offset, truncated)

    def _first_changed(self, changes: CapturedChanges) -> dict[int, tuple[AddColumn | AlterType, ...]]:
        """Return the first record, if there is any, whose schema needs other columns than the table has."""
        if self.settings.schema_change in (None, SchemaChangeOfSource.IGNORE):
            return {}
        for each in changes.schemas:
            table = self.decoder.table
            filled = table.metadata_names  # a column of the source with such a name is not read
            columns = {name: of for name, of in each.columns.items() if name not in filled}
            needed = changes_for(table.schema, columns)
            if needed:
                return {each.record_index: needed}
        return {}

    def _other_key(self, columns: LogColumns, changes: CapturedChanges) -> dict[int, tuple[str, ...]]:
        """Return the first record, if there is any, whose key has other columns than the table's, with these."""
        if self.settings.key_change is KeyChange.IGNORE:
            return {}
        found = first_other_key(columns.keys, changes, self.decoder.table.primary_keys, self.registry)
        return {} if found is None else dict([found])

    def _key_error(self, bucket: int, offset: int, names: Sequence[str]) -> InvalidInputError:
        """Return the error for a record whose key has these columns."""
        ours = self.decoder.table.primary_keys
        theirs = f"the key of the source is ({', '.join(names)})" if names else "the source has no key"
        held = f"that of the table is ({', '.join(ours)})" if ours else "the table has none"
        return InvalidInputError(
            f"topic {self.name!r}, partition {bucket}, offset {offset}: {theirs}, but {held}, so that rows of the "
            f"source may be one row of the table, or the other way round. {self.outcome}. "
            "Let the connector write into a new topic, from a new snapshot, for a table with the new key; or, if the "
            f"table has a key of its own, set {KEY_CHANGE}=ignore"
        )

    def _change(
        self, bucket: int, changes: CapturedChanges, offset: int, needed: tuple[AddColumn | AlterType, ...]
    ) -> CapturedBatch:
        """Return the batch that asks for changes of the table, or raise the error for them."""
        if self.settings.schema_change is SchemaChangeOfSource.FAIL:
            message = (
                f"topic {self.name!r}, partition {bucket}, offset {offset}: the source "
                f"{' and '.join(map(described, needed))}, which the table can't hold. {self.outcome}. "
                f"Alter the table, or set {SCHEMA_CHANGE}=evolve, or =ignore to leave out new columns"
            )
            raise InvalidInputError(message)
        written = {name: of for each in changes.schemas for name, of in each.columns.items()}
        new = [each.name for each in needed if isinstance(each, AddColumn)]
        return CapturedBatch(
            bucket=bucket,
            changes=changes.between(0, 0),
            offsets=np.zeros(0, np.int64),
            keys=pa.nulls(0, pa.binary()),
            next_offset=offset,
            schema_changes=needed,
            defaults={name: written[name].default for name in new if written[name].default is not None},
        )

    def _refuse_truncation(self, bucket: int, offset: int) -> None:
        if self.settings.on_truncate is OnTruncate.APPLY:
            count = len(self.log.latest_offsets().next_offsets)
            if count == 1:
                return
            message = (
                f"topic {self.name!r}, partition {bucket}, offset {offset}: the source was truncated, but the topic "
                f"has {count} partitions, and nobody knows which of their records come before. {self.outcome}. "
                f"Delete the rows by hand and continue with {SKIP}={bucket}:{offset}, and let the connector "
                "write into one partition"
            )
            raise InvalidInputError(message)
        message = (
            f"topic {self.name!r}, partition {bucket}, offset {offset}: the source was truncated. "
            f"source.on-truncate=apply deletes all rows of the table, source.on-truncate=ignore keeps them. "
            f"{self.outcome}"
        )
        raise InvalidInputError(message)

    def _batch(
        self, bucket: int, columns: LogColumns, changes: CapturedChanges, next_offset: int, truncated: int | None
    ) -> CapturedBatch:
        refused = tuple(self._settle(bucket, columns, each) for each in changes.refusals)
        places = pa.array(changes.record_indices)
        return CapturedBatch(
            bucket=bucket,
            changes=changes,
            offsets=columns.offsets[changes.record_indices],
            keys=columns.keys.take(places) if changes.unavailable else pa.nulls(len(places), pa.binary()),
            next_offset=next_offset,
            truncation_offset=truncated,
            refused=refused,
        )

    def _settle(self, bucket: int, columns: LogColumns, refusal: Refusal, outcome: str | None = None) -> RefusedRecord:
        """Raise the error for a refused record, or return it; log a warning if it is skipped."""
        record = _record(bucket, columns, refusal)
        if self.settings.on_reject is OnReject.QUARANTINE:
            return record
        what = self._description(record, is_unreadable=refusal.is_unreadable)
        if self.settings.on_reject is OnReject.SKIP:
            _log.warning("%s. It is skipped", what)
            return record
        message = (
            f"{what}. {outcome or self.outcome}. Correct its source or the table, or set {ON_REJECT}=quarantine (to "
            f"keep such records apart) or skip, or {SKIP}={record.partition}:{record.offset} to skip this one"
        )
        raise (CorruptFileError if refusal.is_unreadable else InvalidInputError)(message)

    def _description(self, record: RefusedRecord, *, is_unreadable: bool) -> str:
        key = None if record.key is None else record.key[:_EXCERPT_BYTES]
        column = "" if record.column is None else f", column {record.column!r}"
        problem = f"not a {self.decoder.name} change of this table" if is_unreadable else "can't be applied"
        return (
            f"topic {self.name!r}, partition {record.partition}, offset {record.offset}, key {key!r}{column}: "
            f"{problem}: {record.reason}. The record starts with {(record.value or b'')[:_EXCERPT_BYTES]!r}"
        )


def _runs(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges, first and last offset, that together have all of some ascending offsets, and few others."""
    begin = 0
    for place in range(1, len(offsets) + 1):
        if place == len(offsets) or offsets[place] - offsets[place - 1] > _NEAR:
            yield offsets[begin], offsets[place - 1]
            begin = place


def _record(bucket: int, columns: LogColumns, refusal: Refusal) -> RefusedRecord:
    index = refusal.record_index
    return RefusedRecord(
        partition=bucket,
        offset=int(columns.offsets[index]),
        timestamp_millis=int(columns.timestamps[index]),
        key=columns.keys[index].as_py(),
        value=columns.values[index].as_py(),
        column=refusal.column,
        reason=refusal.reason,
    )
