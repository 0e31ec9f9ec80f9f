"""Compacts the tables that need it and expires their snapshots, every hour, large tables first.

Each table has its own mapped task. A table with more due compaction than one task should do has several tasks, each
for some of its buckets; the slots of the table's pool limit how many run in parallel.
"""

from __future__ import annotations

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param

from dynamic_table.arguments.mapped_arguments import of_compaction
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
        "full": Param(False, type="boolean", title="Compact everything, not only what is due"),
        "retain_last": Param(20, type="integer", minimum=1, title="Minimum number of snapshots to keep"),
        "older_than_hours": Param(1, type=["null", "number"], minimum=0, title="Expire snapshots older than, in hours"),
        "gib_per_task": Param(
            16,
            type=["null", "number"],
            exclusiveMinimum=0,
            title="GiB to compact per task",
            description="A table with more has several tasks, each for some of its buckets. None: one task.",
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
    ).expand_kwargs(compactions.map(of_compaction))
    expire = ExpireSnapshotsOperator.partial(
        task_id="expire_snapshots",
        retain_last="{{ params.retain_last }}",
        older_than_hours="{{ params.older_than_hours }}",
        map_index_template="{{ task.table }}",
        # Expire snapshots even if the table's compaction failed by conflicts.
        trigger_rule="all_done",
    ).expand(table=tables)
    # A run's state is that of its last tasks: without this one, a run with a failed compaction would succeed.
    maintained = EmptyOperator(task_id="maintained", trigger_rule="none_failed")
    compact >> expire >> maintained
    compact >> maintained
