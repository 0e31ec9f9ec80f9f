"""``reingest``: writes rejected records into their table after a fix, each exactly once.

    newest snapshot ─▶ rejected records ─▶ fixes ─▶ decoder ─▶ rows, and the same records out of the rejected ones
                                                               in one snapshot

A process that crashes has committed both or neither. A record that another one has re-ingested is not written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.external.external_format import ExternalFormat
from storage_lib.log_store.external.external_topic import ExternalTopic
from storage_lib.schema.options.source_options import ON_REJECT, OnReject
from storage_lib.schema.types.rejected_schema import ID
from storage_lib.table.changes.source_matching import places_of
from storage_lib.table.sources.gathered_changes import GatheredChanges
from storage_lib.table.sources.record_fixes import RecordFixes
from storage_lib.table.sources.rejected_log import RejectedLog
from storage_lib.table.sources.source_changes import SourceChanges

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable


class OnStored(StrEnum):
    """What happens with a rejected record of a key that the table has a row of, which may be newer than the record."""

    KEEP = "keep"
    REPLACE = "replace"
    DISCARD = "discard"


_STORED = (
    "the table has a row of its key, which may be newer. on_stored='replace' writes the record over it, "
    "on_stored='discard' removes the record"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReingestResult:
    """Result of ``reingest``: ``snapshot`` is its last commit, None if no record left the rejected ones.

    ``record_count`` records left with ``row_count`` rows; ``remaining`` tells why others stay, by their ids.
    """

    record_count: int
    row_count: int
    remaining: Mapping[str, str]
    snapshot: Snapshot | None


def reingest(
    table: DynamicTable,
    *,
    options: Mapping[str, str] | None = None,
    format: str = ExternalFormat.DEBEZIUM_JSON,  # noqa: A002  the field's word for it
    ids: Sequence[str] | None = None,
    source: str | None = None,
    column: str | None = None,
    fixes: Mapping[str, str] | None = None,
    on_stored: str = OnStored.KEEP,
    change_tracking: bool | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
) -> ReingestResult:
    """Write rejected records into the table and remove them from the rejected ones, each exactly once.

    ``ids``, ``source`` and ``column`` choose records (default: all). They are decoded as ``format`` with ``options``,
    as by ``ingest``, under the table's newest columns. ``fixes`` replaces values of JSON records before: SQL
    expressions by column, such as ``{"name": "left(name, 10)", "price": "coalesce(price, 0)"}``, over the values as the
    record has them. Records that still do not fit stay, with their reasons in the result.

    A record is older than those that were read after it. ``sequence.field`` orders the rows of a key; in a table with a
    key but without it, ``on_stored`` decides what happens with a record whose key the table has a row of: ``keep`` it
    among the rejected ones, ``replace`` the row, or ``discard`` the record.

    A call that is repeated under its ``(commit_user, commit_identifier)`` returns the snapshot of the first one.

    Raises ``NotFoundError`` for an unknown id, ``InvalidInputError`` for a fix of a column that the table lacks, and
    ``CommitConflictError`` if another process has changed the table or re-ingested the records meanwhile: repeat the
    call.
    """
    try:
        policy = OnStored(on_stored)
    except ValueError as error:
        message = f"table {table.name}: on_stored is {on_stored!r}; use one of {', '.join(OnStored)}"
        raise InvalidInputError(message) from error
    mended = _fixes_of(table, fixes or {})
    if commit_user is not None and commit_identifier is not None:
        earlier = table.inspect.find_commit(commit_user, commit_identifier)
        if earlier is not None:
            return ReingestResult(record_count=0, row_count=0, remaining={}, snapshot=earlier)
    base = table.inspect.latest_snapshot_id() or 0
    records = table.inspect.rejected_records(ids=ids, source=source, column=column)
    given = {**(options or {}), "log.format": format, ON_REJECT: OnReject.QUARANTINE}
    parts = [
        _decoded(table, {**given, "topic": topic, "source": of_source}, group, mended, policy, base)
        for (of_source, topic), group in _by_topic(records)
    ]
    remaining = {each: reason for part in parts for each, reason in part.remaining.items()}
    done = [each for part in parts for each in part.done]
    if not done:
        return ReingestResult(record_count=0, row_count=0, remaining=remaining, snapshot=None)
    rows = pa.concat_tables([part.rows for part in parts])
    snapshot = table.append(
        rows,
        resolved=done,
        change_tracking=change_tracking,
        commit_user=commit_user,
        commit_identifier=commit_identifier,
        based_on=min((part.based_on for part in parts if part.based_on is not None), default=None),
    )
    return ReingestResult(record_count=len(done), row_count=rows.num_rows, remaining=remaining, snapshot=snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What becomes of the records of one topic: ids that go in with ``rows``, and reasons of those that stay.

    ``based_on``: the snapshot after which no other commit may have come; None if any may have.
    """

    rows: pa.Table
    done: list[str]
    remaining: dict[str, str]
    based_on: int | None


def _fixes_of(table: DynamicTable, fixes: Mapping[str, str]) -> RecordFixes:
    """Parse fixes; ``InvalidInputError`` for one of a column that the table lacks, which would change nothing."""
    columns = [each.name for each in table.schema.fields]
    # Flattened records have fields such as __deleted in their rows.
    unknown = [each for each in fixes if each not in columns and not each.startswith("__")]
    if unknown:
        message = f"table {table.name}: fix of {unknown[0]!r}, which is not a column; there are {', '.join(columns)}"
        raise InvalidInputError(message)
    return RecordFixes.parse(fixes)


def _by_topic(records: pa.Table) -> list[tuple[tuple[str, str], pa.Table]]:
    """Divide records by source and topic; those of a topic in their order."""
    records = records.sort_by([(name, "ascending") for name in ("source", "topic", "partition", "offset")])
    pairs = dict.fromkeys(zip(records["source"].to_pylist(), records["topic"].to_pylist(), strict=True))
    return [
        (pair, records.filter(pc.and_(pc.equal(records["source"], pair[0]), pc.equal(records["topic"], pair[1]))))
        for pair in pairs
    ]


def _decoded(
    table: DynamicTable, options: Mapping[str, str], group: pa.Table, fixes: RecordFixes, policy: OnStored, base: int
) -> _Part:
    values, unfixed = fixes.applied(group["value"].combine_chunks())
    topic = ExternalTopic.parse(options, table.arrow_schema)
    log = RejectedLog(group, values)
    captured = topic.captured(log, table.schema, is_stored=True)
    ids = group[ID].to_pylist()
    source = SourceChanges(table, captured, topic.source)
    batches = list(captured.read(log.earliest_offsets(), log.latest_offsets(), check=source.fitting.checked))
    changes = GatheredChanges.of(batches, table.arrow_schema)
    changes = changes.where(~np.isin(changes.offsets, list(unfixed)))
    is_stored = np.isin(changes.offsets, [] if policy is OnStored.REPLACE else _of_stored_keys(table, changes, base))
    stored = changes.offsets[is_stored].tolist()
    stays = {*stored, *unfixed} if policy is OnStored.KEEP else {*unfixed}
    # Those that stay may have changed what later ones of their key leave out.
    resolving = [each for index, each in enumerate(ids) if index not in stays]
    completed_by, rows, refused = source.whole(changes.where(~is_stored), resolving=resolving)
    reasons = {each.offset: each.reason for each in refused}
    reasons |= dict.fromkeys(stored, _STORED) if policy is OnStored.KEEP else {}
    reasons |= unfixed
    return _Part(
        rows=rows,
        done=[each for index, each in enumerate(ids) if index not in reasons],
        remaining={each: reasons[index] for index, each in enumerate(ids) if index in reasons},
        # Meanwhile others may write a row of a key that has none in this snapshot.
        based_on=base if _needs_newest(table) else completed_by,
    )


def _needs_newest(table: DynamicTable) -> bool:
    return bool(table.schema.primary_keys) and not table.options.sequence_field


def _of_stored_keys(table: DynamicTable, changes: GatheredChanges, base: int) -> list[int]:
    """Return the records whose key the table has a row of, unless the table orders rows by itself."""
    if not base or not _needs_newest(table) or not changes.rows.num_rows:
        return []
    names = list(table.schema.primary_keys)
    keys = changes.rows.select(names)
    stored = table.lookup(keys, columns=names, snapshot_id=base).select(names)
    return [int(each) for each in np.unique(changes.offsets[places_of(keys, stored) >= 0])]
