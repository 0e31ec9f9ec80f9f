"""EXPLAIN REFRESH: what the next refresh of a materialized table does, and how each operator is maintained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan, accumulated_plan, why_not_worth_it
from storage_lib.materialized.plan.refresh_plan import RefreshPlan, refresh_plan
from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.materialized.sources.catalogs_of_queries import catalogs_of_session
from storage_lib.materialized.sources.held_snapshots import held_snapshots
from storage_lib.materialized.sources.source_tables import BoundQuery, bound_query
from storage_lib.schema.options.materialized_table import RefreshMode
from storage_lib.spark.engine.spark_engine import SparkEngine, duckdb_beside
from storage_lib.sql.definition.delta_text import delta_text
from storage_lib.sql.state.result import Result, rows_of
from storage_lib.sql.statements.materialized_statements import ExplainRefresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.sql.state.session_state import SessionState
    from storage_lib.table.dynamic_table import DynamicTable


def run_explain_refresh(state: SessionState, statement: ExplainRefresh) -> Result:
    """Explain a refresh without running it."""
    table = state.load(statement.table)
    definition = table.definition
    if definition is None:
        message = f"table {table.name} is not a materialized table; SHOW MATERIALIZED TABLES lists those of a database"
        raise InvalidInputError(message)
    with catalogs_of_session(state.lake_options()):
        bound = bound_query(table.address, definition)
    plan = refresh_plan(table, definition, bound, full=False)
    engine = SparkEngine(state.spark)
    plan, accumulated = accumulated_plan(lambda: engine.accumulated_query(bound), table, definition, bound, plan)
    lines = [
        "== Next refresh ==",
        *_work(plan),
        *_engine(state.spark, table, bound, plan),
        "",
        "== Sources ==",
        *_sources(table, bound, plan),
    ]
    lines += ["", "== Operators ==", *_operators(engine, table, bound, plan, accumulated)]
    changed = [name for name in plan.after if plan.after[name] != plan.before.get(name)]
    columns = [field.name for field in table.schema.fields]
    delta = delta_text(bound.compiled, table.name, columns, changed or bound.compiled.sources)
    if delta is not None:
        lines += ["", "== Delta ==", delta]
    return Result(rows=rows_of(("plan",), [("\n".join(lines),)]))


def _work(plan: RefreshPlan) -> list[str]:
    if plan.work is RefreshWork.NONE:
        return [f"nothing to do: {plan.reason}"]
    return [str(plan.work) if plan.work is RefreshWork.INCREMENTAL else f"{plan.work}: {plan.reason}"]


def _engine(spark: SparkSession, table: DynamicTable, bound: BoundQuery, plan: RefreshPlan) -> list[str]:
    if plan.work is RefreshWork.NONE:
        return []
    reason = duckdb_beside(spark).why_not_small_refreshes(table, bound)
    return ["by DuckDB in this process, if it is small" if reason is None else f"by Spark: {reason}"]


def _sources(table: DynamicTable, bound: BoundQuery, plan: RefreshPlan) -> list[str]:
    lines = []
    for name, held in held_snapshots(table, bound.sources).items():
        columns = ", ".join(bound.compiled.needed.get(name, ())) or "no columns"
        read = plan.after.get(name)
        source = bound.sources[name]
        behind = "" if read is None or read == source.newest() else f"; the next refresh reads {source.named(read)}"
        lines.append(f"{name} ({columns}): {held}{behind}")
    return lines


def _operators(
    engine: SparkEngine, table: DynamicTable, bound: BoundQuery, plan: RefreshPlan, accumulated: AccumulatedPlan | None
) -> list[str]:
    compiled = bound.compiled
    mode = None if table.definition is None else table.definition.refresh_mode
    if compiled.reason is not None:
        return [f"only a full refresh is right: {compiled.reason}"]
    why_not: str | None = None
    operators = compiled.operators
    if accumulated is not None:
        operators = accumulated.query.accumulators.operators
    elif compiled.accumulators is not None and mode is not RefreshMode.FULL:
        why_not = why_not_worth_it(table, bound, plan.after)
        found = engine.accumulated_query(bound) if why_not is None else None
        if isinstance(found, AccumulatedQuery):
            # Nothing has to be done now.
            operators = found.accumulators.operators
        elif found is not None:
            why_not = found
    lines = [str(each) for each in operators]
    return lines if why_not is None else [*lines, f"no accumulators: {why_not}"]
