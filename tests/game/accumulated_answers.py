"""Accumulators of materialized tables in games: their types, which otherwise Spark finds, and the build of a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.duckdb.accumulated_change import accumulated_change
from storage_lib.duckdb.refresh_in_duckdb import refresh_in_duckdb
from storage_lib.materialized.accumulators.accumulated_query import NULL_KEYS, AccumulatedQuery
from storage_lib.materialized.accumulators.accumulated_state import (
    NamedState,
    commit_state,
    drop_other_states,
    new_state,
)
from storage_lib.materialized.accumulators.tidy_state import tidy_state
from storage_lib.materialized.algebra import ROW_COUNT, ItemTypes
from storage_lib.materialized.commit.refresh_commit import commit_difference
from storage_lib.materialized.sources.source_tables import needed_columns
from storage_lib.materialized.sources.weighted_rows import WEIGHT

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.engine import RefreshRun
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.table.dynamic_table import DynamicTable

NAMES: Mapping[pa.DataType, str] = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.decimal128(38, 0): "decimal(38,0)",
}


def accumulators_of(bound: BoundQuery, keys: Sequence[pa.DataType]) -> AccumulatedQuery | None:
    """Return the accumulators of a query that sums columns of type BIGINT, if any; None if they cannot keep it."""
    found = bound.compiled.accumulators
    if found is None:
        return None
    types = {name: ItemTypes("bigint", "bigint") for name in found.item_names}
    sums = [name for name in found.columns if name.startswith("sum_")]
    kinds = dict(zip(found.key_columns, keys, strict=True)) | dict.fromkeys(sums, pa.decimal128(38, 0))
    of_key = {NULL_KEYS, *found.key_columns}
    fields = [
        pa.field(name, kinds.get(name, pa.int64()), nullable=name not in of_key and name != ROW_COUNT)
        for name in (NULL_KEYS, *found.columns)
    ]
    return AccumulatedQuery(
        accumulators=found,
        types=types,
        state=pa.schema(fields),
        type_names={each.name: NAMES[each.type] for each in fields},
        form=f"{found.whole(lambda table, _: table, types)} {fields}",
    )


def build_state(run: RefreshRun, plan: AccumulatedPlan) -> Snapshot | None:
    """Build a state as the change from empty sources, and write the difference between the table and its answer."""
    sources, table = run.bound.sources, run.table
    changed = {
        name: source.delta(needed_columns(run.bound.compiled, name, source), 0, run.plan.after[name])
        for name, source in sources.items()
        if run.plan.after[name]
    }
    empty = replace(run, plan=replace(run.plan, before=dict.fromkeys(sources, 0)))
    state = NamedState(new_state(table, plan.query), 0)
    with refresh_in_duckdb(empty, changed, refusal=None) as refresh:
        change = accumulated_change(refresh, plan.query, state)
    if change is not None:
        state = commit_state(change.state, state.table, 0)
    stored = table.to_arrow(snapshot_id=run.plan.based_on) if run.plan.based_on else None
    difference = _difference(table, None if change is None else change.answer, stored)
    snapshot = commit_difference(difference, table, plan.naming(run.commit, state))
    drop_other_states(table, plan.recorded, state)
    tidy_state(table, state)
    return snapshot


def _difference(table: DynamicTable, answer: pa.Table | None, stored: pa.Table | None) -> pa.Table:
    """Return the rows by which an answer, with weights, differs from the stored rows."""
    schema = pa.schema([*(each.with_nullable(True) for each in table.arrow_schema), pa.field(WEIGHT, pa.int64())])
    names = schema.names[:-1]
    weights: Counter[tuple[object, ...]] = Counter()
    for row in [] if answer is None else answer.to_pylist():
        weights[tuple(row[name] for name in names)] += row[WEIGHT]
    for row in [] if stored is None else stored.to_pylist():
        weights[tuple(row[name] for name in names)] -= 1
    rows = [dict(zip(schema.names, (*row, weight), strict=True)) for row, weight in weights.items() if weight]
    return pa.Table.from_pylist(rows, schema=schema)
