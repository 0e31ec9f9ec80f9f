"""Refreshes a materialized table: brings its rows to its query's answer at the newest snapshots of its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.rendered_argument import checked_flag
from dynamic_table.events.lineage import refresh_lineage
from dynamic_table.operators.spark_operator import SPARK_FIELDS, SparkOperator
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce
from dynamic_table.versions.sdk_exceptions import AirflowSkipException

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from storage_lib import DynamicTable
    from storage_lib.spark import RefreshResult

__all__ = ["RefreshMaterializedTableOperator"]

SKIPPED = "skipped"


class RefreshMaterializedTableOperator(SparkOperator):
    """Refreshes a materialized table, in one commit of the rows that differ.

    A task whose table is current, or whose changes DuckDB computes, ends without starting Spark. A suspended table is
    skipped. If another process refreshes the table at the same time, one of them commits, and the other finds the table
    current. An answer that violates the primary key, an invalid query and a dropped table or source fail the task
    without a retry, and leave the rows as they were. Tables with TARGET_LAG = DOWNSTREAM that it reads are refreshed
    first, and have events of their own.

    The result has ``mode`` (``incremental``, ``full``, ``none``, ``skipped``), its ``reason``, ``rows_read`` by source,
    ``rows_written``, ``seconds``, and the new snapshot as ``version``; None if the refresh committed nothing.

    :param full: compute the whole query, even if the changes of the sources are known. (templated)
    :param even_if_suspended: also refresh a suspended table. (templated)
    """

    template_fields: Sequence[str] = ("table", "full", "even_if_suspended", *SPARK_FIELDS)
    template_fields_renderers: ClassVar[dict[str, str]] = {"spark_conf": "json"}
    announces = True
    ui_color = "#d9ecd9"

    def __init__(self, *, full: bool | str = False, even_if_suspended: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.full = full
        self.even_if_suspended = even_if_suspended

    def execute(self, context: Context) -> dict[str, Any]:
        """Refresh the table and return what the refresh did."""
        full = checked_flag(self.full, "full")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            user = f"{identity.user}/{identity.token}"
            result = self._own_refresh(table, user) if identity.is_repeated else None
            if result is None:
                self._skip_suspended(table, context)
                result = self._refreshed(table, full=full, commit_user=user)
            if result.snapshot_id is None:  # an attempt whose outcome was unknown has left nothing to do
                result = self._own_refresh(table, user) or result
        for name, first in result.refreshed_first.items():
            self._announced(context, name, first)
        return self._announced(context, self.table, result)

    def _announced(self, context: Context, name: str, result: RefreshResult) -> dict[str, Any]:
        self.log.info(
            "%s: %s refresh, snapshot %s, rows written: %d, rows read: %s, %.1f s. Reason: %s",
            name,
            result.mode,
            result.snapshot_id,
            result.rows_written,
            dict(result.rows_read),
            result.seconds,
            result.reason,
        )
        return announce(
            context,
            table=name,
            op="refresh",
            version=result.snapshot_id,
            event={
                "mode": str(result.mode),
                "reason": result.reason,
                "rows_read": dict(result.rows_read),
                "rows_written": result.rows_written,
                "seconds": round(result.seconds, 3),
            },
            positions=dict(result.positions),
            rows=result.rows_written,
        )

    def _lineage(self, version: int | None) -> Any:
        return refresh_lineage(self.hook, self.table, version)

    def _own_refresh(self, table: DynamicTable, commit_user: str) -> RefreshResult | None:
        """Return the refresh of an earlier try, of which only the commit is known; None if there is none."""
        from storage_lib.materialized.commit.refresh_commit import refresh_committed
        from storage_lib.materialized.plan.refresh_result import RefreshResult, RefreshWork

        found = refresh_committed(table.refresh(), commit_user)
        if found is None:
            return None
        reason = "an earlier try of the task has refreshed the table"
        return RefreshResult(
            mode=RefreshWork.NONE, reason=reason, snapshot_id=found.id, rows_written=found.delta_record_count
        )

    def _refreshed(self, table: DynamicTable, *, full: bool, commit_user: str) -> RefreshResult:
        from storage_lib.duckdb.small_refresh import small_refresh
        from storage_lib.materialized.refresh_table import idle_refresh
        from storage_lib.spark import refresh
        from storage_lib.spark.engine.session_settings import unusual_configuration

        if unusual_configuration(*self.session_arguments()) is None:
            done = small_refresh(table, full=full, commit_user=commit_user)
        else:
            done = None if full else idle_refresh(table)
        if done is not None:
            return done
        with self.spark() as spark:
            return refresh(spark, table, full=full, commit_user=commit_user)

    def _skip_suspended(self, table: DynamicTable, context: Context) -> None:
        from storage_lib.schema.options.materialized_table import RefreshStatus

        definition = table.definition
        if definition is None or definition.status is not RefreshStatus.SUSPENDED:
            return
        if checked_flag(self.even_if_suspended, "even_if_suspended"):
            return
        reason = f"materialized table {self.table} is suspended; resume it to refresh it"
        skipped = {"table": self.table, "op": "refresh", "version": None, "mode": SKIPPED, "reason": reason}
        context["ti"].xcom_push(key="return_value", value=skipped)
        raise AirflowSkipException(reason)
