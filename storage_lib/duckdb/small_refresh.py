"""Refresh a materialized table in this process, without a Spark session, whose start takes longer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from storage_lib.duckdb.duckdb_engine import DuckDbEngine
from storage_lib.materialized.engine import EngineRefusalError
from storage_lib.materialized.refresh_table import refresh_table

if TYPE_CHECKING:
    from storage_lib.materialized.plan.refresh_result import RefreshResult
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)


def small_refresh(table: DynamicTable, *, full: bool = False, commit_user: str | None = None) -> RefreshResult | None:
    """Refresh a table as ``storage_lib.spark.refresh`` does; None if Spark has to compute rows.

    Nothing of this table has then been written.

    The caller knows that a session would have no setting by which expressions have other values
    (``unusual_configuration``). Raises as ``storage_lib.spark.refresh``.
    """
    try:
        return refresh_table([DuckDbEngine()], table, full=full, commit_user=commit_user)
    except EngineRefusalError as why:
        _LOGGER.info("table %s: Spark computes its refresh: %s", table.name, why)
        return None
