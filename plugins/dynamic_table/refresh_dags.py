"""Makes a DAG for each materialized table, which refreshes it when one of its sources has changed.

    with DAG("list_materialized_tables", schedule="* * * * *"):
        ListMaterializedTablesOperator(task_id="list_materialized_tables")
    DAGS = refresh_dags(__doc__)

The DAG of ``shop.daily`` is ``refresh.shop.daily``. It is scheduled by the assets of the table's sources, any of them,
so a chain of tables is refreshed in order: each refresh emits the asset of its table.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow.sdk import DAG, AssetAny, Param, get_parsing_context

from dynamic_table.dag_head import dag_head, master_param
from dynamic_table.declarations.listed_tables import LIST_VARIABLE, ListedTable, read_list
from dynamic_table.hook import DynamicTableHook
from dynamic_table.operators.refresh_materialized_table import RefreshMaterializedTableOperator
from dynamic_table.table_events import table_asset
from dynamic_table.versions.sdk_schedules import AssetOrTimeSchedule, DeltaTriggerTimetable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DAG_PREFIX", "refresh_dags", "schedule_of"]

DAG_PREFIX = "refresh."
# A scheduler that starts runs more often than this is busy with nothing else; the refresher does better.
TICK_SECONDS_MIN = 10

Schedule: TypeAlias = AssetOrTimeSchedule | AssetAny | DeltaTriggerTimetable
"""When the DAG of a table runs."""


def refresh_dags(
    documentation: str | None,
    *,
    variable: str = LIST_VARIABLE,
    prefix: str = DAG_PREFIX,
    dynamic_table_conn_id: str = DynamicTableHook.default_conn_name,
    default_args: Mapping[str, Any] | None = None,
) -> dict[str, DAG]:
    """Return the DAGs of the tables in a list, by id; call it in a DAG file.

    The catalog is not opened. In a worker, only the DAG of the task to run is made, and from its id alone: a table that
    has been dropped since makes that task fail, with the name of the table.

    ``variable`` is the list that ``ListMaterializedTablesOperator`` writes, ``prefix`` precedes the table's name in the
    DAG's id. ``default_args`` override those of ``dag_head``.
    """
    running = get_parsing_context().dag_id
    if running is None:
        listed = read_list(variable)
    elif running.startswith(prefix):
        # A worker needs the tasks of this DAG, not its schedule.
        listed = {running.removeprefix(prefix): ListedTable(sources=())}
    else:
        listed = {}
    return {
        f"{prefix}{name}": _refresh_dag(
            name,
            f"{prefix}{name}",
            schedule_of(table, listed),
            dag_head(documentation, dynamic_table_conn_id=dynamic_table_conn_id, **(default_args or {})),
        )
        for name, table in listed.items()
    }


def schedule_of(table: ListedTable, listed: Mapping[str, ListedTable]) -> Schedule | None:
    """Return when a table's DAG runs: after a commit of any source, and after half of its freshness at the latest.

    Half, as in the refresher: a commit that no task reports is found by the next run, which then has the
    other half of the time. In place of a source with TARGET_LAG = DOWNSTREAM, which the run refreshes first, the
    sources of that one count. Commits of tables of Delta Lake and Iceberg are only found after half of the freshness.
    None, by hand only, for a table with this lag itself, a suspended one, one without sources, and one of which all
    sources are of these formats and which has no freshness. ``listed`` are all materialized tables by name.
    """
    if table.is_suspended or table.is_downstream:
        return None
    seconds = table.freshness_seconds
    tick = None if seconds is None else DeltaTriggerTimetable(timedelta(seconds=max(seconds / 2, TICK_SECONDS_MIN)))
    if not table.sources:
        return tick if table.reads_catalogs else None
    changes = AssetAny(*(table_asset(source) for source in _sources_of(table, listed)))
    return changes if tick is None else AssetOrTimeSchedule(timetable=tick, assets=changes)


def _sources_of(table: ListedTable, listed: Mapping[str, ListedTable]) -> list[str]:
    """Return the tables whose commits a refresh of ``table`` reads, also through tables that it refreshes first."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    pending = list(table.sources)
    while pending:
        name = pending.pop(0)
        source = listed.get(name)
        if source is None or source.is_suspended or not source.is_downstream:
            found[name] = None
        elif name not in seen:
            seen.add(name)
            pending += source.sources
    return list(found)


def _refresh_dag(name: str, dag_id: str, schedule: Schedule | None, head: dict[str, Any]) -> DAG:
    with DAG(
        dag_id=dag_id,
        description=f"Refresh the materialized table {name}",
        schedule=schedule,
        # A refresh that takes longer than the freshness delays the next one.
        max_active_runs=1,
        # Its list and SUSPEND decide whether a table is refreshed.
        is_paused_upon_creation=False,
        **head,
        params={
            "full": Param(False, type="boolean", title="Compute the whole query"),
            "even_if_suspended": Param(False, type="boolean", title="Refresh it even if it is suspended"),
            "master": master_param(None),
        },
    ) as dag:
        RefreshMaterializedTableOperator(
            task_id="refresh",
            table=name,
            full="{{ params.full }}",
            even_if_suspended="{{ params.even_if_suspended }}",
            master="{{ params.master }}",
        )
    return dag
