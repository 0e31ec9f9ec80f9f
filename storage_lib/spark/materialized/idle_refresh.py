"""Find out, without a Spark session, that a refresh would have nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.spark.materialized.refresh_plan import refresh_plan
from storage_lib.spark.materialized.refresh_result import RefreshResult, RefreshWork
from storage_lib.spark.materialized.refresh_table import definition_of
from storage_lib.spark.materialized.source_tables import bound_query

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def idle_refresh(table: DynamicTable) -> RefreshResult | None:
    """Return the result of a refresh that would compute no rows; None if it would compute some.

    Saves a scheduler the start of Spark. Raises ``InvalidInputError`` for a table that is not materialized and for a
    query that no longer fits its sources, ``NotFoundError`` for a source that was dropped.
    """
    newest = table.refresh()
    definition = definition_of(newest)
    plan = refresh_plan(newest, definition, bound_query(newest.address, definition), full=False)
    if plan.work is not RefreshWork.NONE:
        return None
    return RefreshResult(mode=plan.work, reason=plan.reason, positions=plan.after)
