"""Decide what a refresh has to do: nothing, apply the sources' changes, or compute the whole query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.materialized.plan.refresh_costs import COSTS, RefreshSize
from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.materialized.sources.consistent_snapshots import consistent_snapshots
from storage_lib.materialized.sources.own_source import OwnSource
from storage_lib.materialized.sources.source_positions import (
    COLUMNS,
    DEFINITION,
    SourcePosition,
    position_of_columns,
    position_of_definition,
    recorded_position,
)
from storage_lib.materialized.sources.source_tables import columns_read, needed_columns
from storage_lib.schema.options.materialized_table import RefreshMode
from storage_lib.table.protocol.source_offsets import SourceOffsets, SourceRange

if TYPE_CHECKING:
    from storage_lib.materialized.algebra import CompiledQuery
    from storage_lib.materialized.sources.source import Source
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.table.dynamic_table import DynamicTable


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshPlan:
    """Work of one refresh. ``before`` and ``after`` are numbers of the sources' states, by name; 0: empty.

    ``before`` is only set for an incremental refresh. ``ranges`` are the positions from which and to which the commit
    moves the table, ``based_on`` is the table's newest snapshot (0: none).
    """

    work: RefreshWork
    reason: str
    based_on: int
    before: Mapping[str, int]
    after: Mapping[str, int]
    ranges: tuple[SourceRange, ...]
    watermark: int | None
    keeps_snapshots: bool = False
    """Whether the next refresh may apply changes since ``after``."""


def refresh_plan(
    table: DynamicTable, definition: MaterializedTableDefinition, bound: BoundQuery, *, full: bool, why: str = ""
) -> RefreshPlan:
    """Plan a refresh of the table. ``full``: compute the whole query, for the reason ``why``, even without changes."""
    newest = table.inspect.latest_snapshot()
    recorded = SourceOffsets() if newest is None else table.inspect.source_positions(newest.id)
    names = {name: source.key for name, source in bound.sources.items()}
    known = {name: recorded_position(recorded, key) for name, key in names.items()}
    is_current = recorded_position(recorded, DEFINITION) == position_of_definition(definition)
    columns = position_of_columns(columns_read(bound))
    # Older versions of this library recorded no columns.
    has_columns = recorded_position(recorded, COLUMNS) in (None, columns)
    not_before = {name: each.snapshot_id for name, each in known.items() if each is not None} if is_current else {}
    after = consistent_snapshots(bound.sources, not_before)
    based_on = 0 if newest is None else newest.id
    if after is None:
        reached = {name: each.snapshot_id for name, each in known.items() if each is not None}
        waits = "the sources derive from different snapshots of a table; refresh the ones that are behind first"
        return _nothing(waits, based_on, reached)
    ends = {name: bound.sources[name].position(at) for name, at in after.items()}
    has_moved = not is_current or not has_columns or any(known[name] != end for name, end in ends.items())
    compiled = bound.compiled
    if not has_moved and not full and compiled.is_deterministic:
        return _nothing(_why_nothing(bound.sources, after), based_on, after)
    found = _why_whole(definition, bound, known, after, is_current=is_current, is_first=not recorded.positions)
    if found is None and not has_columns:
        found = "columns of a source were changed"
    if found is None and not full and definition.refresh_mode is RefreshMode.AUTO:
        found = _why_faster(query_of(table, definition), bound.sources, known, after)
    reason = (why or found or "requested") if full else found
    work = RefreshWork.INCREMENTAL if reason is None else RefreshWork.FULL
    marks = [bound.sources[name].watermark(at) for name, at in after.items()]
    return RefreshPlan(
        work=work,
        reason=reason or "the changes of the sources are known",
        based_on=based_on,
        before={name: each.snapshot_id for name, each in known.items() if each is not None} if reason is None else {},
        after=after,
        ranges=(
            SourceRange(
                source=DEFINITION,
                start=recorded.of(DEFINITION),
                end=position_of_definition(definition).to_offsets(),
            ),
            SourceRange(source=COLUMNS, start=recorded.of(COLUMNS), end=columns.to_offsets()),
            *(
                SourceRange(source=names[name], start=recorded.of(names[name]), end=end.to_offsets())
                for name, end in ends.items()
            ),
        ),
        watermark=None if None in marks else min((each for each in marks if each is not None), default=None),
        keeps_snapshots=definition.refresh_mode is not RefreshMode.FULL and _applies_changes(compiled),
    )


def _applies_changes(compiled: CompiledQuery) -> bool:
    return compiled.is_incremental and compiled.is_deterministic


def _why_nothing(sources: Mapping[str, Source], after: Mapping[str, int]) -> str:
    """Return why no position moves: without newer snapshots, or because newer ones would not agree."""
    newest = {name: source.newest() for name, source in sources.items()}
    derived = sorted(
        name for name, each in sources.items() if isinstance(each, OwnSource) and each.table.definition is not None
    )
    if newest == after or not derived:
        return "no source has changed"
    behind = [name for name in derived if newest[name] == after[name]] or derived
    return f"newer snapshots of the sources do not agree yet; refresh {', '.join(behind)} first"


def _nothing(reason: str, based_on: int, reached: Mapping[str, int]) -> RefreshPlan:
    return RefreshPlan(
        work=RefreshWork.NONE, reason=reason, based_on=based_on, before={}, after=reached, ranges=(), watermark=None
    )


def _why_whole(
    definition: MaterializedTableDefinition,
    bound: BoundQuery,
    known: Mapping[str, SourcePosition | None],
    after: Mapping[str, int],
    *,
    is_current: bool,
    is_first: bool,
) -> str | None:
    """Return why the whole query has to be computed, or None."""
    if is_first:
        return "first refresh"
    if not is_current:
        return "the query was changed"
    if definition.refresh_mode is RefreshMode.FULL:
        return "refresh mode FULL"
    compiled = bound.compiled
    if not _applies_changes(compiled):
        return compiled.reason or "the query is not deterministic"
    for name, source in bound.sources.items():
        columns = needed_columns(compiled, name, source)
        reason = source.why_full(name, columns, known[name], after[name])
        if reason is not None:
            return reason
    return None


def query_of(table: DynamicTable, definition: MaterializedTableDefinition) -> str:
    """Return the name of a table's present query among the times of refreshes."""
    return f"{table.uuid} {position_of_definition(definition).mark}"


def _why_faster(
    query: str,
    sources: Mapping[str, Source],
    known: Mapping[str, SourcePosition | None],
    after: Mapping[str, int],
) -> str | None:
    if not COSTS.knows(query):
        return None
    changed = stored = 0
    try:
        for name, each in known.items():
            stored += sources[name].row_count(after[name])
            changed += sources[name].changed_row_count(0 if each is None else each.snapshot_id, after[name])
    except (SnapshotExpiredError, NotFoundError):
        # Expired just now; the refresh will say so.
        return None
    return COSTS.why_full(query, RefreshSize(changed, stored))
