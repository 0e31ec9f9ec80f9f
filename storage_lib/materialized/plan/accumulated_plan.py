"""Decide whether a refresh uses accumulators, and whether it has to rebuild their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
from storage_lib.materialized.accumulators.accumulated_state import ACCUMULATORS, NamedState, named_state, state_range
from storage_lib.materialized.plan.refresh_plan import RefreshPlan, refresh_plan
from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.materialized.sources.source_positions import recorded_position
from storage_lib.schema.options.materialized_table import RefreshMode
from storage_lib.table.protocol.source_offsets import SourceOffsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage_lib.materialized.commit.refresh_commit import RefreshCommit
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.table.dynamic_table import DynamicTable


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatedPlan:
    """A refresh with accumulators. ``recorded`` are the positions of the table that it begins from.

    ``state`` is the one that belongs to them; None if the refresh builds a new one.
    """

    query: AccumulatedQuery
    recorded: SourceOffsets
    state: NamedState | None

    def needed_state(self) -> NamedState:
        """Return the state, for a refresh that adds changes to it; ``ValueError`` if the plan builds a new one."""
        if self.state is None:
            message = "a refresh that adds changes needs a state"
            raise ValueError(message)
        return self.state

    def naming(self, commit: RefreshCommit, state: NamedState) -> RefreshCommit:
        """Return the commit with the snapshot of a state."""
        return replace(commit, sources=(*commit.sources, state_range(self.query, self.recorded, state, commit.sources)))

    def unchanged(self, commit: RefreshCommit) -> RefreshCommit:
        """Return the commit with the state as it is, for changes that add nothing to it."""
        return commit if self.state is None else self.naming(commit, self.state)


def accumulated_plan(
    accumulators: Callable[[], AccumulatedQuery | str | None],
    table: DynamicTable,
    definition: MaterializedTableDefinition,
    bound: BoundQuery,
    plan: RefreshPlan,
) -> tuple[RefreshPlan, AccumulatedPlan | None]:
    """Return the plan, and how it uses accumulators (None: not at all).

    An incremental plan becomes a full one if no state belongs to the table's newest snapshot and the sources are
    large enough for one. ``accumulators`` finds those of the query, see ``Engine.accumulated_query``; it is called
    where they are worth it.
    """
    if plan.work is RefreshWork.NONE or definition.refresh_mode is RefreshMode.FULL:
        return plan, None
    recorded = table.inspect.source_positions(plan.based_on) if plan.based_on else SourceOffsets()
    is_worth_it = why_not_worth_it(table, bound, plan.after) is None
    # A state that exists is kept when the sources shrink, and rebuilt if it is damaged.
    has_state = plan.work is RefreshWork.INCREMENTAL and recorded_position(recorded, ACCUMULATORS) is not None
    query = accumulators() if is_worth_it or has_state else None
    if not isinstance(query, AccumulatedQuery):
        return plan, None
    if plan.work is RefreshWork.FULL:
        return plan, AccumulatedPlan(query=query, recorded=recorded, state=None)
    found = named_state(table, query, recorded, plan.ranges)
    if isinstance(found, NamedState):
        return plan, AccumulatedPlan(query=query, recorded=recorded, state=found)
    whole = refresh_plan(table, definition, bound, full=True, why=found)
    if whole.based_on != plan.based_on:
        recorded = table.inspect.source_positions(whole.based_on)
    return whole, AccumulatedPlan(query=query, recorded=recorded, state=None)


def why_not_worth_it(table: DynamicTable, bound: BoundQuery, after: Mapping[str, int]) -> str | None:
    """Return why the sources at the snapshots ``after`` are too small for accumulators; None if they are not."""
    rows = sum(bound.sources[name].row_count(number) for name, number in after.items())
    least = table.options.accumulators_rows_min
    return None if rows >= least else f"the sources have {rows:,} rows, and accumulators.rows-min is {least:,}"
