"""Every hour: compact the tables that need it and expire their snapshots, large tables first.

Each table has a mapped task of its own; a table of which more is due than one task should do has several, each for some
of its buckets, side by side as far as the slots of its pool go.
"""

from __future__ import annotations

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head, engine_params
from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.expire_snapshots import ExpireSnapshotsOperator
from dynamic_table.operators.list_compactions import ListCompactionsOperator
from dynamic_table.operators.list_tables_in_need import ListTablesInNeedOperator
from dynamic_table.table_events import TABLE_EVENTS

with DAG(
    dag_id="maintain",
    description="Compact tables and expire their snapshots",
    schedule="@hourly",
    max_active_runs=1,
    **dag_head(__doc__),
    params={
        "tables": Param(
            None, type=["null", "array"], title="Tables", description="One database.table per line; none: all of them."
        ),
        "full": Param(False, type="boolean", title="Merge everything, not only what is due"),
        "retain_last": Param(20, type="integer", minimum=1, title="Snapshots to keep in any case"),
        "older_than_hours": Param(1, type=["null", "number"], minimum=0, title="Expire what is older, in hours"),
        "gib_per_task": Param(
            16,
            type=["null", "number"],
            exclusiveMinimum=0,
            title="Compact so many GiB in one task",
            description="A table of which more is due has several tasks, each for some of its buckets. None: one task.",
            section="More",
        ),
        **engine_params(),
    },
):
    tables = ListTablesInNeedOperator(
        task_id="list_tables",
        tables="{{ params.tables }}",
        full="{{ params.full }}",
        retain_last="{{ params.retain_last }}",
    ).output
    compactions = ListCompactionsOperator(
        task_id="list_compactions", tables=tables, full="{{ params.full }}", gib_per_task="{{ params.gib_per_task }}"
    ).output
    compact = CompactTableOperator.partial(
        task_id="compact_table",
        full="{{ params.full }}",
        engine="{{ params.engine }}",
        master="{{ params.master }}",
        outlets=[TABLE_EVENTS],
        map_index_template="{{ task.label }}",
    ).expand_kwargs(compactions)
    expire = ExpireSnapshotsOperator.partial(
        task_id="expire_snapshots",
        retain_last="{{ params.retain_last }}",
        older_than_hours="{{ params.older_than_hours }}",
        map_index_template="{{ task.table }}",
        # A table whose compaction lost every race still has snapshots to expire.
        trigger_rule="all_done",
    ).expand(table=tables)
    # A run is as its last tasks are: without this one, a compaction that failed would be a green run.
    maintained = EmptyOperator(task_id="maintained", trigger_rule="none_failed")
    compact >> expire >> maintained
    compact >> maintained
